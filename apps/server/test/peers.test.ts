/** What products of the field do to a server, as far as it shows in records, files and the log; the wire is in packages/protocol. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { diagnosticOf, entity, fpdu, nameOf, pi, summaryOf, text } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import {
  CONNECT,
  connectAs,
  create,
  CRF,
  DATA,
  DESELECT,
  DTF,
  DTF_END,
  endOf,
  message,
  ORF,
  READ,
  RELEASE,
  select,
  step,
  transEnd,
  WRITE,
  WRITING,
} from './support/steps.js';
import type { Step } from './support/steps.js';

withDatabase((harness) => {
  const node = useNode(harness);

  const exchange = async (...steps: readonly Step[]): Promise<readonly (Buffer | undefined)[]> => {
    const peer = await RawPeer.open(node().port);
    const answers: (Buffer | undefined)[] = [];
    for (const one of steps) answers.push(await peer.send(one));
    peer.socket.destroy();
    return answers;
  };
  describe('PeSIT Wizard', () => {
    test('PI 13 begins at 1 again with each of its starts: a new file, never taken for the old one', async () => {
      await exchange(...WRITING);
      await exchange(...WRITING);
      const records = await node().history();
      expect(records.map(({ status, attempts }) => [status, attempts])).toEqual([
        ['COMPLETED', 1],
        ['COMPLETED', 1],
      ]);
      expect(await node().received('IN')).toHaveLength(2);
    });

    test('a message in PI 91 of CONNECT: the session is accepted, and the log has the text', async () => {
      const [answer] = await exchange(connectAs({ more: pi(91, text('end of day\u001b[2J')) }));
      expect(nameOf(answer)).toBe('ACONNECT');
      const line = await until(() =>
        node()
          .log.entries()
          .find((entry) => String(entry['notice']).includes('end of day')),
      );
      expect(line).toMatchObject({
        msg: 'tolerated a deviation of the partner',
        notice: 'CONNECT: parameter 91 of 14 bytes ("end of day.[2J") is not part of this FPDU: skipped',
      });
    });

    test('articles in DTFs of 32,006 bytes after 4,096 was answered: taken', async () => {
      const article = Buffer.concat([Buffer.from([1, 0xfa]), Buffer.alloc(506, 'a')]);
      const articles = Buffer.concat(Array.from({ length: 63 }, () => article));
      const large = step('DTF', (y) => fpdu('DTF', y, 63, articles), false);
      const answers = await exchange(
        CONNECT,
        create(),
        ORF,
        WRITE,
        large,
        DTF_END,
        transEnd(63 * 506, 63),
        CRF,
        DESELECT,
      );
      expect(
        answers
          .filter((answer) => answer !== undefined)
          .map(diagnosticOf)
          .slice(1),
      ).toEqual(Array.from({ length: 6 }, () => '0-000'));
      expect(await node().ended()).toMatchObject({ status: 'COMPLETED', size: 63 * 506, articles: 63 });
    });

    test('it leaves instead of acknowledging our IDT: the record says why it was sent', async () => {
      const long = step('DTF', (y) => fpdu('DTF', y, 0, Buffer.alloc(5000)));
      const answers = await exchange(CONNECT, create(), ORF, WRITE, long);
      expect(summaryOf(answers.at(-1))).toBe('IDT 2-220');
      expect(await node().ended()).toMatchObject({ status: 'FAILED', diagnostic: '2-220', restartable: false });
    });

    test('the connection goes without RELEASE after a negative ACK: one record, and the place is free', async () => {
      await node().call('put', '/api/v1/config/partners/ACME', { maxConnections: 1 });
      const answers = await exchange(CONNECT, create({ fileName: 'NOTHERE' }));
      expect(diagnosticOf(answers[1])).toBe('2-226');
      expect(await node().history()).toMatchObject([{ status: 'FAILED', diagnostic: '2-226' }]);
      await until(async () => {
        const [answer] = await exchange(CONNECT);
        return nameOf(answer) === 'ACONNECT' ? true : undefined;
      });
      expect(await node().history()).toHaveLength(1);
    });
  });

  test('Transfer CFT, Axway Gateway: PI 37 of 512 bytes is in the record whole, of PI 99 the 254 bytes of the specification', async () => {
    const [label, freeMessage] = ['L'.repeat(512), Buffer.alloc(512, 'm')];
    await exchange(CONNECT, create({ label, freeMessage }), ORF, WRITE, DTF, ...endOf(1));
    expect(await node().ended()).toMatchObject({ status: 'COMPLETED', label, freeMessage: 'm'.repeat(254) });
  });

  test('Transfer CFT: application and user in PGI 9 are not the partner', async () => {
    await exchange(CONNECT, create({ application: 'SALES' }), ORF, WRITE, DTF, ...endOf(1));
    expect(await node().ended()).toMatchObject({ status: 'COMPLETED', partnerId: 'ACME' });
  });

  test('Transfer CFT, Waarp: the acknowledgement (MSG) of a file that nobody knows here is kept', async () => {
    const answers = await exchange(CONNECT, message(Buffer.from('done'), { fileType: 0, transferId: 4711 }), RELEASE);
    expect(answers.map(summaryOf)).toEqual(['ACONNECT', 'ACK(MSG) 0-000', 'RELCONF']);
    const [kept] = await node().history();
    expect(await node().call('get', `/api/v1/transfers/${kept!.id}`)).toMatchObject({
      ...{ type: 'MESSAGE', status: 'COMPLETED', fileType: 0, transferId: 4711, message: 'done' },
    });
  });

  test('Waarp: a file, a message and a file the other way on one connection', async () => {
    await writeFile(join(node().data, 'OUT/out/data.bin'), 'abc');
    const written = [create(), ORF, WRITE, DTF, ...endOf(1), CRF, DESELECT];
    const peer = await RawPeer.open(node().port, CONNECT, ...written, message(Buffer.from('x')), select('OUT'), ORF);
    expect(summaryOf(await peer.send(READ))).toBe('ACK(READ) 0-000');
    // DTF with the three bytes, and DTF.END in the same entity.
    expect((await peer.next())?.toString('hex')).toBe('000900000100616263' + '000bc00401000203000000');
    expect(
      summaryOf(
        await peer.sendAll(
          step('TRANS.END', (y) => fpdu('TRANS.END', y, 0)),
          CRF,
          DESELECT,
        ),
      ),
    ).toBe('ACK(DESELECT) 0-000');
    expect(summaryOf(await peer.send(RELEASE))).toBe('RELCONF');
    peer.socket.destroy();
    expect((await node().history()).map(({ type, direction, status }) => [type, direction, status])).toEqual([
      ['FILE', 'SEND', 'COMPLETED'],
      ['MESSAGE', 'RECEIVE', 'COMPLETED'],
      ['FILE', 'RECEIVE', 'COMPLETED'],
    ]);
  });

  test('Waarp, Transfer CFT: files one after the other on a connection, the first refused, the last released', async () => {
    const answers = await exchange(
      ...[CONNECT, create({ fileName: 'NOTHERE', transferId: 8 }), create(), ORF, WRITE, DTF, DTF_END],
      ...[transEnd(DATA.length, 1), CRF, DESELECT, create({ transferId: 10 }), ORF, WRITE, DTF, DTF_END],
      ...[transEnd(DATA.length, 1), CRF, DESELECT, RELEASE],
    );
    expect(nameOf(answers.at(-1))).toBe('RELCONF');
    expect((await node().history()).map(({ status }) => status)).toEqual(['COMPLETED', 'COMPLETED', 'FAILED']);
  });

  test('Connect:Express: PI 99 of 254 blanks in SELECT is nothing to show', async () => {
    await writeFile(join(node().data, 'OUT/out/data.bin'), 'abc');
    await exchange(CONNECT, select('OUT', { freeMessage: Buffer.alloc(254, ' ') }));
    expect((await node().history())[0]).toMatchObject({ direction: 'SEND', freeMessage: '' });
    const { rows } = await node().database.knex.raw('select length(free_message) as kept from transfers');
    expect(rows).toEqual([{ kept: 254 }]);
  });

  test('Connect:Express: CONNECT and what follows it in pieces of one byte', async () => {
    const peer = await RawPeer.open(node().port);
    for (const byte of entity(CONNECT.bytes(0))) peer.write(Buffer.from([byte]));
    expect(nameOf(await peer.next())).toBe('ACONNECT');
    peer.socket.destroy();
  });
});
