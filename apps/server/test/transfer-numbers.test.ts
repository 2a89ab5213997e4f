import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { beforeEach, expect, test } from '@jest/globals';
import { migrate } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';

import { MIGRATIONS } from '../src/migrations/index.js';
import { bytes, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, create, DTF, ORF, syn, WRITE } from './support/steps.js';

/** The last number of 32 bits. */
const LAST_INTEGER = 2_147_483_647;

withDatabase((harness) => {
  const node = useNode(harness, { progressMs: 10 });

  const countFrom = (id: number) =>
    node().database.knex.raw(`alter table transfers alter column id restart with ${id}`);

  beforeEach(() => countFrom(LAST_INTEGER + 1));

  test('a record beyond 2^31 is written, its progress noted, and answered as a JSON number', async () => {
    const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF, syn(1));
    const running = await node().record(({ bytesTransferred }) => Number(bytesTransferred) > 0);
    expect(running).toMatchObject({ id: LAST_INTEGER + 1, status: 'IN_PROGRESS' });
    peer.socket.destroy();
    const { id } = await node().ended();
    expect(await node().text('get', `/api/v1/transfers/${id}`)).toMatch(/^\{"id":2147483648,/);
  });

  test('so is what a partner has read, and the points of a file that is read compressed', async () => {
    const { knex } = node().database;
    await node().virtualFile('TEXT', { text: true, compression: 'both', recordLength: 80 });
    const lines = Array.from({ length: 5000 }, () => `${bytes(30).toString('hex')}\n`);
    await writeFile(join(node().data, 'TEXT/out/data'), lines.join(''));
    await node().receive(await node().connect(), 'TEXT', { compression: 3 });
    expect(await knex('sent_files').pluck('transfer')).toEqual([LAST_INTEGER + 1]);
    expect(new Set(await knex('sent_points').pluck('transfer'))).toEqual(new Set([LAST_INTEGER + 1]));
  });

  test('numbers end at 2^53 - 1, the last that a JSON number holds exactly', async () => {
    await countFrom(Number.MAX_SAFE_INTEGER);
    const session = await node().connect();
    await node().send(session, 'IN', Buffer.from('last'));
    const [record] = await node().history();
    expect(record).toMatchObject({ id: Number.MAX_SAFE_INTEGER, status: 'COMPLETED' });
    expect(await node().call('get', `/api/v1/transfers/${Number.MAX_SAFE_INTEGER}`)).toMatchObject(record!);
    await expect(node().call('get', '/api/v1/transfers/9007199254740992')).rejects.toThrow(
      /400.*expected a positive integer up to 9007199254740991/,
    );
  });

  test('records that are there already keep their numbers, and the next one follows them', async () => {
    const { migrations, ...set } = MIGRATIONS;
    const before = migrations.findIndex(({ name }) => name === '0013-transfer-numbers');
    const database = await harness.open({ migrations: [{ ...set, migrations: migrations.slice(0, before) }] });
    const insert = async (): Promise<unknown> =>
      (await database.knex('transfers').insert(RECORD).returning<{ id: number }[]>('id'))[0]?.id;
    expect([await insert(), await insert()]).toEqual([1, 2]);
    await migrate(database, MIGRATIONS);
    expect(await insert()).toBe(3);
    expect(await database.knex('transfers').orderBy('id').pluck('id')).toEqual([1, 2, 3]);
  });
});

const RECORD = {
  ...{ partner_id: 'P', direction: 'SEND', status: 'IN_PROGRESS', listener: 'S', node: 'n', session_id: 's' },
  ...{ instance: '00000000-0000-4000-8000-000000000000', remote_address: '::1' },
};
