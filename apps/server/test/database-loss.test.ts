import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterEach, describe, expect, test } from '@jest/globals';
import { nameOf } from '@pesit-node/protocol/testing';
import type { PesitRequester } from '@pesit-node/net';
import type { Burst } from '@pesit-node/protocol';
import { findDatabase, holdStatement, loseAnswer, loseDatabase, withDatabase } from '@pesit-node/service/testing';
import { FileSource, formatOf } from '@pesit-node/storage';

import { PASSWORD, refusedWith, until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, create, DTF, ORF, WRITE } from './support/steps.js';

const COMPLETION = /update transfers t set status = 'COMPLETED'/;

withDatabase((harness) => {
  const node = useNode(harness, { patienceMs: 600 });
  afterEach(() => findDatabase(node().database));

  /** Writes a file; `during` runs when the data begin to flow. */
  const sendWhile = async (session: PesitRequester, fileName: string, during: () => void): Promise<void> => {
    const path = join(node().data, 'source');
    await writeFile(path, 'the content');
    const source = await FileSource.open(path, formatOf({}));
    const fill = async (burst: Burst): Promise<boolean> => {
      during();
      return source.fill(burst);
    };
    try {
      await session.sendFile({ request: node().createRequest(fileName), source: { fill } });
    } finally {
      await source.close();
    }
  };

  const partner = () => node().call('get', '/api/v1/config/partners/ACME');

  describe('the database is lost while a partner writes', () => {
    test('and comes back in time: COMPLETED, one file, the partner notices nothing', async () => {
      const session = await node().connect();
      await sendWhile(session, 'IN', () => {
        loseDatabase(node().database);
        setTimeout(() => findDatabase(node().database), 100);
      });
      expect(await node().history()).toEqual([expect.objectContaining({ status: 'COMPLETED', size: 11 })]);
      expect((await node().received('IN')).map(String)).toEqual(['the content']);
    });

    test('and stays away: the partner is told no, the file is taken back, the record says so later', async () => {
      const session = await node().connect();
      const sending = sendWhile(session, 'IN', () => loseDatabase(node().database));
      await expect(sending).rejects.toEqual(refusedWith('2-201'));
      expect(await node().received('IN')).toEqual([]);
      findDatabase(node().database);
      expect(await node().ended()).toMatchObject({ status: 'FAILED', diagnostic: '2-201', checksum: null });
      await node().send(session, 'IN', Buffer.from('the content'));
      expect((await node().received('IN')).map(String)).toEqual(['the content']);
      expect(await partner()).toMatchObject({ transferCount: 1 });
    });

    test('and the file is fetched before it could be taken back: the partner is told that it is here, the record follows', async () => {
      const session = await node().connect();
      const sending = sendWhile(session, 'IN', () => loseDatabase(node().database));
      const [name = ''] = await until(async () => {
        const names = (await readdir(join(node().data, 'IN/in'))).filter((entry) => entry !== '.pesit');
        return names.length > 0 ? names : undefined;
      });
      await rm(join(node().data, 'IN/in', name));
      await sending;
      findDatabase(node().database);
      expect(await node().record(({ status }) => status === 'COMPLETED')).toMatchObject({ size: 11 });
      expect(await node().files('IN/in')).toEqual([]);
      expect(await node().staged('IN')).toEqual([]);
      expect(await partner()).toMatchObject({ transferCount: 1 });
    });

    test('just as it took the commit, and comes back: COMPLETED once', async () => {
      const session = await node().connect();
      await sendWhile(session, 'IN', () => loseAnswer(node().database, COMPLETION));
      expect(await node().history()).toEqual([expect.objectContaining({ status: 'COMPLETED' })]);
      expect(await node().received('IN')).toHaveLength(1);
      expect(await partner()).toMatchObject({ transferCount: 1 });
    });

    test('just as it took the commit, and stays away: what it recorded is withdrawn', async () => {
      const session = await node().connect();
      const { database } = node();
      const sending = sendWhile(session, 'IN', () => loseAnswer(database, COMPLETION, () => loseDatabase(database)));
      await expect(sending).rejects.toEqual(refusedWith('2-201'));
      expect(await node().received('IN')).toEqual([]);
      findDatabase(database);
      expect(await node().record(({ status }) => status === 'FAILED')).toMatchObject({ diagnostic: '2-201' });
      await until(async () => (await node().staged('IN')).length === 0 || undefined);
      expect(await partner()).toMatchObject({ transferCount: 0 });
      expect(await node().call('get', '/api/v1/servers/NODE1/status')).toMatchObject({ totalTransfers: 0 });
    });

    test('a restart that comes before the record is withdrawn does not believe it: the file comes again, and is there', async () => {
      const { database } = node();
      const sending = sendWhile(await node().connect(), 'IN', () =>
        loseAnswer(database, COMPLETION, () => loseDatabase(database)),
      );
      await expect(sending).rejects.toEqual(refusedWith('2-201'));
      findDatabase(database);
      const { held, release } = holdStatement(database, /withdrawn = true/);
      await held;
      const [{ transferId, status } = { transferId: 0, status: '' }] = await node().history();
      expect(status).toBe('COMPLETED');
      const looked = new Promise<void>((resolve) => {
        database.knex.on('query', ({ sql }: { readonly sql: string }) => {
          if (sql.includes('is_known')) resolve();
        });
      });
      const more = { transferId: Number(transferId), restarted: true };
      const sent = node().send(await node().connect(), 'IN', Buffer.from('the content'), more);
      await looked;
      release();
      await sent;
      expect(await node().history()).toEqual([expect.objectContaining({ status: 'COMPLETED', attempts: 2 })]);
      expect((await node().received('IN')).map(String)).toEqual(['the content']);
    });

    test('a file that overwrites stays, for the next attempt to overwrite', async () => {
      await node().virtualFile('ONE', { receiveFilenamePattern: 'one', overwrite: true });
      const session = await node().connect();
      await node().send(session, 'ONE', Buffer.from('before'));
      const sending = sendWhile(session, 'ONE', () => loseDatabase(node().database));
      await expect(sending).rejects.toEqual(refusedWith('2-201'));
      expect(await readFile(join(node().data, 'ONE/in/one'), 'utf8')).toBe('the content');
      findDatabase(node().database);
    });

    test('and the partner too: the record is written when the database is back', async () => {
      const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF);
      loseDatabase(node().database);
      peer.socket.resetAndDestroy();
      await peer.closed();
      findDatabase(node().database);
      expect(await node().ended()).toMatchObject({ status: 'FAILED', diagnostic: '3-310' });
      expect(await node().files('IN/in')).toEqual([]);
    });
  });

  describe('the database is lost before a file', () => {
    test('the partner is told to come again: 2-201', async () => {
      await writeFile(join(node().data, 'OUT/out/x'), 'x');
      const session = await node().connect();
      loseDatabase(node().database);
      await expect(node().send(session, 'IN', Buffer.from('x'))).rejects.toEqual(refusedWith('2-201'));
      await expect(node().receive(session, 'OUT')).rejects.toEqual(refusedWith('2-201'));
      findDatabase(node().database);
      await node().send(session, 'IN', Buffer.from('x'));
      expect((await node().receive(session, 'OUT')).toString()).toBe('x');
      const all = await until(async () => {
        const records = await node().history();
        return records.length === 4 ? records : undefined;
      });
      expect(all.map(({ diagnostic }) => diagnostic).sort()).toEqual(['0-000', '0-000', '2-201', '2-201']);
    });

    test('a new partner is told to call later', async () => {
      const peer = await RawPeer.open(node().port);
      loseDatabase(node().database);
      expect(nameOf(await peer.send(CONNECT))).toBe('RCONNECT');
      peer.socket.destroy();
    });
  });

  describe('the database is lost while a partner reads', () => {
    test('and stays away: told no, and offered the file again', async () => {
      await writeFile(join(node().data, 'OUT/out/x'), 'only once');
      const { database } = node();
      const session = await node().connect();
      loseAnswer(database, COMPLETION, () => loseDatabase(database));
      await expect(node().receive(session, 'OUT')).rejects.toEqual(refusedWith('2-201'));
      findDatabase(database);
      await node().record(({ status }) => status === 'FAILED');
      expect((await node().receive(session, 'OUT')).toString()).toBe('only once');
      await expect(node().receive(session, 'OUT')).rejects.toEqual(refusedWith('2-205'));
    });
  });

  test('nothing of it shows a password', () => {
    expect(node().log.lines.join('\n')).not.toContain(PASSWORD);
  });
});
