/** `quotaBytes` and `quotaFiles` of a partner: what of it lies here, or is about to, and has not been fetched. */
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { summaryOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';
import { LocalFileStores } from '@pesit-node/storage';

import { WaitingFiles } from '../src/transfers/waiting-files.js';
import { bytes, refusedWith, until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, create, DTF, endOf, ORF, syn, WRITE } from './support/steps.js';
import type { CreateOptions } from './support/steps.js';

withDatabase((harness) => {
  const node = useNode(harness);
  const USED_UP = 'ACK(CREATE) 2-202';
  const ACCEPTED = 'ACK(CREATE) 0-000';

  const quota = (fields: object): Promise<unknown> => node().call('put', '/api/v1/config/partners/ACME', { ...fields });
  const send = async (size: number): Promise<void> => {
    const session = await node().connect();
    await node().send(session, 'IN', bytes(size));
    await session.release();
  };
  /** What a CREATE is told; its file comes to nothing. */
  const asked = async (options: CreateOptions = {}): Promise<string> => {
    const peer = await RawPeer.open(node().port, CONNECT);
    const answer = summaryOf(await peer.send(create({ reservationKb: 0, ...options })));
    peer.socket.destroy();
    if (answer === ACCEPTED) await node().ended();
    return answer;
  };
  const path = (name: string): string => join(node().data, 'IN/in', name);
  const delivered = async (): Promise<readonly string[]> =>
    (await readdir(path('.'))).filter((name) => name !== '.pesit');
  const waitingFiles = () => new WaitingFiles(node().database.knex, new LocalFileStores());
  const waiting = async (): Promise<number> => {
    const [row] = await node().database.knex('waiting_files').count<{ total: number }[]>({ total: '*' });
    return row!.total;
  };

  describe('files', () => {
    test('that wait are counted; one that was fetched makes room', async () => {
      await quota({ quotaFiles: 2 });
      await send(10);
      await send(10);
      expect(await asked()).toBe(USED_UP);
      expect((await node().history())[0]).toMatchObject({
        ...{ status: 'FAILED', diagnostic: '2-202' },
        errorMessage: expect.stringMatching(
          /^the quota of the partner ACME is used up, 2 of 2 files \(quotaFiles\): fetch/,
        ),
      });
      const [first = ''] = await delivered();
      await rm(path(first));
      await until(async () => ((await asked()) === ACCEPTED ? true : undefined));
      await send(10);
      expect(await asked()).toBe(USED_UP);
    });

    test('that are being received count, on every session: of eight that begin at a time one has the last place', async () => {
      await quota({ quotaFiles: 1 });
      const peers = await Promise.all(Array.from({ length: 8 }, () => RawPeer.open(node().port, CONNECT)));
      const answers = await Promise.all(
        peers.map(async (peer, n) => summaryOf(await peer.send(create({ reservationKb: 0, transferId: 20 + n })))),
      );
      expect([...answers].sort()).toEqual([ACCEPTED, ...new Array<string>(7).fill(USED_UP)]);
      for (const peer of peers) peer.socket.destroy();
    });

    test('of other partners do not count', async () => {
      await node().partner('BANK2');
      await quota({ quotaFiles: 1 });
      await node().send(await node().connect({ requester: 'BANK2' }), 'IN', bytes(10));
      expect(await waiting()).toBe(0);
      expect(await asked()).toBe(ACCEPTED);
    });

    test('are counted after a restart of the node, too', async () => {
      await quota({ quotaFiles: 1 });
      await send(10);
      await node().restartListening();
      expect(await asked()).toBe(USED_UP);
    });

    test('that replace each other are one', async () => {
      await node().call('put', '/api/v1/config/files/IN', { receiveFilenamePattern: 'one', overwrite: true });
      await quota({ quotaFiles: 2 });
      for (let n = 0; n < 3; n++) await send(10);
      expect([await waiting(), await delivered()]).toEqual([1, ['one']]);
    });

    test('of a directory that is away are not taken for fetched', async () => {
      await quota({ quotaFiles: 1 });
      await send(10);
      await rename(join(node().data, 'IN'), join(node().data, 'AWAY'));
      await waitingFiles().look('ACME');
      expect(await waiting()).toBe(1);
      await rename(join(node().data, 'AWAY'), join(node().data, 'IN'));
    });
  });

  describe('bytes', () => {
    test('that wait are counted', async () => {
      await quota({ quotaBytes: 1000 });
      await send(600);
      expect(await asked()).toBe(ACCEPTED);
      await send(400);
      expect(await asked()).toBe(USED_UP);
      expect((await node().history())[0]!.errorMessage).toMatch(/1000 of 1000 bytes \(quotaBytes\): fetch/);
    });

    test('that are announced are counted at CREATE, and while the file runs', async () => {
      await quota({ quotaBytes: 20_480 });
      expect(await asked({ reservationKb: 22 })).toBe(USED_UP);
      const peer = await RawPeer.open(node().port, CONNECT, create({ reservationKb: 16, transferId: 20 }));
      expect(await asked({ reservationKb: 8 })).toBe(USED_UP);
      expect(await asked({ reservationKb: 4 })).toBe(ACCEPTED);
      peer.socket.destroy();
    });

    test('that nobody announced interrupt their file (2-202); it goes on when files were fetched', async () => {
      await quota({ quotaBytes: 70 });
      await send(30);
      const peer = await RawPeer.open(node().port, CONNECT, create({ reservationKb: 0 }), ORF, WRITE, DTF, syn(1), DTF);
      const told = await peer.send(syn(2));
      expect(summaryOf(told)).toBe('IDT 2-202');
      peer.socket.destroy();
      expect(await node().ended()).toMatchObject({ status: 'FAILED', diagnostic: '2-202', restartable: true });
      const again = () => RawPeer.open(node().port, CONNECT, create({ reservationKb: 0, restarted: true }), ORF);
      const [fetched = ''] = await delivered();
      await rm(path(fetched));
      await waitingFiles().look('ACME');
      const goesOn = await again();
      expect(summaryOf(await goesOn.sendAll(WRITE, DTF, ...endOf(2)))).toBe('ACK(TRANS.END) 0-000');
      goesOn.socket.destroy();
      expect(await node().ended()).toMatchObject({ status: 'COMPLETED', attempts: 2 });
    });

    test('that are staged for a restart are counted, for their own restart they are not', async () => {
      await quota({ quotaFiles: 1 });
      const peer = await RawPeer.open(node().port, CONNECT, create({ reservationKb: 0 }), ORF, WRITE, DTF, syn(1));
      peer.socket.resetAndDestroy();
      expect(await node().ended()).toMatchObject({ restartable: true, syncPoint: 1 });
      expect(await asked({ transferId: 10 })).toBe(USED_UP);
      const goesOn = await RawPeer.open(
        node().port,
        CONNECT,
        create({ reservationKb: 0, restarted: true }),
        ORF,
        WRITE,
      );
      expect(summaryOf(await goesOn.sendAll(DTF, ...endOf(2)))).toBe('ACK(TRANS.END) 0-000');
      goesOn.socket.destroy();
    });

    test('of two that were interrupted, each goes on as if the other were not staged', async () => {
      await quota({ quotaFiles: 2 });
      for (const transferId of [9, 10]) {
        const begun = create({ reservationKb: 0, transferId });
        const peer = await RawPeer.open(node().port, CONNECT, begun, ORF, WRITE, DTF, syn(1));
        peer.socket.resetAndDestroy();
        expect(await node().ended()).toMatchObject({ restartable: true, syncPoint: 1 });
      }
      await quota({ quotaFiles: 1 });
      const goesOn = await RawPeer.open(node().port, CONNECT);
      const restart = (transferId: number) => create({ reservationKb: 0, transferId, restarted: true });
      expect(summaryOf(await goesOn.sendAll(restart(10), ORF, WRITE, DTF, ...endOf(2)))).toBe('ACK(TRANS.END) 0-000');
      goesOn.socket.destroy();
      expect(await asked({ transferId: 9, restarted: true })).toBe(USED_UP);
    });

    test('of files that ran at a time are asked for once more at the end of each', async () => {
      await quota({ quotaBytes: 60_000_000 });
      const session = await node().connect({ syncPoints: { intervalKb: 1024, window: 16 } });
      // Two of them have room by themselves, and none for the other.
      const other = await node().connect({ syncPoints: { intervalKb: 1024, window: 16 } });
      const large = { recordLength: 32_000 };
      const both = await Promise.allSettled([
        node().send(session, 'IN', bytes(40_000_000), large),
        node().send(other, 'IN', bytes(40_000_000), large),
      ]);
      const refused = both.filter(({ status }) => status === 'rejected');
      expect(refused).toContainEqual(expect.objectContaining({ reason: refusedWith('2-202') }));
      expect((await delivered()).length).toBeLessThanOrEqual(1);
      expect((await node().history('&restartable=true'))[0]).toMatchObject({ diagnostic: '2-202' });
    });
  });

  test('what a partner without a quota any more has waiting is forgotten', async () => {
    await quota({ quotaFiles: 1 });
    await send(10);
    const files = waitingFiles();
    await files.forgetUnlimited();
    expect(await waiting()).toBe(1);
    await quota({ quotaFiles: null });
    expect(await asked()).toBe(ACCEPTED);
    await files.forgetUnlimited();
    expect(await waiting()).toBe(0);
  });
});
