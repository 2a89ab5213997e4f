/** A partner that reads, is cut off, and goes on. */
import { createHash } from 'node:crypto';
import { readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import type { SelectRequest } from '@pesit-node/protocol';
import { withDatabase } from '@pesit-node/service/testing';
import { formatOf, StagedFile } from '@pesit-node/storage';

import { bytes, refusedWith, useNode } from './support/node.js';

const sha256 = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;

withDatabase((harness) => {
  const node = useNode(harness, { restartWaitMs: 200 });

  describe('a partner that reads', () => {
    const SIZE = 1_000_000;

    const offer = async (content = bytes(SIZE)): Promise<{ readonly path: string; readonly content: Buffer }> => {
      const path = join(node().data, 'OUT/out/data.bin');
      await writeFile(path, content);
      return { path, content };
    };

    interface Reading {
      readonly staged: StagedFile;
      readonly point: number;
    }

    /** Reads into a staged file that is kept; `stopAfter` bytes the connection is gone. */
    const read = async (more: Partial<SelectRequest>, stopAfter = Infinity): Promise<Reading> => {
      const session = await node().connect();
      const options = { receiveDirectory: node().data, key: 'reading', format: formatOf({}) };
      const { file: staged, point } = await StagedFile.resume(options);
      let received = 0;
      const write = staged.write.bind(staged);
      staged.write = (batch, release) => {
        received += batch.bytes;
        const cut = new PesitError('cut', { fault: 'local', diagnostic: '3-399' });
        // Not in the middle of the session's own work: what it has received before is written first.
        if (received > stopAfter) {
          queueMicrotask(() => {
            session.abort(cut);
          });
        }
        return write(batch, release);
      };
      const request = {
        fileIdentifier: { fileType: 0, fileName: 'OUT' },
        transferId: 0,
        maxEntitySize: 32_768,
        ...more,
      };
      const { number, dataBytes, articles } = point;
      try {
        await session.receiveFile({
          request,
          open: () => Promise.resolve({ from: { number, dataBytes, articles }, sink: staged }),
          stored: async () => {
            await staged.prepareDelivery();
          },
        });
      } finally {
        await staged.release();
      }
      return { staged, point: number };
    };

    const content = async (): Promise<Buffer> => readFile(join(node().data, '.pesit/reading.part'));

    const cutOff = async (): Promise<number> => {
      await expect(read({}, 600_000)).rejects.toMatchObject({ diagnostic: '3-399' });
      const { transferId } = await node().ended();
      return transferId as number;
    };

    test('and is cut off goes on where it says: one record, totals over both attempts', async () => {
      const file = await offer();
      const transferId = await cutOff();
      expect(await node().history()).toEqual([
        expect.objectContaining({ status: 'FAILED', restartable: true, attempts: 1, direction: 'SEND' }),
      ]);
      const { point } = await read({ transferId, restarted: true });
      expect(point).toBeGreaterThan(0);
      expect((await content()).equals(file.content)).toBe(true);
      expect(await node().history()).toEqual([
        expect.objectContaining({
          status: 'COMPLETED',
          attempts: 2,
          size: SIZE,
          bytesTransferred: SIZE,
          articles: Math.ceil(SIZE / 4096),
          checksum: sha256(file.content),
          transferId,
        }),
      ]);
    });

    test('goes on with another entity size, and on again: every attempt places its own points', async () => {
      const file = await offer(bytes(2_000_000));
      const transferId = await cutOff();
      const again = read({ transferId, restarted: true, maxEntitySize: 2048 }, 400_000);
      await expect(again).rejects.toMatchObject({ diagnostic: '3-399' });
      await node().record(({ status, attempts }) => status === 'FAILED' && attempts === 2);
      await read({ transferId, restarted: true });
      expect((await content()).equals(file.content)).toBe(true);
      expect(await node().history()).toEqual([expect.objectContaining({ status: 'COMPLETED', attempts: 3 })]);
    });

    test('goes on when it reads compressed, from a point that follows from no rule', async () => {
      await node().call('put', '/api/v1/config/files/OUT', { compression: 'both', recordLength: 1000 });
      const file = await offer(Buffer.concat(Array.from({ length: 4000 }, () => Buffer.alloc(1000, bytes(400)))));
      await expect(read({ compression: 3 }, 2_000_000)).rejects.toMatchObject({ diagnostic: '3-399' });
      const { transferId } = (await node().ended()) as unknown as { transferId: number };
      const { point } = await read({ transferId, restarted: true, compression: 3 });
      expect(point).toBeGreaterThan(0);
      expect((await content()).equals(file.content)).toBe(true);
      expect(await node().history()).toEqual([
        expect.objectContaining({
          status: 'COMPLETED',
          attempts: 2,
          compression: 'both',
          checksum: sha256(file.content),
        }),
      ]);
    });

    test('never goes on from a place of an attempt that another has overtaken', async () => {
      await node().call('put', '/api/v1/config/files/OUT', { compression: 'both', recordLength: 1000 });
      await offer(Buffer.concat(Array.from({ length: 4000 }, () => Buffer.alloc(1000, bytes(400)))));
      await expect(read({ compression: 3 }, 2_000_000)).rejects.toMatchObject({ diagnostic: '3-399' });
      const { transferId } = (await node().ended()) as unknown as { transferId: number };
      await expect(read({ transferId, restarted: true }, 500_000)).rejects.toMatchObject({ diagnostic: '3-399' });
      await node().record(({ status, attempts }) => status === 'FAILED' && attempts === 2);
      await expect(read({ transferId, restarted: true })).rejects.toEqual(refusedWith('2-214'));
    });

    test('reads on after a restart of the service', async () => {
      const file = await offer();
      const transferId = await cutOff();
      await node().restartListening();
      await read({ transferId, restarted: true });
      expect((await content()).equals(file.content)).toBe(true);
    });

    test('is not given another version of the file: 2-215 with the reason, and the transfer is over', async () => {
      const { path } = await offer();
      const transferId = await cutOff();
      await writeFile(path, bytes(SIZE));
      await utimes(path, 1_000_000_000, 1_000_000_000);
      const again = read({ transferId, restarted: true });
      await expect(again).rejects.toMatchObject({
        diagnostic: '2-215',
        message: expect.stringContaining('the source changed since the first attempt'),
      });
      const [refused, record] = await node().history();
      expect(refused).toMatchObject({ status: 'FAILED', diagnostic: '2-215', restartable: false });
      expect(record).toMatchObject({
        status: 'FAILED',
        restartable: false,
        errorMessage: expect.stringContaining('is no longer the file of the first attempt'),
      });
    });

    test('of a file that is gone is told so: 2-205', async () => {
      const { path } = await offer();
      const transferId = await cutOff();
      await rm(path);
      await expect(read({ transferId, restarted: true })).rejects.toEqual(refusedWith('2-205'));
    });

    test('names a point that was never placed: 2-214', async () => {
      await offer();
      const transferId = await cutOff();
      const session = await node().connect();
      const sink = await StagedFile.create({ receiveDirectory: node().data, key: 'x', format: formatOf({}) });
      const asked = session.receiveFile({
        request: {
          fileIdentifier: { fileType: 0, fileName: 'OUT' },
          transferId,
          restarted: true,
          maxEntitySize: 32_768,
        },
        open: () => Promise.resolve({ from: { number: 99, dataBytes: 99, articles: 99 }, sink }),
        stored: () => Promise.resolve(),
      });
      await expect(asked).rejects.toEqual(refusedWith('2-214'));
      await sink.discard();
    });

    test('has lost the last acknowledgement: sent the tail again, and no record changes', async () => {
      const file = await offer();
      await read({});
      const before = await node().history();
      const { transferId } = before[0]! as unknown as { transferId: number };
      const { point } = await read({ transferId, restarted: true });
      expect(point).toBeGreaterThan(0);
      expect((await content()).equals(file.content)).toBe(true);
      expect(await node().history()).toEqual(before);
    });
  });
});
