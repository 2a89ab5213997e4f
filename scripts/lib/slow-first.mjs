/**
 * The order of the test files: those that take longest first, so that no worker is left alone with one at the end. In a fresh
 * clone jest knows no durations, and goes by the sizes of the files; these are small, and wait for processes, leases and disks.
 */
import Sequencer from '@jest/test-sequencer';

const SLOW = [
  'packages/console/test/console',
  'apps/server/test/killed',
  'apps/client/test/killed',
  'apps/client/test/frozen',
  'apps/server/test/frozen',
  'packages/storage/test/storage-check',
  'scripts/test/mains',
  'packages/net/test/tls-transport',
  'packages/service/test/database/embedded',
  'packages/service/test/database/embedded-refusals',
  'apps/client/test/database-loss',
  'packages/cluster/test/redis-server',
  'scripts/test/rotate-secrets',
  'scripts/test/pods',
  'packages/storage/test/peer-texts',
  'apps/server/test/partner-fills',
  'scripts/test/start-cluster',
  'apps/server/test/drained',
  'apps/server/test/strangers',
  'packages/license/test/build',
  'packages/license/test/tool',
  'packages/cluster/test/leader/leader-model',
].map((path) => `/${path}.test.ts`);

const rank = ({ path }) => {
  const at = SLOW.findIndex((slow) => path.endsWith(slow));
  return at === -1 ? SLOW.length : at;
};

export default class SlowFirst extends Sequencer {
  sort(tests) {
    return super.sort(tests).sort((a, b) => rank(a) - rank(b));
  }
}
