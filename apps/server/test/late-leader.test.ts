import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { access, mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { useNode } from './support/node.js';

withDatabase((harness) => {
  const node = useNode(harness, { settings: { 'cluster.enabled': true } });

  test('a leader that was late sweeps nothing: it is refused', async () => {
    const { housekeeping, cluster } = node().node;
    const { leader } = cluster;
    if (!leader.isLeader) await once(leader, 'gain');
    await housekeeping.stop();
    const { knex } = node().database;
    const instance = randomUUID();
    const old = { instance, node: 'gone', machine: 'm', pid: 1, started: '1' };
    await knex('instances').insert({ ...old, seen_at: knex.raw("now() - interval '2 days'") });
    const staging = join(node().data, 'IN/in/.pesit');
    await mkdir(staging, { recursive: true });
    const left = join(staging, `${randomUUID()}.part`);
    await writeFile(left, 'left');
    await utimes(left, new Date(0), new Date(0));
    const isThere = async (): Promise<readonly boolean[]> => [
      (await knex('instances').where({ instance })).length > 0,
      await access(left).then(
        () => true,
        () => false,
      ),
    ];

    // Another one has begun to lead, and this one has not heard of it.
    const leaders = knex('pesit_common.cluster_leaders');
    const later = { epoch: knex.raw('epoch + 1'), until: knex.raw("now() + interval '1 hour'") };
    await leaders.clone().update({ instance: randomUUID(), ...later });
    await expect(housekeeping.sweep()).rejects.toMatchObject({ name: 'NotLeaderError' });
    expect(await isThere()).toEqual([true, true]);

    const again = once(leader, 'gain');
    await leaders.clone().update({ until: knex.raw('now()') });
    await again;
    await housekeeping.sweep();
    expect(await isThere()).toEqual([false, false]);
  });
});
