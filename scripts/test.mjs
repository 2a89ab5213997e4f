/**
 * `npm test [-- <jest arguments>]`: installs and builds what is missing, finds a PostgreSQL, runs the whole suite, and
 * ends with the line `tests: <n> passed, <m> failed`.
 *
 * The database tests run on the embedded database always, and on PostgreSQL when TEST_DATABASE_URL names one or the
 * machine has one (a private instance is started and removed). With CI=true a missing PostgreSQL is a failure.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atEnd, Failure, main, requireNode, run } from './lib/process.mjs';
import { findPostgres, startPostgres } from './lib/postgres.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

async function databaseUrl() {
  if (process.env.TEST_DATABASE_URL) return process.env.TEST_DATABASE_URL;
  const postgres = findPostgres();
  if (postgres !== undefined) {
    console.log(`Tests run on ${postgres.version} (a private instance) and on the embedded database.`);
    return startPostgres(postgres);
  }
  if (process.env.CI === 'true') {
    throw new Failure('CI=true, and no PostgreSQL: install PostgreSQL 14 or newer, or set TEST_DATABASE_URL');
  }
  return undefined;
}

/** Counts from jest's report; a test file that could not run at all counts as one failure. */
function counts(report) {
  const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, numPendingTests } = JSON.parse(
    readFileSync(report, 'utf8'),
  );
  return { passed: numPassedTests, failed: numFailedTests + numRuntimeErrorTestSuites, skipped: numPendingTests };
}

await main(async () => {
  requireNode();
  await ensureInstalled();
  await ensureBuilt(['apps/server', 'apps/client', 'bench']);

  const url = await databaseUrl();
  const directory = mkdtempSync(join(tmpdir(), 'pesit-test-'));
  atEnd(() => rmSync(directory, { recursive: true, force: true }));
  const report = join(directory, 'report.json');

  const code = await run(
    process.execPath,
    ['node_modules/jest/bin/jest.js', '--json', `--outputFile=${report}`, ...process.argv.slice(2)],
    {
      // jest copies its JSON report to standard output as well when no file is named; people read standard error.
      stdio: ['inherit', 'ignore', 'inherit'],
      env: {
        ...process.env,
        NODE_OPTIONS:
          `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --disable-warning=ExperimentalWarning`.trim(),
        ...(url === undefined ? {} : { TEST_DATABASE_URL: url }),
      },
    },
  );

  let result;
  try {
    result = counts(report);
  } catch {
    throw new Failure(`jest ended with exit code ${code} without a report`);
  }
  if (url === undefined) {
    console.log(
      'left out: every test on real PostgreSQL (none found; install PostgreSQL 14+ or set TEST_DATABASE_URL)',
    );
  }
  if (result.skipped > 0) console.log(`skipped: ${result.skipped} tests`);
  console.log(`tests: ${result.passed} passed, ${result.failed} failed`);
  return code;
});
