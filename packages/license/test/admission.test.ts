import { EventEmitter } from 'node:events';

import { describe, expect, test } from '@jest/globals';
import { SingleLeader, SingleMember } from '@pesit-node/cluster';
import type { Members, MembersEvents, MembersView } from '@pesit-node/cluster';
import { Metrics } from '@pesit-node/service';
import { captureLog } from '@pesit-node/service/testing';

import { Admission } from '../src/admission.js';
import type { LicenseKeeper } from '../src/keeper.js';
import { licenseMetrics } from '../src/metrics.js';
import { EVALUATION_LIMITS } from '../src/state.js';
import type { LicenseStatus } from '../src/state.js';

const VALID = { blocked: false, valid: true, daysUntilExpiration: 90, message: 'Licensed', ...EVALUATION_LIMITS };
const BLOCKED = { ...VALID, blocked: true, valid: false, daysUntilExpiration: 0, message: 'over' };
const PEER_TEXT = 'the node is not available for now: try again later';

/** A pod that is number `number` of `number`, and can be told of changes. */
const setUp = (status: Partial<LicenseStatus> | undefined, number: number | undefined, redis?: boolean) => {
  const pods = Array.from({ length: number ?? 0 }, (_, index) => ({
    ...{ instance: `i${index + 1}`, name: `pod-${index + 1}`, since: 0 },
  }));
  const events = Object.assign(new EventEmitter<MembersEvents>(), {
    view: pods.length === 0 ? undefined : { cluster: 'paris', clusters: ['paris'], pods, self: pods.at(-1)! },
  }) as EventEmitter<MembersEvents> & { view: MembersView | undefined };
  const license = Object.assign(new EventEmitter(), { status }) as unknown as LicenseKeeper & {
    status: Partial<LicenseStatus> | undefined;
  };
  const log = captureLog();
  const leader = new SingleLeader('0');
  const cluster = { leader, members: events as unknown as Members, redisConnected: redis };
  const admission = new Admission({ license, cluster, logger: log.logger });
  const metrics = new Metrics({ app: 'server', version: '1', logger: log.logger });
  licenseMetrics(metrics, { license, admission, cluster });
  const figures = async () =>
    (await metrics.scrape()).split('\n').filter((line) => /^pesit_(license|pod|cluster|redis)_/.test(line));
  const goes = (): void => {
    const view = events.view!;
    events.view = { ...view, pods: view.pods.slice(1) };
    events.emit('change', events.view);
  };
  return { admission, license, events, log, goes, figures };
};

test.each<[string, Partial<LicenseStatus> | undefined, number | undefined, string | undefined]>([
  ['licensed, within the limits', VALID, 3, undefined],
  ['the license is not known yet', undefined, 1, 'the license has not been read yet'],
  ['the pods are not known yet', VALID, undefined, 'the pods of the cluster have not been counted yet'],
  ['blocked', BLOCKED, 1, 'a license is required: over'],
  ['blocked comes first', BLOCKED, 4, 'a license is required: over'],
  [
    'beyond the limits',
    VALID,
    4,
    'pod pod-4 is number 4 of cluster paris, the license allows 3: install a larger license, or run fewer pods',
  ],
])('sessions: %s', (_, status, number, text) => {
  expect(setUp(status, number).admission.refusal).toEqual(
    text === undefined ? undefined : { diagnostic: '3-322', text, peerText: PEER_TEXT },
  );
});

describe('health', () => {
  test('within the limits', () => {
    expect(setUp(VALID, 2).admission.health()).toEqual({
      status: 'UP',
      details: { cluster: 'paris', pod: 'pod-2', pods: 2 },
    });
  });

  test('a blocked pod within the limits is ready: the license must be installable', () => {
    expect(setUp(BLOCKED, 3).admission.health().status).toBe('UP');
  });

  test('beyond the limits it is down, and says why', () => {
    expect(setUp(VALID, 4, true).admission.health()).toEqual({
      status: 'DOWN',
      details: {
        ...{ cluster: 'paris', pod: 'pod-4', pods: 4, redis: 'CONNECTED' },
        reason:
          'pod pod-4 is number 4 of cluster paris, the license allows 3: install a larger license, or run fewer pods',
      },
    });
  });

  test('a Redis that is lost is said, and changes nothing', () => {
    expect(setUp(VALID, 1, false).admission.health()).toMatchObject({ status: 'UP', details: { redis: 'LOST' } });
  });

  test('nothing is known', () => {
    for (const admission of [setUp(undefined, 1).admission, setUp(VALID, undefined).admission]) {
      expect(admission.health()).toEqual({ status: 'DOWN', details: { reason: 'not read yet' } });
    }
  });
});

test('when an older pod goes the next moves up by itself; said once', () => {
  const { admission, log, goes } = setUp(VALID, 5);
  const refused: boolean[] = [];
  admission.on('change', () => refused.push(admission.refusal !== undefined));
  for (let count = 0; count < 3; count += 1) goes();
  expect(refused).toEqual([true, false, false]);
  expect(log.entries().map(({ level, msg }) => [level, msg])).toEqual([
    ['error', 'this pod takes no sessions and no transfers: beyond the limits of the license'],
    ['info', 'this pod is within the limits of the license again'],
  ]);
});

test('a larger license gives a place, a smaller one takes it', () => {
  const { admission, license } = setUp(VALID, 4);
  const change = (status: Partial<LicenseStatus>): boolean => {
    Object.assign(license, { status });
    license.emit('change', status as LicenseStatus);
    return admission.refusal === undefined;
  };
  expect(admission.refusal).toBeDefined();
  expect(change({ ...VALID, maxPodsPerCluster: -1 })).toBe(true);
  expect(change({ ...VALID, maxPodsPerCluster: 4 })).toBe(true);
  expect(change(VALID)).toBe(false);
});

describe('metrics', () => {
  test.each<[string, Partial<LicenseStatus> | undefined, number | undefined, boolean | undefined, readonly string[]]>([
    [
      'licensed',
      ...([VALID, 2, true] as const),
      [
        'license_days_remaining 90',
        'license_blocked 0',
        'cluster_pods 2',
        'cluster_leader 1',
        'pod_admitted 1',
        'redis_up 1',
      ],
    ],
    [
      'blocked, Redis lost',
      ...([BLOCKED, 1, false] as const),
      [
        'license_days_remaining 0',
        'license_blocked 1',
        'cluster_pods 1',
        'cluster_leader 1',
        'pod_admitted 0',
        'redis_up 0',
      ],
    ],
    [
      'beyond the limits, without Redis',
      ...([VALID, 4, undefined] as const),
      ['license_days_remaining 90', 'license_blocked 0', 'cluster_pods 4', 'cluster_leader 1', 'pod_admitted 0'],
    ],
    ['nothing known yet', ...([undefined, undefined, undefined] as const), ['cluster_leader 1', 'pod_admitted 0']],
  ])('%s', async (_, status, number, redis, lines) => {
    expect(await setUp(status, number, redis).figures()).toEqual(lines.map((line) => `pesit_${line}`));
  });
});

test('a pod that is alone is within every license', () => {
  const pod = { app: 'server', cluster: 'c', namespace: 'default', name: 'n', instance: 'i' } as const;
  const { license, log } = setUp({ ...VALID, maxPodsPerCluster: 1 }, 1);
  const cluster = { members: new SingleMember(pod), redisConnected: undefined };
  expect(new Admission({ license, cluster, logger: log.logger }).refusal).toBeUndefined();
});
