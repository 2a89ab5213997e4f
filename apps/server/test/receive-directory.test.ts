import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { diagnosticOf, nameOf, pointOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { bytes, refusedWith, until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import {
  ACK_IDT,
  CONNECT,
  create,
  CRF,
  DATA,
  DESELECT,
  DTF,
  DTF_END,
  ORF,
  syn,
  transEnd,
  WRITE,
} from './support/steps.js';

/** root writes wherever it likes, but not to what is mounted read-only. */
const isRoot = process.getuid?.() === 0;
const canMount = ((): boolean => {
  if (!isRoot) return true;
  try {
    execFileSync('unshare', ['--mount', 'true'], { stdio: 'pipe' });
    return true;
  } catch {
    console.log('left out: this account is root and cannot mount, so a directory that becomes read-only was not tried');
    return false;
  }
})();

/** What happens to a receive directory, how it is mended, and what is said of it meanwhile. */
interface Accident {
  readonly name: string;
  readonly happens: (directory: string) => Promise<void>;
  readonly isMended: (directory: string) => Promise<void>;
  readonly words: RegExp;
  /** Sync point from which an interrupted transfer goes on then, of two. */
  readonly goesOnFrom: number;
}

withDatabase((harness) => {
  const node = useNode(harness);

  describe('a receive directory, in the middle of a transfer', () => {
    let elsewhere: string;
    let undo: () => Promise<void> | void = () => undefined;

    beforeEach(async () => {
      elsewhere = await mkdtemp(join(tmpdir(), 'pesit-elsewhere-'));
      await mkdir(join(elsewhere, '.pesit'));
    });

    afterEach(async () => {
      await undo();
      undo = () => undefined;
      await rm(elsewhere, { recursive: true });
    });

    const readOnly: Accident = {
      name: 'becomes read-only',
      happens: async (directory) => {
        if (isRoot) {
          execFileSync('mount', ['--bind', directory, directory], { stdio: 'pipe' });
          undo = () => {
            execFileSync('umount', ['-l', directory]);
          };
          execFileSync('mount', ['-o', 'remount,bind,ro', directory], { stdio: 'pipe' });
        } else {
          undo = () => readOnly.isMended(directory);
          await chmod(join(directory, '.pesit'), 0o500);
          await chmod(directory, 0o500);
        }
      },
      isMended: async (directory) => {
        if (isRoot) execFileSync('umount', ['-l', directory]);
        else for (const path of [directory, join(directory, '.pesit')]) await chmod(path, 0o700);
        undo = () => undefined;
      },
      words: /the file system is read-only; mount it read-write|permission denied; give the account of this service/,
      goesOnFrom: 2,
    };
    const accidents: readonly Accident[] = [
      ...(canMount ? [readOnly] : []),
      {
        name: 'is removed',
        happens: (directory) => rm(directory, { recursive: true }),
        isMended: async (directory) => {
          await mkdir(directory);
        },
        words: /no such file or directory; create it, or correct the configured directory/,
        goesOnFrom: 0,
      },
      {
        name: 'is replaced by a link to elsewhere',
        happens: async (directory) => {
          await rename(directory, `${directory}.away`);
          await symlink(elsewhere, directory);
        },
        isMended: async (directory) => {
          await rm(directory);
          await rename(`${directory}.away`, directory);
        },
        words: /no such file or directory|leads to \S+ by a link: expected a path inside \S+ \(storage\.roots\)/,
        goesOnFrom: 2,
      },
    ];

    const directory = (): string => join(node().data, 'IN/in');

    const open = async (...steps: readonly Parameters<RawPeer['send']>[0][]): Promise<RawPeer> => {
      const peer = await RawPeer.open(node().port);
      for (const step of [CONNECT, ...steps]) await peer.send(step);
      return peer;
    };

    /** The record and the log say it, and nobody has to look after the node. */
    const isTold = async (diagnostic: string, words: RegExp): Promise<void> => {
      expect(await node().ended()).toMatchObject({
        status: 'FAILED',
        diagnostic,
        errorMessage: expect.stringMatching(words),
        restartable: true,
      });
      const said = node()
        .log.entries()
        .findLast(({ msg }) => msg === 'transfer failed');
      expect(said).toMatchObject({
        diagnostic: expect.stringContaining(diagnostic),
        reason: expect.stringMatching(words),
      });
      await until(async () => {
        const { status, activeConnections } = await node().call('get', '/api/v1/servers/NODE1/status');
        return (status === 'RUNNING' && activeConnections === 0) || undefined;
      });
      expect(await node().call('get', '/actuator/health')).toMatchObject({ status: 'UP' });
    };

    /** The partner goes on, and another one after it: two files, and nothing beside them. */
    const works = async (from: number): Promise<void> => {
      const peer = await open(create({ restarted: true }), ORF);
      expect(pointOf(await peer.send(WRITE))).toBe(from);
      for (let article = from; article < 2; article += 1) await peer.send(DTF);
      await peer.send(DTF_END);
      expect(diagnosticOf(await peer.send(transEnd(2 * DATA.length, 2)))).toBe('0-000');
      peer.socket.destroy();
      const content = bytes(100);
      const session = await node().connect();
      await node().send(session, 'IN', content);
      const received = (await node().received('IN')).map(String).sort();
      expect(received).toEqual([DATA + DATA, String(content)].sort());
      expect(await node().staged('IN')).toEqual([]);
      expect(await node().history('&status=COMPLETED')).toHaveLength(2);
      expect(await node().history('&restartable=true')).toEqual([]);
    };

    const nothingElsewhere = async (): Promise<void> => {
      expect(await readdir(elsewhere, { recursive: true })).toEqual(['.pesit']);
    };

    describe.each(accidents)('that $name', ({ name, happens, isMended, words, goesOnFrom }) => {
      test('before its first point: the partner is interrupted, and begins again when it is mended', async () => {
        const peer = await open(create(), ORF, WRITE, DTF);
        // With a staging directory there, the journal of points could begin in it.
        await rm(join(elsewhere, '.pesit'), { recursive: true });
        await happens(directory());
        const told = await peer.send(syn(1));
        expect([name, nameOf(told), diagnosticOf(told)]).toEqual([name, 'IDT', '2-213']);
        await peer.send(ACK_IDT);
        for (const step of [CRF, DESELECT]) await peer.send(step);
        peer.socket.destroy();
        await isTold('2-213', words);
        expect(await readdir(elsewhere)).toEqual([]);
        await isMended(directory());
        await works(0);
        await mkdir(join(elsewhere, '.pesit'));
      });

      test('between two points: the end is refused, so is whatever comes, and it goes on when it is mended', async () => {
        const peer = await open(create(), ORF, WRITE, DTF, syn(1));
        await happens(directory());
        for (const step of [DTF, syn(2), DTF_END]) await peer.send(step);
        const end = await peer.send(transEnd(2 * DATA.length, 2));
        expect([name, nameOf(end), diagnosticOf(end)]).toEqual([name, 'ACK(TRANS.END)', '2-211']);
        peer.socket.destroy();
        await isTold('2-211', words);
        const session = await node().connect();
        for (const restarted of [false, true]) {
          const transferId = restarted ? 9 : 10;
          await expect(node().send(session, 'IN', bytes(10), { transferId, restarted })).rejects.toEqual(
            refusedWith('2-211'),
          );
          const [record] = await node().history();
          expect(record!.errorMessage).toMatch(words);
        }
        await session.release();
        await nothingElsewhere();
        await isMended(directory());
        await works(goesOnFrom);
      });

      test('before the end of a file with a directory of its own in its name: that is not made elsewhere', async () => {
        await node().call('put', '/api/v1/config/files/IN', {
          receiveFilenamePattern: '${partner}/${uuid}',
          overwrite: true,
        });
        const peer = await open(create(), ORF, WRITE, DTF, DTF, syn(1), DTF_END);
        await happens(directory());
        const end = await peer.send(transEnd(2 * DATA.length, 2));
        expect([name, nameOf(end), diagnosticOf(end)]).toEqual([name, 'ACK(TRANS.END)', '2-211']);
        peer.socket.destroy();
        await isTold('2-211', words);
        await nothingElsewhere();
        await isMended(directory());
      });
    });
  });

  test('a send directory that was replaced by a link to elsewhere: 2-211, and nothing of what is there is read', async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), 'pesit-elsewhere-'));
    try {
      await writeFile(join(elsewhere, 'x'), 'not for partners');
      const out = join(node().data, 'OUT/out');
      await rm(out, { recursive: true });
      await symlink(elsewhere, out);
      const session = await node().connect();
      for (let attempt = 1; attempt <= 2; attempt += 1) {
        await expect(node().receive(session, 'OUT')).rejects.toEqual(refusedWith('2-211'));
      }
      const [record] = await node().history();
      expect(record!.errorMessage).toMatch(/leads to \S+ by a link: expected a path inside \S+ \(storage\.roots\)/);
      await rm(out);
      await mkdir(out);
      await writeFile(join(out, 'x'), 'for partners');
      expect((await node().receive(session, 'OUT')).toString()).toBe('for partners');
    } finally {
      await rm(elsewhere, { recursive: true });
    }
  });
});
