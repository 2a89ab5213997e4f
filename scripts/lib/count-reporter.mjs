/** A jest reporter that leaves the counts of the run in the file that PESIT_TEST_COUNTS names, for scripts/test.mjs. */
import { writeFileSync } from 'node:fs';

export default class CountReporter {
  #file = process.env.PESIT_TEST_COUNTS;

  onRunComplete(_contexts, { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, numPendingTests }) {
    const counts = {
      passed: numPassedTests,
      // A test file that could not run at all counts as one failure.
      failed: numFailedTests + numRuntimeErrorTestSuites,
      skipped: numPendingTests,
    };
    writeFileSync(this.#file, JSON.stringify(counts));
  }
}
