import { expect, test } from '@jest/globals';

import { onAllPods } from '../src/listeners/all-pods.js';
import type { NamedLine } from '../src/listeners/all-pods.js';
import type { ListenerStatus } from '../src/listeners/fields.js';

const line = (pod: string, status: ListenerStatus, more: Partial<NamedLine> = {}): NamedLine => ({
  ...{ pod, serverId: 'S', status, statusReason: null, nextAttemptAt: null },
  ...{ sessions: 0, refused: 0, since: null, standby: false },
  ...more,
});
const IN_USE = { statusReason: 'port 6502 is in use by another process' };

test.each<[string, boolean, readonly NamedLine[], ListenerStatus, string | null]>([
  ['one that runs', true, [line('a', 'RUNNING')], 'RUNNING', null],
  ['one that failed', true, [line('a', 'FAILED', IN_USE)], 'FAILED', IN_USE.statusReason],
  ['all run', true, [line('a', 'RUNNING'), line('b', 'RUNNING')], 'RUNNING', null],
  [
    'one of three failed',
    true,
    [line('a', 'RUNNING'), line('b', 'RUNNING'), line('c', 'FAILED', IN_USE)],
    'RUNNING',
    `RUNNING on 2 of 3; c FAILED: ${IN_USE.statusReason}`,
  ],
  ['one not yet', true, [line('a', 'RUNNING'), line('b', 'STOPPED')], 'RUNNING', 'RUNNING on 1 of 2; b STOPPED'],
  [
    'both failed, for two reasons',
    true,
    [line('a', 'FAILED', { statusReason: 'one' }), line('b', 'FAILED', { statusReason: 'two' })],
    'FAILED',
    'FAILED on 2 of 2; a FAILED: one; b FAILED: two',
  ],
  ['the leader runs it', true, [line('a', 'RUNNING'), line('b', 'STOPPED', { standby: true })], 'RUNNING', null],
  [
    'nobody leads',
    true,
    [
      line('a', 'STOPPED', { standby: true, statusReason: 'x' }),
      line('b', 'STOPPED', { standby: true, statusReason: 'x' }),
    ],
    'STOPPED',
    'x',
  ],
  [
    'one ends its files',
    false,
    [line('a', 'STOPPED'), line('b', 'STOPPING')],
    'STOPPING',
    'STOPPING on 1 of 2; a STOPPED',
  ],
  ['all stopped', false, [line('a', 'STOPPED'), line('b', 'STOPPED')], 'STOPPED', null],
])('%s', (_, wanted, lines, status, statusReason) => {
  expect(onAllPods(lines, wanted)).toMatchObject({ status, statusReason });
});

test('figures are sums, times the earliest', () => {
  const [early, late] = [new Date(1000), new Date(2000)];
  const lines = [
    line('a', 'RUNNING', { sessions: 2, refused: 1, since: late }),
    line('b', 'FAILED', { sessions: 1, refused: 5, nextAttemptAt: late }),
    line('c', 'FAILED', { refused: 1, nextAttemptAt: early }),
  ];
  expect(onAllPods(lines, true)).toMatchObject({ sessions: 3, refused: 7, since: late, nextAttemptAt: early });
});
