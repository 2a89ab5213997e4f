/** `transfer.*-size`: how much of a file is read, sent, received and written at a time. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { watchFiles } from './support/faults.js';
import { bytes, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, ORF, READ, select } from './support/steps.js';

const SIZE = 200_000;

withDatabase((harness) => {
  const node = useNode(harness, {
    settings: {
      'transfer.sync-points-enabled': false,
      'transfer.chunk-size': 20_000,
      'transfer.read-buffer-size': 40_000,
      'transfer.write-buffer-size': 8192,
    },
  });

  test('a file is sent in bursts of the chunk size', async () => {
    await writeFile(join(node().data, 'OUT/out/file'), bytes(SIZE));
    const measured = watchFiles();
    try {
      const peer = await RawPeer.open(node().port, CONNECT, select('OUT'), ORF, READ);
      for (let received = 0; received < SIZE;) received += ((await peer.next())?.length ?? SIZE) - 6;
      peer.socket.destroy();
    } finally {
      measured.stop();
    }
    expect(Math.max(...measured.read)).toBeLessThanOrEqual(20_000);
    expect(Math.max(...measured.read)).toBeGreaterThan(12_000);
    await node().ended();
  });

  test('a received file is written in pieces of the write buffer size', async () => {
    const content = bytes(SIZE);
    const session = await node().connect();
    const measured = watchFiles();
    try {
      await node().send(session, 'IN', content);
    } finally {
      measured.stop();
    }
    expect(await node().received('IN')).toEqual([content]);
    expect(Math.max(...measured.written)).toBe(8192);
  });
});
