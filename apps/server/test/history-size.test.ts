/** What a partner can put into one record of the history, and what a page of them comes to. */
import { describe, expect, test } from '@jest/globals';
import { fpdu, pi } from '@pesit-node/protocol/testing';
import { migrate } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';

import { MIGRATIONS } from '../src/migrations/index.js';
import { useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, create, DATA, DTF, ORF, select, step, transEnd, WRITE } from './support/steps.js';

/** Bytes of JSON: eight kilobytes for each record. */
const PAGE = 500 * 8_192;

withDatabase((harness) => {
  const node = useNode(harness);

  /** Everything that a request may carry, at its longest; `"` takes two bytes in JSON. */
  const LONGEST = {
    ...{ label: 'é'.repeat(512), originalSender: 'é'.repeat(24), finalReceiver: 'é'.repeat(24) },
    ...{ creationDate: '261121093015', freeMessage: Buffer.alloc(60_000, '"') },
  };
  const { freeMessage, originalSender, finalReceiver } = LONGEST;

  const kept = async (): Promise<number> => {
    const { rows } = await node().database.knex.raw<{ rows: [{ bytes: number }] }>(
      `select coalesce(length(free_message), 0) as bytes from transfers order by id desc limit 1`,
    );
    return rows[0].bytes;
  };

  describe('of a long PI 99', () => {
    test('254 bytes are kept', async () => {
      const peer = await RawPeer.open(node().port, CONNECT, create(LONGEST));
      expect(await kept()).toBe(254);
      peer.socket.destroy();
    });

    test.each([
      ['CREATE', create({ ...LONGEST, fileName: 'NOWHERE' })],
      ['SELECT', select('NOWHERE', { originalSender, finalReceiver, freeMessage })],
    ])('nothing of a refused %s', async (_name, request) => {
      const peer = await RawPeer.open(node().port, CONNECT, request);
      expect((await node().history())[0]).toMatchObject({
        status: 'FAILED',
        virtualFileId: 'NOWHERE',
        freeMessage: null,
      });
      peer.socket.destroy();
    });
  });

  test(`a page of 500 of the longest records stays below ${PAGE} bytes`, async () => {
    const speaking = step('DTF.END', (y) => fpdu('DTF.END', y, 0, pi(2, '000000'), pi(29, Buffer.alloc(4096, '"'))));
    const peer = await RawPeer.open(node().port, CONNECT, create(LONGEST), ORF, WRITE, DTF, {
      ...speaking,
      answered: false,
    });
    // Counts that do not agree.
    await peer.send(transEnd(DATA.length + 1, 1));
    peer.socket.destroy();
    const { id, diagnosticComplement } = await node().ended();
    expect(diagnosticComplement).toBe('"'.repeat(254));
    const { knex } = node().database;
    await knex('transfers')
      .where({ id })
      .update({ error_message: 'é'.repeat(2000) });
    const { rows } = await knex.raw<{ rows: { column_name: string }[] }>(
      `select column_name from information_schema.columns
       where table_name = 'transfers' and table_schema = 'pesit_server' and column_name <> 'id'`,
    );
    const columns = rows.map(({ column_name: name }) => name).join(', ');
    await knex.raw(
      `insert into transfers (${columns}) select ${columns} from transfers, generate_series(1, 500) where id = ?`,
      [id],
    );
    const page = await node().text('get', '/api/v1/transfers?size=500');
    expect((JSON.parse(page) as { content: unknown[] }).content).toHaveLength(500);
    expect(Buffer.byteLength(page)).toBeLessThan(PAGE);
  });

  test('records of earlier versions are cut to the same', async () => {
    const { migrations, ...set } = MIGRATIONS;
    const before = migrations.findIndex(({ name }) => name === '0020-bounded-texts');
    const database = await harness.open({ migrations: [{ ...set, migrations: migrations.slice(0, before) }] });
    const record = (free_message: Buffer | null) => ({
      ...{ partner_id: 'P', direction: 'SEND', status: 'FAILED', diagnostic: '2-226', listener: 'S', node: 'n' },
      ...{ session_id: 's', instance: '00000000-0000-4000-8000-000000000000', remote_address: '::1' },
      ...{ end_time: new Date(), free_message },
    });
    await database
      .knex('transfers')
      .insert([record(Buffer.alloc(60_000, 'x')), record(Buffer.from('short')), record(null)]);
    await migrate(database, MIGRATIONS);
    const kept = await database.knex('transfers').orderBy('id').pluck('free_message');
    expect(kept).toEqual([Buffer.alloc(254, 'x'), Buffer.from('short'), null]);
  });
});
