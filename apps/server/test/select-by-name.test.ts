import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { fpdu, num, pi, summaryOf, text } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { bytes, refusedWith, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, DESELECT, ORF, READ, select, step } from './support/steps.js';

/** PI 12 of a SELECT that names the file: `<virtual file>/<name>`. */
withDatabase((harness) => {
  const node = useNode(harness);
  const offer = (name: string, content: Buffer | string): Promise<void> =>
    writeFile(join(node().data, 'OUT/out', name), content);

  describe('a partner reads OUT/<name>', () => {
    test('that file and no other, as often as it likes; the others stay new to it', async () => {
      await offer('a.txt', 'the older one');
      await offer('b.txt', 'the one that is asked for');
      const session = await node().connect();
      const read = async (name: string) => (await node().receive(session, name)).toString();
      expect(await read('OUT/b.txt')).toBe('the one that is asked for');
      expect(await read('OUT/b.txt')).toBe('the one that is asked for');
      expect(await read('OUT')).toBe('the older one');
      await expect(read('OUT')).rejects.toEqual(refusedWith('2-205'));
      expect((await node().history('&virtualFileId=OUT&status=COMPLETED')).map(({ filename }) => filename)).toEqual([
        ...['a.txt', 'b.txt', 'b.txt'],
      ]);
    });

    test('byte by byte: PI 12 comes back as it was asked for, PI 37 is the name', async () => {
      await offer('b.txt', 'x');
      const peer = await RawPeer.open(node().port, CONNECT);
      const answer = await peer.send(select('OUT/b.txt'));
      expect(summaryOf(answer)).toBe('ACK(SELECT) 0-000');
      expect(answer?.includes(pi(12, text('OUT/b.txt')))).toBe(true);
      expect(answer?.includes(pi(37, text('b.txt')))).toBe(true);
      // Nothing is read: the file is there for the next one, by its name or as a new one.
      expect(summaryOf(await peer.send(DESELECT))).toBe('ACK(DESELECT) 0-000');
      expect(summaryOf(await peer.send(select('OUT')))).toBe('ACK(SELECT) 0-000');
      peer.socket.destroy();
    });

    test('within filenamePattern alone', async () => {
      await offer('a.txt', 'no');
      await offer('b.csv', 'yes');
      await node().call('put', '/api/v1/config/files/OUT', { filenamePattern: '*.csv' });
      const session = await node().connect();
      await expect(node().receive(session, 'OUT/a.txt')).rejects.toEqual(refusedWith('2-205'));
      expect((await node().receive(session, 'OUT/b.csv')).toString()).toBe('yes');
    });

    test('where sendFile names one file: that one alone, by its own name', async () => {
      await offer('only.txt', 'only');
      await offer('other.txt', 'other');
      await node().call('put', '/api/v1/config/files/OUT', { sendFile: join(node().data, 'OUT/out/only.txt') });
      const session = await node().connect();
      expect((await node().receive(session, 'OUT/only.txt')).toString()).toBe('only');
      await expect(node().receive(session, 'OUT/other.txt')).rejects.toEqual(refusedWith('2-205'));
    });

    test.each([
      ['a name that is not there', 'OUT/nope.txt'],
      ['no name', 'OUT/'],
      ['a name of two segments', 'OUT/sub/in.txt'],
      ['the directory above', 'OUT/../secret.txt'],
      ['a path from the root', 'OUT//etc/hostname'],
      ['a hidden file', 'OUT/.hidden'],
      ['a directory', 'OUT/sub'],
      ['a link that leads out', 'OUT/link'],
      ['a file of a virtual file that is not known', 'NOWHERE/b.txt'],
      ['a name in lower case', 'OUT/B.TXT'],
    ])('%s: 2-205, and no other file instead', async (_, name) => {
      await offer('b.txt', 'x');
      await offer('.hidden', 'x');
      await writeFile(join(node().data, 'OUT/secret.txt'), 'x');
      await mkdir(join(node().data, 'OUT/out/sub'));
      await writeFile(join(node().data, 'OUT/out/sub/in.txt'), 'x');
      await symlink(join(node().data, 'OUT/secret.txt'), join(node().data, 'OUT/out/link'));
      const session = await node().connect();
      await expect(node().receive(session, name)).rejects.toEqual(refusedWith('2-205'));
      const [record] = await node().history();
      expect(record).toMatchObject({ status: 'FAILED', diagnostic: '2-205', virtualFileId: name.split('/')[0] });
      expect(record!.errorMessage).toMatch(/NOWHERE.*not configured|none is named .* and matches/);
    });

    test('a link inside the directory, under the name of the link', async () => {
      await offer('report-47.txt', 'x');
      await symlink('report-47.txt', join(node().data, 'OUT/out/current.txt'));
      const peer = await RawPeer.open(node().port, CONNECT);
      const answer = await peer.send(select('OUT/current.txt'));
      expect(answer?.includes(pi(37, text('current.txt')))).toBe(true);
      peer.socket.destroy();
    });

    test('with the rights of its virtual file', async () => {
      await offer('b.txt', 'x');
      await node().call('put', '/api/v1/config/files/OUT', { direction: 'RECEIVE' });
      const session = await node().connect();
      await expect(node().receive(session, 'OUT/b.txt')).rejects.toEqual(refusedWith('2-226'));
    });

    test('a restart that names another file than the transfer had: the one that it names, from its start', async () => {
      await offer('a.bin', bytes(3000));
      await offer('b.bin', bytes(5000));
      const interrupted = await RawPeer.open(node().port, CONNECT, select('OUT/a.bin'), ORF, READ);
      interrupted.socket.destroy();
      const record = await node().record(({ restartable }) => restartable === true);
      const id = record['transferId'] as number;
      const restart = step('SELECT', (y) =>
        fpdu(
          'SELECT',
          y,
          0,
          Buffer.concat([
            ...[pi(9, pi(11, '0000'), pi(12, text('OUT/b.bin'))), pi(13, num(id, 3))],
            ...[pi(14, 'e0'), pi(15, '01'), pi(17, '00'), pi(25, '1000')],
          ]),
        ),
      );
      const peer = await RawPeer.open(node().port, CONNECT);
      const answer = await peer.send(restart);
      expect(summaryOf(answer)).toBe('ACK(SELECT) 0-000');
      expect(answer?.includes(pi(37, text('b.bin')))).toBe(true);
      peer.socket.destroy();
    });
  });

  test('a partner cannot write OUT/<name>: 2-226, as for any name that is not known', async () => {
    const session = await node().connect();
    await expect(node().send(session, 'IN/b.txt', bytes(3))).rejects.toEqual(refusedWith('2-226'));
    expect(await node().received('IN')).toEqual([]);
  });
});
