import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { deferred } from '@pesit-node/ground';
import { listen } from '@pesit-node/service';
import type { HttpServer } from '@pesit-node/service';
import { captureLog } from '@pesit-node/service/testing';

const MAX = 4;

let log = captureLog();
let server: HttpServer;
let sockets: Socket[];
/** Requests to /slow wait for it. */
let release: () => void;

beforeEach(async () => {
  log = captureLog();
  sockets = [];
  const { promise, resolve } = deferred<undefined>();
  release = () => resolve(undefined);
  server = await listen(
    (req, res) => {
      if (req.url === '/slow') void promise.then(() => res.end('slow'));
      else res.end('quick');
    },
    { host: '127.0.0.1', port: 0, maxConnections: () => MAX, logger: log.logger },
  );
});

afterEach(async () => {
  release();
  for (const socket of sockets) socket.destroy();
  await server.close();
});

/** A connection that the server has taken. */
const open = async (localAddress: string): Promise<Socket> => {
  const taken = once(server.server, 'connection');
  const socket = connect({ host: '127.0.0.1', port: server.port, localAddress });
  socket.on('error', () => undefined);
  sockets.push(socket);
  await Promise.all([taken, once(socket, 'connect')]);
  return socket;
};

const ask = async (socket: Socket, path: string): Promise<string> => {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const [data] = (await once(socket, 'data')) as [Buffer];
  return data.toString();
};

/** Its request has reached the server. */
const askSlowly = async (socket: Socket): Promise<void> => {
  const asked = once(server.server, 'request');
  socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
  await asked;
};

test('a newcomer takes the place of the oldest idle connection of the address that has most', async () => {
  const honest = await open('127.0.0.2');
  expect(await ask(honest, '/')).toMatch(/^HTTP\/1\.1 200 .*quick$/s);
  const greedy = [await open('127.0.0.3'), await open('127.0.0.3'), await open('127.0.0.3')];
  const closed = once(greedy[0]!, 'close');
  const newcomer = await open('127.0.0.3');
  await closed;
  expect(await ask(honest, '/')).toMatch(/^HTTP\/1\.1 200 /);
  expect(await ask(newcomer, '/')).toMatch(/^HTTP\/1\.1 200 /);
  expect(log.entries()).toMatchObject([
    { level: 'warn', max: MAX, msg: 'REST connections without a request closed to make room (http.max-connections)' },
  ]);
});

test('a connection whose request runs is left alone; when all have one, the newcomer is told so', async () => {
  const busy = [];
  for (let index = 0; index < MAX; index++) {
    const socket = await open('127.0.0.3');
    await askSlowly(socket);
    busy.push(socket);
  }
  const refused = await open('127.0.0.2');
  const answer = (await once(refused, 'data')) as [Buffer];
  const [head, body] = answer.toString().split('\r\n\r\n') as [string, string];
  expect(head).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n/);
  expect(head).toContain('Retry-After: 5');
  expect(head).toContain('X-Content-Type-Options: nosniff');
  expect(JSON.parse(body)).toEqual({
    error: 'SERVICE_UNAVAILABLE',
    message: 'Too many requests run at a time (http.max-connections): try again',
  });
  const answers = busy.map((socket) => once(socket, 'data'));
  release();
  await Promise.all(answers);
  // Its request is answered: it is idle again, and makes room.
  expect(await ask(await open('127.0.0.2'), '/')).toMatch(/^HTTP\/1\.1 200 /);
});

test('a thousand connections of one address that say nothing do not keep another one out', async () => {
  for (let round = 0; round < 10; round++) {
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = connect({ host: '127.0.0.1', port: server.port, localAddress: '127.0.0.3' });
        socket.on('error', () => undefined);
        sockets.push(socket);
        await once(socket, 'connect');
      }),
    );
  }
  const held = await new Promise<number>((resolve) => {
    server.server.getConnections((_error, count) => {
      resolve(count);
    });
  });
  expect(held).toBeLessThanOrEqual(MAX);
  expect(await ask(await open('127.0.0.2'), '/')).toMatch(/^HTTP\/1\.1 200 /);
  expect(log.lines).toHaveLength(1);
});
