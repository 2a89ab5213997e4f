/** The operations that the REST interfaces of both apps declare, read without a database or a node behind them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './process.mjs';

/** Stands for every part of a node: routes only keep it while they are declared. */
const nothing = new Proxy(() => nothing, {
  get: (_target, name) => (typeof name === 'symbol' || name === 'then' ? undefined : nothing),
  apply: () => nothing,
});

/** Parts that every app hands on by name. */
const COMMON = ['info', 'logger', 'health', 'metrics', 'events', 'database', 'periodic', 'license', 'audit', 'cluster'];

/** @returns {Promise<Record<'server' | 'client', object>>} each app, of which nothing works but its declarations */
const declaredApps = async () => {
  const { loadConfig } = await import('@pesit-node/service');
  const common = Object.fromEntries(COMMON.map((name) => [name, nothing]));
  const made = {};
  for (const app of ['server', 'client']) {
    const { createApp } = await import(`../../apps/${app}/dist/app.js`);
    const config = loadConfig({ app, env: {}, argv: [], cwd: '/' });
    const parts = new Proxy({ ...common, config }, { get: (target, name) => target[name] ?? nothing });
    made[app] = createApp(parts);
  }
  return made;
};

/** @returns {Promise<Record<'server' | 'client', readonly object[]>>} the operations of each app */
export const declaredOperations = async () => {
  const { operationsOfApp } = await import('@pesit-node/service');
  const { server, client } = await declaredApps();
  return { server: operationsOfApp(server), client: operationsOfApp(client) };
};

/** @returns {Promise<Record<'server' | 'client', object>>} the OpenAPI document of each app, as `/openapi.json` has it */
export const declaredDocuments = async () => {
  const { openApiDocument } = await import('@pesit-node/service');
  const { server, client } = await declaredOperations();
  const infoOf = (app) => {
    const { version } = JSON.parse(readFileSync(join(root, 'apps', app, 'package.json'), 'utf8'));
    return { name: `pesit-${app}`, version };
  };
  return { server: openApiDocument(infoOf('server'), server), client: openApiDocument(infoOf('client'), client) };
};
