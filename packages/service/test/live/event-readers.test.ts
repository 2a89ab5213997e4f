/** Readers of server-sent events over real sockets, and the log of events that they come back to. */
import { once } from 'node:events';
import { connect } from 'node:net';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import express from 'express';
import type { Request, Response } from 'express';

import { rememberCheck } from '../../src/auth/still-in.js';
import { EventLog, EventReaders, eventText, listen, PeriodicWork } from '../../src/index.js';
import type { EventReader, EventReadersOptions, HttpServer } from '../../src/index.js';
import { silentLogger, TestEventReader } from '../../src/testing/index.js';

describe('EventLog', () => {
  test('events behind an id are given again, in their order', () => {
    const log = new EventLog();
    const begin = log.lastId;
    const [first, second] = [log.add('1', 'transfer', { a: 1 }), log.add('2', 'transfer', { a: 2 })];
    expect(log.since(begin)?.map(({ about }) => about)).toEqual(['1', '2']);
    expect(log.since(first.id)?.map(({ text }) => String(text))).toEqual([
      `id: ${second.id}\nevent: transfer\ndata: {"a":2}\n\n`,
    ]);
    expect(log.since(second.id)).toEqual([]);
  });

  test.each(['', 'x', '1', '000000000000-1', '-1', '-'])('an id of somebody else is not known: %j', (id) => {
    const log = new EventLog();
    log.add('1', 'transfer', {});
    expect(log.since(id)).toBeUndefined();
  });

  test.each([
    ['events', { events: 2 }],
    ['bytes', { bytes: 120 }],
  ])('bounded by %s: an id that is too old is not known', (_, most) => {
    const log = new EventLog(most);
    const ids = [1, 2, 3].map((a) => log.add(String(a), 'transfer', { a }).id);
    expect(log.since(ids[0] ?? '')).toHaveLength(2);
    log.add('4', 'transfer', { a: 4 });
    expect(log.since(ids[0] ?? '')).toBeUndefined();
    expect(log.since(ids[1] ?? '')).toHaveLength(2);
  });

  test('after something that was not told, no earlier id is known', () => {
    const log = new EventLog();
    const { id } = log.add('1', 'transfer', {});
    log.forget();
    expect(log.since(id)).toBeUndefined();
    expect(log.since(log.lastId)).toEqual([]);
  });
});

describe('EventReaders', () => {
  let periodic: PeriodicWork;
  let readers: EventReaders;
  let http: HttpServer;
  let check: () => { username: string; role: 'viewer' } | undefined;
  const opened: EventReader[] = [];
  const responses: Response[] = [];
  let gone: number;

  const start = async (options: Partial<EventReadersOptions> = {}): Promise<void> => {
    periodic = new PeriodicWork({ logger: silentLogger });
    readers = new EventReaders({ periodic, most: () => 3, heartbeatMs: 20, ...options });
    const app = express();
    app.get('/events', (req: Request, res: Response) => {
      rememberCheck(req, () => check());
      responses.push(res);
      try {
        opened.push(readers.open(req, res, () => gone++));
      } catch {
        res.status(503).end();
      }
    });
    http = await listen(app, { host: '127.0.0.1', port: 0 });
    periodic.start();
  };

  beforeEach(() => {
    check = () => ({ username: 'lea', role: 'viewer' });
    gone = 0;
    opened.length = responses.length = 0;
  });
  afterEach(async () => {
    await readers.close();
    await periodic.stop();
    await http.close(0);
  });

  const open = (): Promise<TestEventReader> => TestEventReader.open(http.port, '/events', {});

  test('events, then heartbeats; one who goes is forgotten', async () => {
    await start();
    const reader = await open();
    opened[0]?.send(eventText({ id: 'x-1', event: 'transfer', data: { text: 'é\nü' } }));
    expect(await reader.next()).toEqual({ id: 'x-1', event: 'transfer', data: { text: 'é\nü' } });
    await reader.comment();
    expect(reader.text.startsWith('retry: 2000\n\n')).toBe(true);
    const closed = once(responses[0] as Response, 'close');
    reader.close();
    await closed;
    expect([readers.size, gone]).toEqual([0, 1]);
  });

  test('one too many is answered 503, and is let in when another has gone', async () => {
    await start({ most: () => 1 });
    const first = await open();
    expect((await open()).status).toBe(503);
    const closed = once(responses[0] as Response, 'close');
    first.close();
    await closed;
    const next = await open();
    expect([next.status, readers.size]).toEqual([200, 1]);
    next.close();
  });

  test('one who does not read is dropped when too much waits for it: no more than the bound is ever held', async () => {
    // Heartbeats have no part in it.
    await start({ heartbeatMs: 3_600_000 });
    const socket = connect(http.port, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.pause();
    socket.write('GET /events HTTP/1.1\r\nHost: a\r\n\r\n');
    while (responses.length === 0) await new Promise(setImmediate);
    const piece = Buffer.alloc(64 * 1024, 'x');
    let most = 0;
    // What the operating system takes is some megabytes.
    for (let sent = 0; gone === 0 && sent < 4000; sent++) {
      opened[0]?.send(piece);
      most = Math.max(most, responses[0]?.writableLength ?? 0);
      await new Promise(setImmediate);
    }
    expect(gone).toBe(1);
    expect(readers.size).toBe(0);
    expect(most).toBeLessThan(256 * 1024 + 2 * piece.length);
    socket.destroy();
  });

  test('one who does not read little is dropped by the heartbeats', async () => {
    await start({ mostWaiting: Infinity });
    const socket = connect(http.port, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.pause();
    socket.write('GET /events HTTP/1.1\r\nHost: a\r\n\r\n');
    while (responses.length === 0) await new Promise(setImmediate);
    const res = responses[0] as Response;
    const closed = once(res, 'close');
    // Until something waits that the operating system does not take.
    const piece = Buffer.alloc(1024 * 1024, 'x');
    while (res.writableLength < 8 * piece.length && readers.size > 0) {
      opened[0]?.send(piece);
      await new Promise(setImmediate);
    }
    await closed;
    expect([readers.size, gone]).toEqual([0, 1]);
    socket.destroy();
  });

  test('the answer ends when its credentials are withdrawn, and stays while they cannot be checked', async () => {
    await start();
    const reader = await open();
    check = () => {
      throw new Error('too many checks');
    };
    await reader.comment();
    await reader.comment();
    expect(readers.size).toBe(1);
    check = () => undefined;
    await reader.over();
    expect(reader.status).toBe(200);
  });

  test('the end of the service ends all answers, and refuses the next', async () => {
    await start();
    const all = [await open(), await open()];
    await readers.close();
    for (const reader of all) await reader.over();
    expect((await open()).status).toBe(503);
  });
});
