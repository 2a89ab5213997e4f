/** Old records of the inbound history, on the tables of this app. */
import { expect, test } from '@jest/globals';
import { HistoryRetention, PeriodicWork } from '@pesit-node/service';
import { silentLogger, withDatabase } from '@pesit-node/service/testing';

import { HISTORY } from '../src/transfers/history.js';
import { until, useNode } from './support/node.js';

withDatabase((harness) => {
  const node = useNode(harness);

  interface Work {
    readonly name: string;
    readonly lastEnd: string | null;
  }
  /** What the node itself does of it. */
  const own = async (): Promise<Work | undefined> => {
    const { periodicWork } = (await node().call('get', '/actuator/info')) as { readonly periodicWork: readonly Work[] };
    return periodicWork.find(({ name }) => name === 'removal of old records of the history');
  };

  test('are removed; those that run, or can be restarted, stay', async () => {
    // The node looked when it started: it must not find what is here for the one of the test.
    await until(async () => (await own())?.lastEnd ?? undefined);
    const { knex } = node().database;
    const insert = async (status: string, days: number, restartable = false): Promise<number> => {
      const time = knex.raw(`now() - make_interval(days => ?)`, [days]);
      const [row] = await knex('transfers')
        .insert({
          ...{
            partner_id: 'P',
            direction: days % 2 === 0 ? 'SEND' : 'RECEIVE',
            listener: 'S',
            node: 'n',
            session_id: 's',
          },
          ...{ instance: '00000000-0000-4000-8000-000000000000', remote_address: '::1', start_time: time },
          ...{ status: status === 'COMPLETED' ? 'IN_PROGRESS' : status, restartable, diagnostic: '2-205' },
          end_time: status === 'FAILED' ? time : null,
        })
        .returning<{ id: number }[]>('id');
      if (status === 'COMPLETED') {
        await knex('transfers').where({ id: row!.id }).update({ status, end_time: time, diagnostic: '0-000' });
      }
      return row!.id;
    };
    const kept = [await insert('COMPLETED', 89), await insert('FAILED', 200, true), await insert('IN_PROGRESS', 300)];
    const removed = [await insert('COMPLETED', 91), await insert('COMPLETED', 92), await insert('FAILED', 91)];
    const retention = new HistoryRetention({
      ...{ knex, asLeader: (work) => work(knex), table: HISTORY, days: () => 90, batch: 2, logger: silentLogger },
      periodic: new PeriodicWork({ logger: silentLogger }),
    });
    expect(await retention.run()).toEqual({ COMPLETED: 2, FAILED: 1, CANCELLED: 0 });
    const left = await knex('transfers').orderBy('id').pluck<number[]>('id');
    expect(left).toEqual(kept);
    expect(left).not.toEqual(expect.arrayContaining(removed));
  });

  test('the node does it by itself', async () => {
    expect(await own()).toBeDefined();
  });
});
