/** The PostgreSQL for the tests of a machine that has none: that of the package, over TCP. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { expect, test } from '@jest/globals';

const lib = (name: string): string => JSON.stringify(fileURLToPath(new URL(`../lib/${name}`, import.meta.url)));

test('the embedded PostgreSQL serves where none is installed', async () => {
  const script = `
    import pg from 'pg';
    import { main } from ${lib('process.mjs')};
    import { embeddedPostgres, startPostgres } from ${lib('postgres.mjs')};
    await main(async () => {
      const client = new pg.Client({ connectionString: await startPostgres(embeddedPostgres()) });
      await client.connect();
      await client.query('create database of_a_test');
      const { rows } = await client.query('show server_version');
      console.log(JSON.stringify(rows));
      await client.end();
      return 0;
    });`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
  expect(stdout).toMatch(/^\[\{"server_version":"18\.\d+"\}\]$/m);
}, 120_000);
