/** What a listener makes of the first bytes of real connections (pesit-e.md §1). */
import { describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import type { Dialect } from '@pesit-node/protocol';
import type { Preconnection } from '../src/index.js';
import { closing, gate, listen, rawPeer } from './support/harness.js';
import { BODIES, OK, entity, fpdu, hex } from './support/wire.js';

/** `PARTNER ` and `SECRET  ` in CP037. */
const CREDENTIALS = 'd7c1d9e3d5c5d940 e2c5c3d9c5e34040';
const BARE = `d7c5e2c9e3404040 ${CREDENTIALS}`;
const BARE_CFT = `c3c6e3d7e2c9e3e7 ${CREDENTIALS} 0d25`;
/** Name, what the partner sends, ACK0 and NAK0 in its own framing. */
const PRECONNECTIONS: [string, string, string, string, Preconnection['marker']][] = [
  ['bare PESIT', BARE, 'c1c3d2f0', 'd5c1d2f0', 'PESIT'],
  ['length-prefixed PESIT', `0018 ${BARE}`, '0004c1c3d2f0', '0004d5c1d2f0', 'PESIT'],
  ['bare CFTPSITX', BARE_CFT, 'c1c3d2f00d25', 'd5c1d2f00d25', 'CFTPSITX'],
  ['length-prefixed CFTPSITX', `001c ${BARE_CFT} 0000`, '0008c1c3d2f00d250000', '0008d5c1d2f00d250000', 'CFTPSITX'],
];
const DIALECTS: readonly Dialect[] = ['length-prefixed', 'raw'];

const connectEntity = (dialect: Dialect): Buffer => entity(dialect, fpdu('CONNECT', 0, 7, BODIES.CONNECT));

describe.each(DIALECTS)('%s', (dialect) => {
  test('CONNECT in one piece, and the session speaks the same dialect', async () => {
    const listening = await listen();
    const peer = await rawPeer(listening.port, dialect);
    await peer.open();
    await peer.release();
    await listening.handlers[0]!.over;
    expect(listening.handlers[0]!.calls).toEqual([`CONNECT PART ${dialect}`, 'ENDED released']);
    expect(listening.handlers[0]!.indication?.preconnection).toBeUndefined();
    expect(listening.rejected).toEqual([]);
  });

  test('CONNECT byte by byte, each in a segment of its own as far as TCP allows', async () => {
    const listening = await listen();
    const peer = await rawPeer(listening.port, dialect);
    for (const byte of connectEntity(dialect)) {
      await new Promise((resolve) => peer.socket.write(Buffer.from([byte]), resolve));
    }
    await peer.expect('ACONNECT');
    expect(listening.handlers[0]!.indication?.parameters).toMatchObject({ requester: 'PART', server: 'SERV' });
  });

  test.each(PRECONNECTIONS)('%s before CONNECT, in the same segment', async (_, sent, ack, __, marker) => {
    const asked: [Preconnection, string][] = [];
    const listening = await listen({
      preconnect: (preconnection, address) => {
        asked.push([preconnection, address]);
        return Promise.resolve();
      },
    });
    const peer = await rawPeer(listening.port, dialect);
    peer.write(Buffer.concat([hex(sent), connectEntity(dialect)]));
    expect((await peer.bytes(ack.length / 2)).toString('hex')).toBe(ack);
    await peer.expect('ACONNECT');
    await peer.release();
    const expected = { marker, identifier: 'PARTNER', password: 'SECRET' };
    expect(asked).toEqual([[expected, '127.0.0.1']]);
    expect(listening.handlers[0]!.indication).toMatchObject({ dialect, preconnection: expected });
  });

  test.each(PRECONNECTIONS)('%s, its answer awaited, then CONNECT', async (_, sent, ack) => {
    const listening = await listen();
    const peer = await rawPeer(listening.port, dialect);
    peer.write(sent);
    expect((await peer.bytes(ack.length / 2)).toString('hex')).toBe(ack);
    await peer.open();
    await peer.release();
    expect(listening.rejected).toEqual([]);
  });

  test.each(PRECONNECTIONS)('%s and CONNECT byte by byte', async (_, sent, ack) => {
    const listening = await listen();
    const peer = await rawPeer(listening.port, dialect);
    for (const byte of Buffer.concat([hex(sent), connectEntity(dialect)])) {
      await new Promise((resolve) => peer.socket.write(Buffer.from([byte]), resolve));
    }
    expect((await peer.bytes(ack.length / 2)).toString('hex')).toBe(ack);
    await peer.expect('ACONNECT');
  });
});

describe('a refused pre-connection', () => {
  const unknown = new PesitError('its password is wrong', { fault: 'local', diagnostic: '3-304' });
  const reason = 'pre-connection of "PARTNER" refused (NAK0), 3-304 requester not authorised: its password is wrong';

  test.each(PRECONNECTIONS)('%s gets NAK0, then the end of the connection', async (_, sent, __, nak) => {
    const listening = await listen({ preconnect: () => Promise.reject(unknown) });
    const peer = await rawPeer(listening.port);
    peer.write(Buffer.concat([hex(sent), connectEntity('raw')]));
    await peer.closed;
    expect(peer.received.toString('hex')).toBe(nak);
    expect(listening.rejected).toEqual([{ address: '127.0.0.1', reason }]);
    expect(listening.handlers).toEqual([]);
  });

  test('a partner that is reset after NAK0, or never closes, costs nothing that stays', async () => {
    const listening = await listen({ preconnect: () => Promise.reject(unknown), timers: { close: 20 } });
    const resetting = await rawPeer(listening.port);
    resetting.write(BARE);
    await resetting.bytes(4);
    resetting.reset();
    const staying = await rawPeer(listening.port);
    staying.socket.allowHalfOpen = true;
    staying.write(BARE);
    expect((await staying.bytes(4)).toString('hex')).toBe('d5c1d2f0');
    await listening.listener.close(closing, 0);
    await resetting.closed;
  });

  test('a bug in the answer closes the connection and is reported', async () => {
    const listening = await listen({ preconnect: () => Promise.reject(new Error('database gone')) });
    const peer = await rawPeer(listening.port);
    peer.write(BARE);
    await peer.closed;
    expect(peer.received).toHaveLength(0);
    expect(listening.rejected.map(({ reason }) => reason)).toEqual(['internal error: database gone']);
  });
});

test('what a partner sends while its pre-connection is judged reaches the session whole', async () => {
  const asked = gate();
  const answer = gate();
  const listening = await listen({
    preconnect: () => {
      asked.open();
      return answer.passed;
    },
  });
  const peer = await rawPeer(listening.port);
  peer.write(BARE);
  await asked.passed;
  await new Promise((resolve) => peer.socket.write(connectEntity('length-prefixed'), resolve));
  answer.open();
  expect((await peer.bytes(4)).toString('hex')).toBe('c1c3d2f0');
  await peer.expect('ACONNECT');
});

test('everything in one segment: pre-connection, CONNECT, and nothing is lost of what follows', async () => {
  const listening = await listen();
  const peer = await rawPeer(listening.port);
  // RELEASE cannot be asked before ACONNECT: the session has to see it and say so.
  peer.write(
    Buffer.concat([hex(BARE), connectEntity('length-prefixed'), entity('length-prefixed', fpdu('RELEASE', 0, 7, OK))]),
  );
  await peer.bytes(4);
  const answer = await peer.next();
  expect(answer?.name).toBe('ABORT');
  expect(answer?.body.toString('hex').startsWith('0203030137')).toBe(true);
});

describe('not a partner', () => {
  test.each([
    ['garbage', 'cafebabe00112233', 'not PeSIT; first bytes cafebabe00112233'],
    [
      'TLS on a plain port',
      '16030100c8010000c40303',
      'the partner speaks TLS, this port does not: use the TLS port, or switch TLS off on the other side; ' +
        'first bytes 16030100c8010000c40303',
    ],
    [
      'HTTP',
      Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n').toString('hex'),
      'not PeSIT: the partner speaks HTTP; first bytes 474554202f20485454502f312e310d0a',
    ],
    ['a second pre-connection', `${BARE} ${BARE}`, 'a second pre-connection came where CONNECT was expected'],
    ['another FPDU than CONNECT', '000900094023000702030000 00', 'not PeSIT; first bytes 00090009402300070203000000'],
  ])('%s is closed and reported', async (_, sent, reason) => {
    const listening = await listen();
    const peer = await rawPeer(listening.port);
    peer.write(sent);
    await peer.closed;
    expect(listening.rejected).toEqual([{ address: '127.0.0.1', reason }]);
    expect(listening.handlers).toEqual([]);
  });

  test.each([
    ['nothing', '', 'nothing'],
    ['one byte', '00', '00'],
    ['half a pre-connection', 'd7c5e2c9e3404040 d7c1d9e3d5c5d940 e2c5', 'd7c5e2c9e3404040d7c1d9e3d5c5d940'],
  ])('%s within Tc is closed and reported, without the password', async (_, sent, got) => {
    const listening = await listen({ timers: { connect: 150 } });
    const peer = await rawPeer(listening.port);
    peer.write(sent);
    await peer.closed;
    expect(listening.rejected).toEqual([{ address: '127.0.0.1', reason: `no CONNECT within 150 ms; received ${got}` }]);
  });

  test('a CONNECT that stays unfinished: Tc runs from the arrival', async () => {
    const listening = await listen({ timers: { connect: 150 } });
    const peer = await rawPeer(listening.port);
    peer.write(connectEntity('length-prefixed').subarray(0, 20));
    const handler = await listening.handler();
    expect((await handler.over)?.diagnostic).toBe('3-317');
    await peer.closed;
    expect(handler.imbalance).toEqual([]);
  });

  test.each([
    ['nothing', '', []],
    ['two bytes', '0018', ['closed before CONNECT; received 0018']],
    ['a pre-connection alone', BARE, ['closed between pre-connection and CONNECT']],
  ])('%s, then the end', async (_, sent, reasons) => {
    const listening = await listen();
    const peer = await rawPeer(listening.port);
    peer.socket.end(hex(sent));
    await peer.closed;
    expect(listening.rejected.map(({ reason }) => reason)).toEqual(reasons);
  });
});

describe('tcpipHeader', () => {
  test.each(DIALECTS)('%s and nothing else, when it is fixed', async (dialect) => {
    const other = dialect === 'raw' ? 'length-prefixed' : 'raw';
    const listening = await listen({ tcpipHeader: dialect });
    const good = await rawPeer(listening.port, dialect);
    await good.open();
    const bad = await rawPeer(listening.port, other);
    bad.send('CONNECT', BODIES.CONNECT);
    await bad.closed;
    expect(listening.rejected).toHaveLength(1);
    const first = connectEntity(other).subarray(0, 16).toString('hex');
    expect(listening.rejected[0]!.reason).toBe(
      `the partner speaks ${other}, tcpipHeader asks for ${dialect}; first bytes ${first}`,
    );
    await good.release();
  });

  test('a pre-connection may be of the other dialect', async () => {
    const listening = await listen({ tcpipHeader: 'length-prefixed' });
    const peer = await rawPeer(listening.port, 'length-prefixed');
    peer.write(BARE);
    expect((await peer.bytes(4)).toString('hex')).toBe('c1c3d2f0');
    await peer.open();
  });
});
