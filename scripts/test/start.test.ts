/** The two services as `npm start` runs them: over one embedded database, which ends with them. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { expect, test } from '@jest/globals';

const lib = (name: string): string => JSON.stringify(fileURLToPath(new URL(`../lib/${name}`, import.meta.url)));

test('one PostgreSQL for both services, stopped in order with the last of them', async () => {
  const data = await mkdtemp(join(tmpdir(), 'pesit-start-'));
  // Both start at once; the end of the command sends both SIGTERM.
  const script = `
    import { freePort, main } from ${lib('process.mjs')};
    import { RestClient, startApp } from ${lib('apps.mjs')};
    const database = ${JSON.stringify(join(data, 'database'))};
    const start = async (app) => {
      const port = await freePort();
      await startApp({ app, port, database, data: ${JSON.stringify(data)} + '/' + app });
      const { components } = await new RestClient(app, port).get('/actuator/health');
      console.log(app, JSON.stringify(components.database));
    };
    await main(async () => {
      await Promise.all([start('server'), start('client')]);
      return 0;
    });`;
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    for (const app of ['server', 'client']) {
      expect(stdout).toContain(`${app} {"status":"UP","details":{"mode":"embedded"}}`);
      expect(stdout).toContain(`the ${app} app stopped\n`);
      expect(await readdir(join(data, app))).not.toContain('database');
    }
    const logs = await Promise.all(['server', 'client'].map((app) => readFile(join(data, app, 'service.log'), 'utf8')));
    expect(logs.join('').match(/embedded database started/g)).toHaveLength(1);
    expect(logs.join('')).not.toContain('embedded database lost');
    const log = await readFile(join(data, 'database/postgresql.log'), 'utf8');
    expect(log).toContain('received fast shutdown request');
    expect(log).toContain('database system is shut down');
  } finally {
    await rm(data, { recursive: true, force: true });
  }
}, 120_000);
