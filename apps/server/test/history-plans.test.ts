/** Every list of the history follows an index: no table is read whole, and nothing that grows with the history is sorted. */
import { describe, expect, test } from '@jest/globals';
import { plansOf, withDatabase } from '@pesit-node/service/testing';

import { useRest } from './support/rest.js';

const KEY = '1763719200000000.17';

withDatabase((harness) => {
  const rest = useRest(harness);

  const plans = (query: string): Promise<readonly string[]> =>
    plansOf(rest.database.knex, 'transfers', async () => {
      expect((await rest.get(`/api/v1/transfers?${query}`)).status).toBe(200);
    });

  describe('an index has the records of', () => {
    test.each<[string, string]>([
      ['', 'transfers_direction_idx'],
      ['page=7&size=500', 'transfers_direction_idx'],
      ['sort=startTime,asc', 'transfers_direction_idx'],
      [`after=${KEY}`, 'transfers_direction_idx'],
      ['from=2026-11-01&to=2026-11-20', 'transfers_direction_idx'],
      ['direction=SEND', 'transfers_direction_idx'],
      ['partnerId=ACME', 'transfers_partner_id_idx'],
      [`partnerId=ACME&after=${KEY}&sort=startTime,asc&from=2026-11-01`, 'transfers_partner_id_idx'],
      ['virtualFileId=IN', 'transfers_virtual_file_id_idx'],
      ['status=FAILED', 'transfers_failed_idx'],
      ['status=CANCELLED', 'transfers_failed_idx'],
      ['diagnostic=2-205', 'transfers_diagnostic_idx'],
      ['type=MESSAGE', 'transfers_messages_idx'],
      // These are looked at one by one.
      ['listener=S1', 'transfers_direction_idx'],
      ['status=COMPLETED', 'transfers_direction_idx'],
      ['q=invoice', 'transfers_direction_idx'],
    ])('%j', async (query, index) => {
      const found = await plans(query);
      expect(found.length).toBeGreaterThan(1);
      for (const plan of found) {
        expect(plan).toContain(index);
        expect(plan).not.toMatch(/-> {2}Sort\b|^Sort\b/m);
      }
    });

    // Few run, or can be restarted: these are sorted.
    test.each<[string, string]>([
      ['status=IN_PROGRESS', 'transfers_running_idx'],
      ['restartable=true', 'transfers_restartable_idx'],
    ])('%j', async (query, index) => {
      for (const plan of await plans(query)) {
        expect(plan).toContain(index);
        expect(plan).not.toContain('Seq Scan');
      }
    });
  });

  test('no index has a column that progress is written to: such updates touch the record alone', async () => {
    const { rows } = await rest.database.knex.raw<{ rows: { columns: readonly string[] }[] }>(
      `select array_agg(distinct a.attname::text) as columns from pg_index i join pg_attribute a on a.attrelid = i.indrelid
         and (a.attnum = any (i.indkey::int2[]) or pg_get_expr(i.indpred, i.indrelid) ~ ('\\y' || a.attname || '\\y'))
       where i.indrelid = 'pesit_server.transfers'::regclass`,
    );
    const columns = rows[0]?.columns ?? [];
    expect(columns).toContain('start_time');
    for (const column of ['bytes_transferred', 'articles', 'sync_point', 'delivering', 'size', 'checksum', 'path']) {
      expect(columns).not.toContain(column);
    }
  });
});
