import { beforeAll, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { MIGRATIONS } from '../src/migrations/index.js';
import { TRANSFER_STATUSES } from '@pesit-node/transfers';

const ALLOWED = new Set([
  'PENDING>IN_PROGRESS',
  'PENDING>FAILED',
  'PENDING>CANCELLED',
  'IN_PROGRESS>COMPLETED',
  'IN_PROGRESS>FAILED',
  'IN_PROGRESS>CANCELLED',
  'FAILED>IN_PROGRESS',
]);

withDatabase((harness) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await harness.open({ migrations: [MIGRATIONS] });
  });

  const insert = async (status: string): Promise<number> => {
    const ended = !['PENDING', 'IN_PROGRESS'].includes(status);
    const [row] = await database
      .knex('transfers')
      .insert({
        partner_id: 'P',
        direction: 'SEND',
        status,
        end_time: ended ? new Date() : null,
        diagnostic: status === 'FAILED' ? '2-205' : null,
        listener: 'S',
        node: 'n',
        instance: '00000000-0000-4000-8000-000000000000',
        session_id: 's',
        remote_address: '::1',
      })
      .returning<{ id: number }[]>('id');
    return row!.id;
  };

  const move = (id: number, status: string, more: object = {}) =>
    database
      .knex('transfers')
      .where({ id })
      .update({
        status,
        diagnostic: '2-223',
        end_time: ['PENDING', 'IN_PROGRESS'].includes(status) ? null : new Date(),
        ...more,
      });

  /** A record in any status, reached by allowed steps. */
  const inStatus = async (status: string): Promise<number> => {
    if (['PENDING', 'IN_PROGRESS', 'FAILED'].includes(status)) return insert(status);
    const id = await insert('IN_PROGRESS');
    await move(id, status);
    return id;
  };

  describe('the database enforces statuses', () => {
    const pairs = TRANSFER_STATUSES.flatMap((from) => TRANSFER_STATUSES.map((to) => [from, to] as const)).filter(
      ([from, to]) => from !== to,
    );

    test.each(pairs)('%s > %s', async (from, to) => {
      const id = await inStatus(from);
      if (ALLOWED.has(`${from}>${to}`)) await expect(move(id, to)).resolves.toBe(1);
      else await expect(move(id, to)).rejects.toMatchObject({ code: '23514' });
    });

    test('a completed record is withdrawn only as such', async () => {
      const id = await inStatus('COMPLETED');
      await expect(move(id, 'FAILED', { withdrawn: true })).resolves.toBe(1);
    });

    test('no record begins completed, ends without a time, fails without a diagnostic, or has another status', async () => {
      await expect(insert('COMPLETED')).rejects.toMatchObject({ code: '23514' });
      await expect(insert('CANCELLED')).rejects.toMatchObject({ code: '23514' });
      await expect(insert('DONE')).rejects.toMatchObject({ code: '23514' });
      const id = await insert('IN_PROGRESS');
      await expect(move(id, 'COMPLETED', { end_time: null })).rejects.toMatchObject({ code: '23514' });
      await expect(move(id, 'FAILED', { diagnostic: null })).rejects.toMatchObject({ code: '23514' });
    });
  });
});
