import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { DistantNetwork } from '../src/distant-network.js';
import { plotWindows } from '../src/plot.js';
import { formatWindows, sizeOf, windowRows, type WindowResult } from '../src/windows.js';

describe('a network with a distance', () => {
  test('bytes come whole, in order and not before their time, and the end after them', async () => {
    const sent = randomBytes(300_000);
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      const hash = createHash('sha256');
      socket.on('data', (bytes: Buffer) => hash.update(bytes));
      socket.on('end', () => socket.end(hash.digest('hex')));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const network = await DistantNetwork.open((server.address() as AddressInfo).port, 20);
    const began = performance.now();
    const socket = connect({ host: '127.0.0.1', port: network.port, allowHalfOpen: true });
    socket.end(sent);
    let answer = '';
    socket.setEncoding('latin1').on('data', (text: string) => (answer += text));
    await once(socket, 'end');
    expect(answer).toBe(createHash('sha256').update(sent).digest('hex'));
    expect(performance.now() - began).toBeGreaterThanOrEqual(20);
    network.close();
    server.close();
    await once(server, 'close');
  });
});

describe('rows of intervals and windows', () => {
  const rows = windowRows('disk');

  test('no name twice; the rows that the reach names are there', () => {
    const names = rows.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(
      expect.arrayContaining([
        'disk-checkpoint-1024x16',
        'disk-none-1024x16',
        'disk-end-32x64',
        'disk-checkpoint-1024x16-20ms',
        'disk-checkpoint-32x2-20ms',
      ]),
    );
    expect(windowRows('memory').every(({ roundTripMs }) => roundTripMs === 0)).toBe(true);
  });

  test('a file over a distance is as large as some seconds carry', () => {
    const sizes = ['disk-checkpoint-32x2-20ms', 'disk-checkpoint-4096x16-5ms', 'disk-end-32x64'].map((wanted) =>
      sizeOf(
        rows.find(({ name }) => name === wanted)!,
        2 ** 28,
      ),
    );
    // 64 KB each 20 ms for 2 s are 6.5 MB.
    expect(sizes).toEqual([2 ** 22, 2 ** 28, 2 ** 28]);
  });

  test('a table and a picture of them', () => {
    const results = rows.map((row): WindowResult => ({ ...row, bytes: 1, mbPerSecond: 120, ratioToNone: 0.91 }));
    expect(formatWindows(results)).toContain('1024 KB × 16');
    expect(formatWindows(results)).toContain('120 (0.91)');
    const svg = plotWindows(results);
    expect(svg.match(/<polyline/g)).toHaveLength(10);
    expect(svg).not.toContain('NaN');
  });
});
