import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { diagnosticOf, entity, fpdu, hex, nameOf, summaryOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { bytes, until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import {
  CONNECT,
  create,
  CRF,
  DATA,
  DESELECT,
  DTF,
  DTF_END,
  endOf,
  ORF,
  READ,
  RELEASE,
  select,
  syn,
  transEnd,
  WRITE,
  WRITING,
} from './support/steps.js';
import type { Step } from './support/steps.js';

withDatabase((harness) => {
  const node = useNode(harness, { listener: { readTimeout: 1000 } });

  /** The service is as before: no session, nothing running, nothing staged but for a restart, and the next partner is served. */
  const isIntact = async (): Promise<void> => {
    await until(async () => {
      const { activeConnections } = await node().call('get', '/api/v1/servers/NODE1/status');
      const running = (await node().history()).filter(({ status }) => status === 'IN_PROGRESS');
      return (activeConnections === 0 && running.length === 0) || undefined;
    });
    const toRestart = (await node().history('&restartable=true&direction=RECEIVE')).filter(
      ({ syncPoint }) => syncPoint !== 0,
    );
    const staged = (await node().files('IN/in')).filter((name) => name.endsWith('.part'));
    expect(staged).toHaveLength(toRestart.length);
    const content = bytes(100);
    const session = await node().connect();
    await node().send(session, 'IN', content);
    await session.release();
  };

  test('a session written by hand writes a file', async () => {
    const peer = await RawPeer.open(node().port);
    const answers: (string | undefined)[] = [];
    for (const step of WRITING) {
      const answer = await peer.send(step);
      if (step.answered) answers.push(nameOf(answer));
    }
    expect(answers).toEqual([
      'ACONNECT',
      'ACK(CREATE)',
      'ACK(ORF)',
      'ACK(WRITE)',
      'ACK(SYN)',
      'ACK(TRANS.END)',
      'ACK(CRF)',
      'ACK(DESELECT)',
      'RELCONF',
    ]);
    expect((await node().received('IN')).map(String)).toEqual([DATA + DATA]);
    expect((await node().history())[0]).toMatchObject({
      status: 'COMPLETED',
      syncPoint: 1,
      articles: 2,
      transferId: 9,
    });
  });

  describe('a connection that is cut', () => {
    const cuts = WRITING.map((step, index) => [step.name, index] as const);

    test.each(cuts)('after %s (step %i)', async (_, index) => {
      const peer = await RawPeer.open(node().port, ...WRITING.slice(0, index + 1));
      peer.socket.resetAndDestroy();
      await isIntact();
      const [, record] = await node().history();
      const accepted = index >= WRITING.findIndex(({ name }) => name === 'CREATE');
      const ended = index >= WRITING.findIndex(({ name }) => name === 'TRANS.END');
      expect(record?.status).toBe(accepted ? (ended ? 'COMPLETED' : 'FAILED') : undefined);
      if (accepted && !ended) expect(record).toMatchObject({ diagnostic: expect.stringMatching(/^3-3/) });
      expect(await node().received('IN')).toHaveLength(ended ? 2 : 1);
    });

    test.each(cuts)('in the middle of %s (step %i)', async (_, index) => {
      const peer = await RawPeer.open(node().port, ...WRITING.slice(0, index));
      const half = peer.bytesOf(WRITING[index]!);
      peer.write(half.subarray(0, Math.ceil(half.length / 2)));
      peer.socket.end();
      await peer.closed();
      await isIntact();
    });

    test('before its answer: the file is there, once, and recorded', async () => {
      const peer = await RawPeer.open(node().port, ...WRITING.slice(0, 8));
      peer.write(peer.bytesOf(WRITING[8]!));
      peer.socket.end();
      await isIntact();
      const [, record] = await node().history();
      const delivered = (await node().received('IN')).length - 1;
      expect([record!.status, delivered]).toEqual(record!.status === 'COMPLETED' ? ['COMPLETED', 1] : ['FAILED', 0]);
    });

    test('while a file is read', async () => {
      await writeFile(join(node().data, 'OUT/out/big'), bytes(8_000_000));
      const peer = await RawPeer.open(node().port, CONNECT);
      await peer.sendAll(select('OUT'), ORF, READ);
      await peer.next();
      peer.socket.resetAndDestroy();
      const record = await node().ended();
      expect(record).toMatchObject({ status: 'FAILED', direction: 'SEND', filename: 'big' });
      await isIntact();
      const session = await node().connect();
      expect((await node().receive(session, 'OUT')).length).toBe(8_000_000);
    });
  });

  describe('a peer that falls silent is told so: ABORT 3-317', () => {
    test('wherever it is in a transfer', async () => {
      const until = ['CREATE', 'ORF', 'WRITE', 'DTF', 'SYN 1', 'DTF.END', 'TRANS.END', 'CRF'];
      const silent = await Promise.all(
        until.map(async (name) => {
          const peer = await RawPeer.open(node().port);
          for (const step of WRITING) {
            await peer.send(step);
            if (step.name === name) break;
          }
          return peer;
        }),
      );
      const answers = await Promise.all(silent.map((peer) => peer.next()));
      expect(answers.map((answer) => [nameOf(answer), diagnosticOf(answer)])).toEqual(
        until.map(() => ['ABORT', '3-317']),
      );
      for (const peer of silent) peer.socket.destroy();
      await isIntact();
      const statuses = (await node().history()).slice(1).map(({ status }) => status);
      expect(statuses.filter((status) => status === 'COMPLETED')).toHaveLength(2);
      expect(statuses.filter((status) => status === 'FAILED')).toHaveLength(6);
    });
  });

  describe('what is no PeSIT', () => {
    test.each<[string, Buffer, RegExp]>([
      ['TLS', Buffer.from('16030100c8010000c40303', 'hex'), /speaks TLS/],
      ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n'), /not PeSIT/],
      ['zeros', Buffer.alloc(64), /not PeSIT/],
      ['noise', Buffer.concat([Buffer.from('ffffffffffff', 'hex'), randomBytes(4096)]), /not PeSIT/],
    ])('%s: closed, counted, logged', async (_, garbage, reason) => {
      const peer = await RawPeer.open(node().port);
      peer.write(garbage);
      await peer.closed();
      expect(await node().call('get', '/api/v1/servers/NODE1/status')).toMatchObject({ refusedConnections: 1 });
      const line = node()
        .log.entries()
        .findLast(({ msg }) => msg === 'connection rejected');
      expect(line).toMatchObject({
        listener: 'NODE1',
        remoteAddress: '127.0.0.1',
        reason: expect.stringMatching(reason),
      });
      await isIntact();
    });

    test.each<[string, Buffer, string]>([
      ['an FPDU of 5 bytes', Buffer.from('00050005c0140100', 'hex'), '3-311'],
      ['an unknown FPDU', entity(hex('0006 c077 0100')), '3-311'],
      ['an FPDU out of place', entity(fpdu('WRITE', 1, 0)), '3-311'],
      ['CREATE without parameters', entity(fpdu('CREATE', 1, 0)), '3-318'],
      ['a parameter beyond its FPDU', entity(fpdu('CREATE', 1, 0, '09c801')), '3-318'],
    ])('%s in a session: ABORT', async (_, wrong, diagnostic) => {
      const peer = await RawPeer.open(node().port, CONNECT);
      peer.write(wrong);
      const answer = await peer.next();
      expect([nameOf(answer), diagnosticOf(answer)]).toEqual(['ABORT', diagnostic]);
      peer.socket.destroy();
      await isIntact();
    });

    test.each<[string, readonly Step[], string]>([
      ['SYN 2 before SYN 1', [DTF, syn(2)], '3-311'],
      ['data before WRITE', [], '3-311'],
    ])('%s: nothing stays', async (name, steps) => {
      const peer = await RawPeer.open(node().port);
      for (const step of [CONNECT, create(), ORF, ...(steps.length === 0 ? [] : [WRITE])]) await peer.send(step);
      for (const step of steps.length === 0 ? [DTF] : steps) peer.write(peer.bytesOf(step));
      const answer = await peer.next();
      expect([name, nameOf(answer)]).toEqual([name, expect.stringMatching(/^(ABORT|IDT)$/)]);
      peer.socket.destroy();
      await isIntact();
      expect((await node().history())[1]).toMatchObject({ status: 'FAILED', diagnostic: '3-311' });
    });

    test('wrong counts: ABORT 3-319, the file is not delivered', async () => {
      const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF, DTF_END);
      const answer = await peer.send(transEnd(DATA.length + 1, 1));
      expect(summaryOf(answer)).toBe('ABORT 3-319');
      peer.socket.destroy();
      await isIntact();
      expect((await node().history())[1]).toMatchObject({ status: 'FAILED', diagnostic: '3-319' });
      expect(await node().received('IN')).toHaveLength(1);
    });
  });

  describe('names that want to be paths', () => {
    const hostile = ['../../etc/passwd', '/etc/passwd', 'IN/../IN', 'IN\0', 'IN\0.txt', '..', '.pesit', 'x'.repeat(76)];

    test.each(hostile)('as PI 12 %j: refused, recorded readably', async (fileName) => {
      const peer = await RawPeer.open(node().port, CONNECT);
      const created = await peer.send(create({ fileName }));
      // NUL at the end is padding.
      const isKnown = fileName === 'IN\0';
      expect([nameOf(created), diagnosticOf(created)]).toEqual(['ACK(CREATE)', isKnown ? '0-000' : '2-226']);
      peer.socket.destroy();
      await isIntact();
      const [, record] = await node().history();
      expect(record!['virtualFileId']).toBe(isKnown ? 'IN' : fileName.replaceAll('\0', '.'));
    });

    test('as PI 12 of 255 bytes: ABORT 3-318', async () => {
      const peer = await RawPeer.open(node().port, CONNECT);
      const answer = await peer.send(create({ fileName: 'x'.repeat(255) }));
      expect(summaryOf(answer)).toBe('ABORT 3-318');
      peer.socket.destroy();
      await isIntact();
    });

    test.each([...hostile, 'y'.repeat(255), 'z'.repeat(512), '\x01\x02\xff', '${uuid}'])(
      'as PI 37 %j: the file is where it belongs',
      async (label) => {
        const peer = await RawPeer.open(node().port, CONNECT, create({ label }), ORF, WRITE, DTF, ...endOf(1));
        await peer.sendAll(CRF, DESELECT, RELEASE);
        expect((await node().received('IN')).map(String)).toEqual([DATA]);
        expect(await node().files('IN/in')).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)]);
        const [record] = await node().history();
        expect(record!.status).toBe('COMPLETED');
        expect(record!['label']).toBe(label.replace(/\0$/, '').replace(/[\u0000-\u001f]/g, '.'));
      },
    );

    test('as PI 99 of any bytes: opaque', async () => {
      const freeMessage = Buffer.from([0, 1, 0xff, 0x27]);
      const peer = await RawPeer.open(node().port, CONNECT);
      expect(diagnosticOf(await peer.send(create({ freeMessage })))).toBe('0-000');
      peer.socket.destroy();
      await isIntact();
      expect((await node().history())[1]!['freeMessage']).toBe(`base64:${freeMessage.toString('base64')}`);
    });
  });

  test('hundreds of connections that say nothing keep nobody out', async () => {
    const sockets = Array.from({ length: 400 }, () => connect(node().port, '127.0.0.1'));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    await isIntact();
    for (const socket of sockets) socket.destroy();
    await isIntact();
  });
});
