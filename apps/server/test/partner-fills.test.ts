/** A partner that is who it says to be, and asks for what it may not have, as often as it can. */
import { describe, expect, test } from '@jest/globals';
import { summaryOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, create, message, select } from './support/steps.js';
import type { Step } from './support/steps.js';

const SESSIONS = 8;

withDatabase((harness) => {
  const node = useNode(harness);

  /** Each session says its share of the steps, one after the other. @returns the last answers */
  const ask = async (count: number, stepOf: (n: number) => Step): Promise<readonly string[]> => {
    const share = count / SESSIONS;
    return Promise.all(
      Array.from({ length: SESSIONS }, async (_, session) => {
        const peer = await RawPeer.open(node().port, CONNECT);
        let answer: Buffer | undefined;
        for (let n = session * share; n < (session + 1) * share; n++) answer = await peer.send(stepOf(n));
        peer.socket.destroy();
        return summaryOf(answer);
      }),
    );
  };

  /** What the tables and indexes of this app take, bytes. */
  const size = async (): Promise<number> => {
    const { rows } = await node().database.knex.raw<{ rows: [{ bytes: number }] }>(
      `select sum(pg_total_relation_size(c.oid))::bigint as bytes from pg_class c
       join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'pesit_server' and c.relkind = 'r'`,
    );
    return rows[0].bytes;
  };

  const lines = (text: string) =>
    node()
      .log.entries()
      .filter(({ msg }) => msg === text);

  describe('10,000 refused CREATEs', () => {
    test('take eleven records, a statement a second and eleven log lines; all of them are counted', async () => {
      const { knex } = node().database;
      let writes = 0;
      const count = ({ sql }: { readonly sql: string }): void => {
        // The sums of the history are made each minute, refusals or not.
        if (/^\s*(?:insert|update|with)/i.test(sql) && /\btransfers\b/.test(sql) && !sql.includes('transfer_sums'))
          writes += 1;
      };
      const logged = lines('transfer refused').length;
      const before = await size();
      const began = performance.now();
      knex.on('query', count);
      const request = create({ fileName: 'NOWHERE', label: 'é'.repeat(512), freeMessage: Buffer.alloc(30_000, 'x') });
      const answers = await ask(10_000, () => request);
      knex.off('query', count);
      // One look a second, whose interval moves by a tenth either way, and one at each end.
      const looks = Math.floor((performance.now() - began) / 900) + 2;
      expect(new Set(answers)).toEqual(new Set(['ACK(CREATE) 2-226']));
      expect(writes).toBeLessThanOrEqual(11 + looks);
      const records = await until(async () => {
        const all = await node().history('&virtualFileId=NOWHERE');
        const total = all.reduce((sum, { occurrences }) => sum + (occurrences as number), 0);
        return total === 10_000 ? all : undefined;
      });
      expect(records).toHaveLength(11);
      expect(records[0]).toMatchObject({
        ...{ status: 'FAILED', diagnostic: '2-226', occurrences: 9990, freeMessage: null },
        lastOccurrence: expect.stringMatching(/^\d{4}-.*Z$/),
        errorMessage: expect.stringMatching(/; more of the same are counted in this record$/),
      });
      expect(records[1]).toMatchObject({ occurrences: 1, lastOccurrence: null });
      expect((await size()) - before).toBeLessThan(256 * 1024);
      expect(lines('transfer refused')).toHaveLength(logged + 11);
    }, 120_000);
  });

  test('ever new names: a thousand records an hour, and one for the rest', async () => {
    await ask(1200, (n) => select(`X${n}`));
    const rest = await until(async () => {
      const [newest] = await node().history();
      return newest?.['occurrences'] === 200 ? newest : undefined;
    });
    expect(rest).toMatchObject({ virtualFileId: null, direction: 'SEND', diagnostic: '2-205', partnerId: 'ACME' });
    expect((await node().call('get', '/api/v1/transfers'))['totalElements']).toBe(1001);
  }, 60_000);

  test('messages that are refused leave ten lines a minute', async () => {
    await node().call('put', '/api/v1/config/partners/ACME', { allowedOperations: ['READ'] });
    const before = lines('message refused').length;
    await ask(80, () => message(Buffer.from('hello')));
    expect(lines('message refused')).toHaveLength(before + 10);
  });

  test('what was counted is written when the node stops', async () => {
    await ask(80, () => create({ fileName: 'NOWHERE' }));
    await node().restart();
    const records = await node().history();
    expect(records.map(({ occurrences }) => occurrences)).toEqual([70, ...new Array<number>(10).fill(1)]);
  });
});
