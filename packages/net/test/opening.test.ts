/** What comes before a session, on the requester's side: TCP, pre-connection, CONNECT. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import type { Dialect } from '@pesit-node/protocol';
import { PesitRequester } from '../src/index.js';
import type { RequesterOptions } from '../src/index.js';
import { openTransport } from '../src/opening.js';
import type { Connect } from '../src/transport.js';
import { connect, gate, listen, rawServer, rejectionOf } from './support/harness.js';
import { BODIES, complement, diagnostic, diagnosticOf, valueOf } from './support/wire.js';

const DIALECTS: Dialect[] = ['length-prefixed', 'raw'];

const options = (port: number, more: Partial<RequesterOptions> = {}): RequesterOptions => ({
  host: '127.0.0.1',
  port,
  dialect: 'length-prefixed',
  connectTimeout: 5000,
  connect: { requester: 'PART', server: 'SERV', accessType: 2 },
  ...more,
});

const refusalOf = (port: number, more: Partial<RequesterOptions> = {}): Promise<PesitError> =>
  rejectionOf(PesitRequester.open(options(port, more)));

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** Nothing ever answers there. */
function routeIntoTheVoid() {
  const targets: Parameters<Connect>[0][] = [];
  const connect: Connect = (target) => {
    targets.push(target);
    return new Promise(() => undefined);
  };
  return { connect, targets };
}

test('what answers is no PeSIT server: said with its first bytes, and what to check', async () => {
  const web = createServer((socket) => {
    socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  });
  web.listen(0, '127.0.0.1');
  await once(web, 'listening');
  const error = await refusalOf((web.address() as { port: number }).port, { dialect: 'raw' });
  web.close();
  expect(error).toMatchObject({ fault: 'remote', diagnostic: '3-311' });
  expect(error.message).toMatch(
    /^an FPDU: expected .*: perhaps what answers is no PeSIT server, or speaks the other dialect: check host, port and dialect of the remote server$/,
  );
});

describe('TCP', () => {
  test('nobody listens', async () => {
    const port = await freePort();
    const error = await refusalOf(port);
    expect(error).toMatchObject({ fault: 'transport', diagnostic: '3-310' });
    expect(error.message).toBe(
      `no connection to 127.0.0.1:${port}: nobody listens there: check host, port and that the partner is started`,
    );
  });

  test('an unknown host', async () => {
    const error = await refusalOf(1, { host: 'no-such-host.invalid' });
    expect(error).toMatchObject({ fault: 'transport', diagnostic: '3-310' });
    expect(error.message).toMatch(/^no connection to no-such-host\.invalid:1: the (host name is unknown|DNS)/);
  });

  test('a port that cannot be', async () => {
    const error = await refusalOf(70_000);
    expect(error.message).toContain('70000');
  });

  test('a host that answers nothing: a timeout', async () => {
    const { connect: silent, targets } = routeIntoTheVoid();
    const opening = { host: 'void', port: 1, dialect: 'raw', connectTimeout: 20 } as const;
    const error = await rejectionOf(openTransport(silent, opening));
    expect(error).toMatchObject({ fault: 'timeout', diagnostic: '3-317' });
    expect(error.message).toBe('no connection to void:1 within 20 ms: check host, port and firewalls');
    expect(targets).toMatchObject([{ host: 'void', port: 1, signal: { aborted: true } }]);
  });

  test('a signal that is aborted before, and while nothing answers', async () => {
    const reason = new PesitError('the queue was stopped', { fault: 'local', diagnostic: '2-216' });
    expect(await refusalOf(1, { signal: AbortSignal.abort(reason) })).toBe(reason);
    const cancel = new AbortController();
    const { connect: silent, targets } = routeIntoTheVoid();
    const opening = { host: 'void', port: 1, dialect: 'raw', connectTimeout: 5000, signal: cancel.signal } as const;
    const failing = rejectionOf(openTransport(silent, opening));
    cancel.abort();
    expect(await failing).toMatchObject({ fault: 'local', diagnostic: '2-216', message: 'cancelled by the program' });
    expect(targets).toMatchObject([{ signal: { aborted: true } }]);
  });
});

describe.each(DIALECTS)('pre-connection, %s', (dialect) => {
  const preconnection = { identifier: 'PARTNER', password: 'SECRET' };
  const sent = 'd7c5e2c9e3404040d7c1d9e3d5c5d940e2c5c3d9c5e34040';
  const prefix = (digits: string): string =>
    dialect === 'raw' ? digits : `00${(digits.length / 2).toString(16).padStart(2, '0')}${digits}`;

  test('ACK0, then CONNECT', async () => {
    const server = await rawServer(async (peer) => {
      expect((await peer.bytes(prefix(sent).length / 2)).toString('hex')).toBe(prefix(sent));
      // Byte by byte, and nothing of the requester before the last.
      for (const byte of Buffer.from(prefix('c1c3d2f0'), 'hex')) {
        expect(peer.received).toHaveLength(prefix(sent).length / 2);
        await new Promise((resolve) => peer.socket.write(Buffer.from([byte]), resolve));
      }
      await peer.expect('CONNECT');
      peer.send('ACONNECT', BODIES.ACONNECT);
      await peer.expect('RELEASE');
      peer.send('RELCONF');
    }, dialect);
    const requester = await connect(server.port, { dialect, preconnection });
    expect(requester.usable).toBe(true);
    await requester.release();
  });

  test('against our own listener', async () => {
    const listening = await listen({
      preconnect: ({ password }) =>
        password === 'SECRET'
          ? Promise.resolve()
          : Promise.reject(new PesitError('no', { fault: 'local', diagnostic: '3-304' })),
    });
    const requester = await connect(listening.port, { dialect, preconnection });
    expect(listening.handlers[0]!.indication?.preconnection).toEqual({ marker: 'PESIT', ...preconnection });
    await requester.release();
    const error = await refusalOf(listening.port, {
      dialect,
      preconnection: { identifier: 'PARTNER', password: 'WRONG' },
    });
    expect(error).toMatchObject({ fault: 'refused', diagnostic: '3-304' });
  });

  test.each([
    ['NAK0', 'd5c1d2f0', { fault: 'refused', diagnostic: '3-304' }],
    ['garbage', 'cafebabe', { fault: 'remote', diagnostic: '3-311' }],
    ['an ASCII answer', '41434b30', { fault: 'remote', diagnostic: '3-311' }],
  ])('%s', async (_, answer, expected) => {
    const server = await rawServer(async (peer) => {
      await peer.bytes(prefix(sent).length / 2);
      peer.write(prefix(answer));
      await peer.closed;
    }, dialect);
    const error = await refusalOf(server.port, { dialect, preconnection });
    expect(error).toMatchObject(expected);
    expect(error.message).not.toContain('SECRET');
    if (error.got !== undefined) expect(error.got).toBe(prefix(answer));
  });

  test('the other dialect in the answer', async () => {
    const other = dialect === 'raw' ? '0004c1c3d2f0' : 'c1c3d2f0c1c3';
    const server = await rawServer(async (peer) => {
      await peer.bytes(prefix(sent).length / 2);
      peer.write(other);
      await peer.closed;
    }, dialect);
    const error = await refusalOf(server.port, { dialect, preconnection });
    expect(error.diagnostic).toBe('3-311');
    expect(error.message).toContain('dialect');
  });

  test('silence', async () => {
    const server = await rawServer((peer) => peer.closed, dialect);
    const error = await refusalOf(server.port, { dialect, preconnection, connectTimeout: 200 });
    expect(error).toMatchObject({ fault: 'timeout', diagnostic: '3-317' });
    expect(error.message).toMatch(/^no answer to the pre-connection within 200 ms/);
  });

  test.each(['end', 'resetAndDestroy'] as const)('%s instead of an answer', async (how) => {
    const server = await rawServer(async (peer) => {
      await peer.bytes(24);
      peer.socket[how]();
      await peer.closed;
    }, dialect);
    expect(await refusalOf(server.port, { dialect, preconnection })).toMatchObject({
      fault: 'transport',
      diagnostic: '3-310',
    });
  });

  test('a signal', async () => {
    const asked = gate();
    const server = await rawServer(async (peer) => {
      await peer.bytes(24);
      asked.open();
      await peer.closed;
    }, dialect);
    const cancel = new AbortController();
    const failing = refusalOf(server.port, { dialect, preconnection, signal: cancel.signal });
    await asked.passed;
    cancel.abort();
    expect((await failing).diagnostic).toBe('2-216');
  });
});

describe('CONNECT', () => {
  test('RCONNECT with diagnostic and words', async () => {
    const server = await rawServer(async (peer) => {
      const asked = await peer.expect('CONNECT');
      peer.otherId = asked.source;
      peer.send('RCONNECT', `${diagnostic('3-304')} ${complement('ask the bank')}`, 0);
      await peer.closed;
    });
    const error = await refusalOf(server.port);
    expect(error).toMatchObject({ fault: 'refused', diagnostic: '3-304' });
    expect(error.message).toContain('refused the connection');
    expect(error.message).toContain('(ask the bank)');
  });

  test('no answer within connectTimeout: ABORT 3-317', async () => {
    const heard = gate<string>();
    const server = await rawServer(async (peer) => {
      await peer.expect('CONNECT');
      heard.open(diagnosticOf(await peer.expect('ABORT')));
      await peer.closed;
    });
    const error = await refusalOf(server.port, { connectTimeout: 200 });
    expect(error).toMatchObject({ fault: 'timeout', diagnostic: '3-317' });
    expect(error.message).toMatch(/^no answer to CONNECT within 200 ms/);
    expect(await heard.passed).toBe('3-317');
  });

  test.each([
    ['closes', undefined, { fault: 'transport', diagnostic: '3-310' }],
    [
      'speaks HTTP',
      Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n').toString('hex'),
      { fault: 'remote', diagnostic: '3-311' },
    ],
    ['speaks the other dialect', '0018 4021 0709 0601 0207 0300 0000', { fault: 'remote', diagnostic: '3-311' }],
    ['answers with another FPDU', '0006 0006 c03a 0000', { fault: 'remote', diagnostic: '3-311' }],
    ['aborts', '000b 000b 4025 0709 0203 030138', { fault: 'refused', diagnostic: '3-312' }],
  ])('a server that %s', async (_, answer, expected) => {
    const server = await rawServer(async (peer) => {
      await peer.expect('CONNECT');
      if (answer === undefined) peer.socket.end();
      else peer.write(answer);
      await peer.closed;
    });
    expect(await refusalOf(server.port)).toMatchObject(expected);
  });

  test('a signal while the answer is awaited: ABORT', async () => {
    const asked = gate();
    const heard = gate<string>();
    const server = await rawServer(async (peer) => {
      await peer.expect('CONNECT');
      asked.open();
      heard.open(diagnosticOf(await peer.expect('ABORT')));
      await peer.closed;
    });
    const cancel = new AbortController();
    const failing = refusalOf(server.port, { signal: cancel.signal });
    await asked.passed;
    cancel.abort();
    expect((await failing).diagnostic).toBe('2-216');
    expect(await heard.passed).toBe('2-216');
  });

  test('what cannot be sent is an error, and leaves no socket behind', async () => {
    const server = await rawServer((peer) => peer.closed);
    const connectRequest = { requester: 'P'.repeat(30), server: 'SERV', accessType: 2 as const };
    const error = await refusalOf(server.port, { connect: connectRequest });
    expect(error.fault).toBe('local');
    await Promise.all(server.served);
  });

  test('PI 7 that is larger than asked is kept as asked, and noted', async () => {
    const notices: string[] = [];
    const server = await rawServer(async (peer) => {
      const asked = await peer.expect('CONNECT');
      expect(valueOf(asked.body, 7)?.toString('hex')).toBe('004003');
      peer.send('ACONNECT', '060102 0703 0400 10');
      await peer.expect('RELEASE');
      peer.send('RELCONF');
    });
    const requester = await connect(server.port, {
      connect: { requester: 'PART', server: 'SERV', accessType: 2, syncPoints: { intervalKb: 64, window: 3 } },
      notice: (text) => notices.push(text),
    });
    expect(requester.terms).toMatchObject({ syncInterval: 65_536, syncWindow: 3 });
    expect(notices.join()).toContain('PI 7 is larger than what was asked');
    await requester.release();
  });
});
