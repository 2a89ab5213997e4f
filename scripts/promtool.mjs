/** `npm run promtool -- fetch`: the promtool that checks metrics and alerts (deploy/observability). */
import { Failure, main, requireNode } from './lib/process.mjs';
import { fetchPromtool, findPromtool } from './lib/promtool.mjs';

const USAGE = `npm run promtool -- fetch     takes promtool out of Debian's package of Prometheus, into the cache of this user`;

await main(async () => {
  requireNode();
  if (process.argv[2] !== 'fetch') throw new Failure(USAGE);
  const fault = findPromtool() === undefined ? fetchPromtool() : undefined;
  // The tests of metrics and alerts that need it are skipped without it, and say so.
  console.log(
    fault === undefined ? `promtool: ${findPromtool()}` : `Metrics and alerts are not checked by promtool: ${fault}.`,
  );
  return 0;
});
