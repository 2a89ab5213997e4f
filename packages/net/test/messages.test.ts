/** Messages over sockets, both roles: texts of every length, replies, refusals, and what ends a session. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { FILE_TYPE_MESSAGE, FILE_TYPE_REPLY, PesitError } from '@pesit-node/protocol';
import type { DiagnosticCode, Dialect, MessageRequest } from '@pesit-node/protocol';
import { connect, create, gate, listen, rawPeer, rawServer, rejectionOf } from './support/harness.js';
import { MemorySource } from './support/memory.js';
import { respond } from './support/responder.js';
import { OK, complement, diagnostic, diagnosticOf, valueOf } from './support/wire.js';

const refusal = (code: DiagnosticCode, peerText?: string): PesitError =>
  new PesitError('words for the operator', {
    fault: 'local',
    diagnostic: code,
    ...(peerText === undefined ? {} : { peerText }),
  });

const REQUEST: MessageRequest = {
  fileIdentifier: { fileType: FILE_TYPE_MESSAGE, fileName: 'FILE' },
  transferId: 5,
};

/** PGI 9 with PI 11 = FFFF and PI 12 = `M`, PI 13 = 1. */
const HEAD = '0907 0b02ffff 0c014d 0d0101';
const text = (value: string): string =>
  `5b ${value.length.toString(16).padStart(2, '0')} ${Buffer.from(value).toString('hex')}`;

describe.each<Dialect>(['length-prefixed', 'raw'])('both ends of ours, %s', (dialect) => {
  test.each([false, true])('everything that a message carries, CRC %s', async (crc) => {
    const listening = await listen({}, (handler) => {
      handler.takeMessages(() => ({ reply: Buffer.from('got it'), dataCode: 0 }));
    });
    const requester = await connect(listening.port, {
      dialect,
      connect: { requester: 'PART', server: 'SERV', accessType: 2, crc },
    });
    const answer = await requester.sendMessage({
      request: {
        fileIdentifier: { requester: 'APP', server: 'USER', fileType: FILE_TYPE_REPLY, fileName: 'FILE' },
        transferId: 77,
        replyExpected: true,
        dataCode: 2,
        creationDate: '260102030405',
        originalSender: 'A',
        finalReceiver: 'B',
        message: Buffer.from('00ff80', 'hex'),
      },
    });
    expect(answer).toEqual({ reply: Buffer.from('got it'), dataCode: 0 });
    expect(listening.handlers[0]!.messages).toEqual([
      {
        fileIdentifier: { requester: 'APP', server: 'USER', fileType: FILE_TYPE_REPLY, fileName: 'FILE' },
        transferId: 77,
        attributesWanted: 1,
        dataCode: 2,
        historicalAttributes: { creationDate: '260102030405' },
        originalSender: 'A',
        finalReceiver: 'B',
        message: Buffer.from('00ff80', 'hex'),
      },
    ]);
    await requester.release();
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });

  test.each([0, 1, 254, 255, 4074, 4075, 65_535, 65_536])(
    '%i bytes arrive whole, and the session goes on',
    async (length) => {
      const listening = await listen({}, (handler) => {
        handler.takeMessages();
      });
      const requester = await connect(listening.port, { dialect });
      const message = randomBytes(length);
      expect(await requester.sendMessage({ request: { ...REQUEST, message } })).toEqual({
        reply: undefined,
        dataCode: undefined,
      });
      expect((listening.handlers[0]!.messages[0]!.message ?? Buffer.alloc(0)).equals(message)).toBe(true);
      await requester.sendFile({ request: create, source: new MemorySource([Buffer.from('abc')]) });
      await requester.sendMessage({ request: REQUEST });
      await requester.release();
      expect(listening.handlers[0]!.calls).toEqual([
        `CONNECT PART ${dialect}`,
        'MESSAGE',
        'CREATE FILE',
        'END',
        'DESELECTED',
        'MESSAGE',
        'ENDED released',
      ]);
    },
  );
});

describe('a server', () => {
  test('that takes no messages: 2-209, and the session goes on', async () => {
    const listening = await listen();
    const requester = await connect(listening.port);
    const error = await rejectionOf(requester.sendMessage({ request: REQUEST }));
    expect(error).toMatchObject({ fault: 'refused', diagnostic: '2-209' });
    expect(error.message).toBe(
      'the partner refused MSG: 2-209 message of this type not accepted (messages are not taken by this server)',
    );
    expect(requester.usable).toBe(true);
    await requester.sendFile({ request: create, source: new MemorySource([Buffer.from('abc')]) });
  });

  test.each([
    ['a PesitError', refusal('2-226', 'not today'), '2-226', 'not today', 0],
    ['its own fault keeps its words to itself', refusal('2-219'), '2-219', 'file space exhausted', 0],
    ['a bug', new Error('no such table'), '2-215', 'error of the local system', 1],
  ])('that rejects with %s: a negative ACK(MSG)', async (_, thrown, code, words, bugs) => {
    const listening = await listen({}, (handler) => {
      handler.takeMessages();
      handler.hooks.message = () => Promise.reject(thrown);
    });
    const peer = await rawPeer(listening.port);
    await peer.open();
    const answer = await peer.exchange('MSG', `${HEAD} ${text('Hi')}`, 'ACK(MSG)');
    expect([diagnosticOf(answer), valueOf(answer.body, 29)?.toString('latin1')]).toEqual([code, words]);
    expect(listening.handlers[0]!.bugs).toHaveLength(bugs);
    await peer.release();
  });

  test('gives no reply to a message that asks for none, and none longer than PI 91', async () => {
    let reply = Buffer.from('unasked');
    const listening = await listen({}, (handler) => {
      handler.takeMessages(() => ({ reply, dataCode: 0 }));
    });
    const peer = await rawPeer(listening.port);
    await peer.open();
    const unasked = await peer.exchange('MSG', `${HEAD} ${text('Hi')}`, 'ACK(MSG)');
    expect(unasked.body.toString('hex')).toBe('0203000000');
    const asked = await peer.exchange('MSG', `${HEAD} 0e0101 ${text('Hi')}`, 'ACK(MSG)');
    expect(asked.body.toString('hex')).toBe(
      `0203000000 100100 5b07 ${Buffer.from('unasked').toString('hex')}`.replaceAll(' ', ''),
    );
    reply = Buffer.alloc(4097);
    const tooLong = await peer.exchange('MSG', `${HEAD} 0e0101 ${text('Hi')}`, 'ACK(MSG)');
    expect(diagnosticOf(tooLong)).toBe('3-318');
    await peer.release();
  });

  test('hears a segmented message once, whole', async () => {
    const listening = await listen({}, (handler) => {
      handler.takeMessages();
    });
    const peer = await rawPeer(listening.port);
    await peer.open();
    peer.send('MSGDM', `${HEAD} ${text('one ')}`);
    peer.send('MSGMM', text('two '));
    peer.send('MSGMM', '');
    peer.send('MSGFM', text('three'));
    expect(diagnosticOf(await peer.expect('ACK(MSG)'))).toBe('0-000');
    expect(listening.handlers[0]!.messages.map(({ message }) => message?.toString())).toEqual(['one two three']);
    await peer.release();
  });

  test('whose answer comes after the end of the connection says nothing more', async () => {
    const asked = gate();
    const judged = gate();
    const listening = await listen({}, (handler) => {
      handler.takeMessages();
      handler.hooks.message = async () => {
        asked.open();
        await judged.passed;
      };
    });
    const peer = await rawPeer(listening.port);
    await peer.open();
    peer.send('MSG', HEAD);
    await asked.passed;
    peer.reset();
    await peer.closed;
    judged.open();
    expect((await listening.handlers[0]!.over)?.diagnostic).toBe('3-310');
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });
});

describe('a requester', () => {
  test.each([
    ['2-209', diagnostic('2-209')],
    ['3-301', `${diagnostic('3-301')} ${complement('who?')}`],
  ])('is refused %s and goes on', async (code, body) => {
    const server = await rawServer(async (peer) => {
      await respond(peer, { MSG: () => peer.send('ACK(MSG)', body) });
      peer.socket.end();
    });
    const requester = await connect(server.port);
    expect(await rejectionOf(requester.sendMessage({ request: REQUEST }))).toMatchObject({
      fault: 'refused',
      diagnostic: code,
    });
    expect(requester.usable).toBe(true);
  });

  test('takes a reply whether or not PI 16 comes with it', async () => {
    const server = await rawServer(async (peer) => {
      await respond(peer, { MSG: () => peer.send('ACK(MSG)', `${OK} ${text('yes')}`) });
      peer.socket.end();
    });
    const requester = await connect(server.port);
    const answer = await requester.sendMessage({ request: { ...REQUEST, replyExpected: true } });
    expect(answer).toEqual({ reply: Buffer.from('yes'), dataCode: undefined });
  });

  test('a text of 65,537 bytes is refused here, and nothing is sent', async () => {
    const listening = await listen({}, (handler) => {
      handler.takeMessages();
    });
    const requester = await connect(listening.port);
    const error = await rejectionOf(requester.sendMessage({ request: { ...REQUEST, message: Buffer.alloc(65_537) } }));
    expect(error).toMatchObject({ fault: 'local', expected: 'at most 65536 bytes', got: '65537' });
    expect(requester.usable).toBe(true);
    await requester.sendMessage({ request: REQUEST });
    expect(listening.handlers[0]!.messages).toHaveLength(1);
  });

  test('cancelled while the answer is on its way: the session is over', async () => {
    const cancel = new AbortController();
    const server = await rawServer(async (peer) => {
      await respond(peer, {
        MSG: () => {
          cancel.abort(refusal('2-216'));
        },
      });
      peer.socket.end();
    });
    const requester = await connect(server.port);
    const sending = requester.sendMessage({ request: REQUEST, signal: cancel.signal });
    expect(await rejectionOf(sending)).toMatchObject({ diagnostic: '2-216' });
    expect(requester.usable).toBe(false);
  });

  test('an aborted signal: nothing is sent', async () => {
    const listening = await listen();
    const requester = await connect(listening.port);
    const signal = AbortSignal.abort(refusal('2-216'));
    expect(await rejectionOf(requester.sendMessage({ request: REQUEST, signal }))).toMatchObject({
      diagnostic: '2-216',
    });
    expect(requester.usable).toBe(true);
  });

  test('the partner goes away before its answer: transport, and every later call says so', async () => {
    const server = await rawServer(async (peer) => {
      await respond(peer, { MSG: () => peer.reset() });
    });
    const requester = await connect(server.port);
    expect(await rejectionOf(requester.sendMessage({ request: REQUEST }))).toMatchObject({ fault: 'transport' });
    expect(await rejectionOf(requester.sendMessage({ request: REQUEST }))).toMatchObject({ fault: 'transport' });
  });

  test('one operation at a time', async () => {
    const listening = await listen({}, (handler) => {
      handler.takeMessages();
    });
    const requester = await connect(listening.port);
    const first = requester.sendMessage({ request: REQUEST });
    await expect(requester.sendMessage({ request: REQUEST })).rejects.toThrow('one operation at a time');
    await first;
  });
});
