/** What a partner can put into one record of the history, and what a page of them comes to. */
import { afterAll, expect, test } from '@jest/globals';
import { migrate } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';

import { CLIENT_MIGRATIONS } from '../src/migrations/index.js';
import { GOOD } from './support/raw-server.js';
import { expectNoSecrets } from './support/service.js';
import { useWorld } from './support/world.js';

afterAll(expectNoSecrets);

/** Bytes of JSON: eight kilobytes for each record. */
const PAGE = 500 * 8_192;
/** 60,000 bytes of `"`, which takes two in JSON. */
const TALK = `63ffea60${'22'.repeat(60_000)}`;
const COMPLEMENT = `1dff1000${'22'.repeat(4096)}`;
const NO = '0203020005';

withDatabase((harness) => {
  const world = useWorld(harness);

  test(`a page of 500 of the longest records stays below ${PAGE} bytes: texts of messages are with their own records`, async () => {
    const service = await world.service();
    const partner = await world.partner({ message: () => Promise.resolve({ reply: Buffer.alloc(4096, '"') }) });
    await world.remote(service, partner.port);
    const request = { server: 'bank', virtualFile: 'TALK', message: '"'.repeat(65_536), expectReply: true };
    const { body } = await service.api.post('/transfers/message', request);
    expect(body).toMatchObject({ status: 'COMPLETED', message: request.message, reply: '"'.repeat(4096) });
    const server = await world.rawServer({ ...GOOD, SELECT: `ACK(SELECT) ${NO}${COMPLEMENT}${TALK}` });
    await world.remote(service, server.port, { name: 'other' });
    const asked = { server: 'other', originalSender: 'S'.repeat(24), finalReceiver: 'R'.repeat(24) };
    const refused = await world.receive(service, asked);
    const kept = '"'.repeat(254);
    expect(refused).toMatchObject({ status: 'FAILED', diagnosticComplement: kept, answerFreeMessage: kept });
    expect(refused.errorMessage.length).toBeLessThanOrEqual(2000);
    const { knex } = world.database();
    const { rows } = await knex.raw<{ rows: { column_name: string }[] }>(
      `select column_name from information_schema.columns
       where table_name = 'transfers' and table_schema = 'pesit_client'
         and column_name not in ('id', 'idempotency_key') and is_identity = 'NO'`,
    );
    const columns = rows.map(({ column_name: name }) => `"${name}"`).join(', ');
    // As copies they begin with their end, which the triggers refuse.
    await knex.raw(
      `alter table transfers disable trigger user;
       insert into transfers (id, ${columns}) select gen_random_uuid(), ${columns}
       from transfers, generate_series(1, 250);
       alter table transfers enable trigger user;`,
    );
    const page = await service.api.get('/transfers?size=500');
    expect(page.body.content).toHaveLength(500);
    const ofMessage = page.body.content.find(({ type }: { type: string }) => type === 'MESSAGE');
    expect(ofMessage).toMatchObject({ size: 65_536, fileType: 65_535 });
    expect(ofMessage).not.toHaveProperty('message');
    expect(ofMessage).not.toHaveProperty('reply');
    expect(Buffer.byteLength(page.text)).toBeLessThan(PAGE);
  });

  test('records of earlier versions are cut to the same', async () => {
    const { migrations, ...set } = CLIENT_MIGRATIONS;
    const before = migrations.findIndex(({ name }) => name === '0016-bounded-texts');
    const database = await harness.open({ migrations: [{ ...set, migrations: migrations.slice(0, before) }] });
    const long = Buffer.alloc(60_000, 'x');
    // As it has ended; the triggers would have it begin first.
    await database.knex.raw('alter table transfers disable trigger user');
    await database.knex('transfers').insert({
      ...{ id: '00000000-0000-4000-8000-000000000001', type: 'FILE', status: 'CANCELLED', direction: 'RECEIVE' },
      ...{ server_name: 'bank', partner_id: 'P', filename: 'f', settings: '{}', end_time: new Date() },
      ...{ free_message: long, answer_free_message: long, diagnostic_complement: Buffer.from('short') },
    });
    await database.knex.raw('alter table transfers enable trigger user');
    await migrate(database, CLIENT_MIGRATIONS);
    expect(await database.knex('transfers').first()).toMatchObject({
      ...{ free_message: Buffer.alloc(254, 'x'), answer_free_message: Buffer.alloc(254, 'x') },
      diagnostic_complement: Buffer.from('short'),
    });
  });
});
