/** The events of the server app, as a watcher from outside hears them, and in their order. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { watchEvents, withDatabase } from '@pesit-node/service/testing';
import {
  TRANSFER_BEGAN,
  TRANSFER_DELIVERED,
  TRANSFER_ENDED,
  TRANSFER_POINT,
  TRANSFER_WENT_ON,
} from '@pesit-node/transfers';

import { bytes, useNode } from './support/node.js';

const KINDS = [TRANSFER_BEGAN, TRANSFER_WENT_ON, TRANSFER_POINT, TRANSFER_DELIVERED, TRANSFER_ENDED];
const SIZE = 1_000_000;
const INTERVAL = 64 * 1024;

withDatabase((harness) => {
  const node = useNode(harness);
  let watch: ReturnType<typeof watchEvents>;

  beforeEach(() => {
    watch = watchEvents(KINDS);
  });
  afterEach(() => {
    watch.stop();
  });

  /** Those of the last window, of four, may not have been answered. */
  const expectPoints = (): void => {
    const points = watch.heard.filter(({ name }) => name === TRANSFER_POINT.name).map(({ event }) => event.point);
    expect(points.length).toBeGreaterThanOrEqual(Math.floor(SIZE / (INTERVAL + 4096)) - 4);
    expect(points.map(({ number }) => number)).toEqual(points.map((_, index) => index + 1));
    const before = points.map(({ dataBytes }) => dataBytes as number);
    expect(before).toEqual([...new Set(before)].sort((a, b) => a - b));
    expect(before.at(-1)).toBeLessThanOrEqual(SIZE);
  };

  test('a partner writes a file: its points as they are stored, its delivery, its end', async () => {
    const session = await node().connect();
    await node().send(session, 'IN', bytes(SIZE));
    const [record] = await node().history();
    expect(watch.names().filter((name) => name !== TRANSFER_POINT.name)).toEqual([
      ...['pesit:transfer:began', 'pesit:transfer:went-on', 'pesit:transfer:delivered', 'pesit:transfer:ended'],
    ]);
    expect(new Set(watch.heard.map(({ event }) => event.transfer)).size).toBe(1);
    const delivered = watch.heard.find(({ name }) => name === TRANSFER_DELIVERED.name)?.event;
    expect(delivered).toMatchObject({ transfer: { id: record!.id }, size: SIZE, checksum: record!['checksum'] });
    expectPoints();
  });

  test('a partner reads a file: its points as the partner acknowledges them', async () => {
    await writeFile(join(node().data, 'OUT/out/data.bin'), bytes(SIZE));
    const session = await node().connect();
    expect(await node().receive(session, 'OUT')).toHaveLength(SIZE);
    expect(watch.names().filter((name) => name !== TRANSFER_POINT.name)).toEqual([
      ...['pesit:transfer:began', 'pesit:transfer:went-on', 'pesit:transfer:ended'],
    ]);
    expectPoints();
  });

  test('the log has one line a transfer at info; by what a session came the first of its lines says', async () => {
    const lines = async (end: string, ...sizes: readonly number[]) => {
      node().log.clear();
      const session = await node().connect();
      for (const size of sizes) await node().send(session, 'IN', bytes(size));
      const ended = node().log.next(end);
      await session.release();
      await ended;
      return node()
        .log.entries()
        .filter(({ level, session: id }) => level !== 'debug' && id !== undefined);
    };
    const came = { partner: 'ACME', dialect: 'length-prefixed' };
    const sent = await lines('partner disconnected', 10, 20);
    expect(sent).toMatchObject([
      { msg: 'transfer completed', direction: 'RECEIVE', ...came },
      { msg: 'transfer completed', direction: 'RECEIVE' },
    ]);
    expect(sent[1]).not.toHaveProperty('dialect');
    const without = 'partner connected and disconnected without a transfer';
    expect(await lines(without)).toMatchObject([{ msg: without, ...came }]);
  });
});
