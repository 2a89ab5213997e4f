import { availableParallelism } from 'node:os';

/** Tests run from the TypeScript sources (export condition `source`), as native ES modules. */
const project = (displayName, directory) => ({
  displayName,
  rootDir: directory,
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' }, sourceMaps: 'inline' },
    ],
  },
  testEnvironmentOptions: { customExportConditions: ['source', 'node', 'node-addons'] },
  testMatch: ['<rootDir>/test/**/*.test.ts'],
});

export default {
  projects: [
    project('ground', 'packages/ground'),
    project('protocol', 'packages/protocol'),
    project('net', 'packages/net'),
    project('storage', 'packages/storage'),
    project('service', 'packages/service'),
    project('transfers', 'packages/transfers'),
    project('hooks', 'packages/hooks'),
    project('cluster', 'packages/cluster'),
    project('license', 'packages/license'),
    project('certificates', 'packages/certificates'),
    project('cli', 'packages/cli'),
    project('console', 'packages/console'),
    project('server', 'apps/server'),
    project('client', 'apps/client'),
    project('bench', 'bench'),
    project('torture', 'torture'),
    project('repository', 'scripts'),
  ],
  // By itself jest leaves one core idle. Tests wait for sockets, disks and leases: two workers leave a third of two cores idle.
  maxWorkers: Math.max(3, availableParallelism()),
  testSequencer: './scripts/lib/slow-first.mjs',
  workerIdleMemoryLimit: '768MB',
  // No test waits for it: it ends one that hangs. A busy machine is ten times slower than an idle one.
  testTimeout: 120_000,
};
