/**
 * Starts a private PostgreSQL and a private Redis, prints one NAME=value line for each, then `ready`, and keeps them until
 * its standard input ends or it is told to stop: whoever holds the other end of the pipe may die in any way.
 */
import { once } from 'node:events';
import { Failure, main } from './lib/process.mjs';
import { findPostgres, FOR_TESTS, startPostgres } from './lib/postgres.mjs';
import { findRedis, startRedis } from './lib/redis.mjs';

await main(async () => {
  const postgres = findPostgres();
  if (postgres === undefined) throw new Failure('no PostgreSQL 14 or newer found: install the package postgresql');
  const redis = findRedis();
  if (redis === undefined) throw new Failure('no redis-server found: install the package redis-server');
  console.log(`TEST_DATABASE_URL=${await startPostgres(postgres, FOR_TESTS)}`);
  console.log(`TEST_REDIS_URL=${await startRedis(redis)}`);
  console.log('ready');
  process.stdin.resume();
  await once(process.stdin, 'end');
  return 0;
});
