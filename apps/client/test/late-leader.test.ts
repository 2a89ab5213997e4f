import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { access, mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { useWorld } from './support/world.js';

withDatabase((harness) => {
  const world = useWorld(harness);

  test('a leader that was late sweeps nothing that the database knows of: it is refused', async () => {
    const service = await world.service({ config: { 'cluster.enabled': true } });
    const { leader } = service.cluster;
    if (!leader.isLeader) await once(leader, 'gain');
    // Its own sweep, which it began when it gained the lease, is over before there is something to find.
    await service.exchange.leftovers.stop();
    const { knex } = world.database();
    const claims = knex('requests_under_way');
    await claims
      .clone()
      .insert({ idempotency_key: 'old', request: randomUUID(), until: knex.raw("now() - interval '2 days'") });
    const left = join(service.data, 'received/.pesit', `${randomUUID()}.part`);
    await mkdir(join(left, '..'), { recursive: true });
    await writeFile(left, 'left');
    await utimes(left, new Date(0), new Date(0));
    const isThere = async (): Promise<readonly boolean[]> => [
      (await claims.clone()).length > 0,
      await access(left).then(
        () => true,
        () => false,
      ),
    ];

    // Another one has begun to lead, and this one has not heard of it.
    const leaders = knex('pesit_common.cluster_leaders');
    const later = { epoch: knex.raw('epoch + 1'), until: knex.raw("now() + interval '1 hour'") };
    await leaders.clone().update({ instance: randomUUID(), ...later });
    await expect(service.exchange.leftovers.sweep()).rejects.toThrow(/another one may lead/);
    expect(await isThere()).toEqual([true, true]);

    const again = once(leader, 'gain');
    await leaders.clone().update({ until: knex.raw('now()') });
    await again;
    await service.exchange.leftovers.sweep();
    expect(await isThere()).toEqual([false, false]);
  });
});
