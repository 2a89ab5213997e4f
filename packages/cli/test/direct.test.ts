/** Commands that talk PeSIT, with a partner in memory and a network that is cut on purpose. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { startProxy } from '../../../apps/client/test/support/cutting-proxy.js';
import { refusal, startPartner } from '../../../apps/client/test/support/partner.js';
import type { Partner, PartnerOptions } from '../../../apps/client/test/support/partner.js';
import { useConsole } from './support/console.js';
import type { Console, Ran } from './support/console.js';

const POINTS = { syncPoints: { intervalKb: 4, window: 2 }, restarts: true };
const CONTENT = randomBytes(200_000);
const sha256 = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;

let user: Console;
let partner: Partner | undefined;
const closing: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  user = await useConsole();
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await partner?.close();
  partner = undefined;
  await user.close();
});

const serve = async (options: PartnerOptions = POINTS): Promise<Partner> => (partner = await startPartner(options));

const session = (port: number, ...more: (string | number)[]): (string | number)[] => [
  ...['--host', '127.0.0.1', '--port', port, '--server-id', 'BANK', '--partner', 'ACME', '--sync-interval', 4],
  ...['--timeout', 20, ...more],
];

const put = async (name: string, content: Buffer | string = CONTENT): Promise<string> => {
  await writeFile(join(user.directory, name), content);
  return name;
};

/** @returns the port of a network that cuts the first connection */
const cutAfter = async (port: number, afterBytes: number, from: 'client' | 'server' = 'client'): Promise<number> => {
  const proxy = await startProxy(port, [{ from, afterBytes }]);
  closing.push(() => proxy.close());
  return proxy.port;
};

describe('send', () => {
  test('brings the file with its name, and answers what was agreed', async () => {
    const { port, written, connects } = await serve();
    const name = await put('night.dat');
    const ran = await user.pesit(['send', name, '--remote', 'PAYMENTS', '--json', ...session(port)], {
      variables: { PESIT_PASSWORD: 'SECRET' },
    });
    expect(ran.json()).toMatchObject({
      ...{ status: 'COMPLETED', size: CONTENT.length, attempts: 1, checksum: sha256(CONTENT), tls: null },
      negotiated: { syncIntervalKb: 4, syncWindow: 2, crc: false },
    });
    expect(ran.code).toBe(0);
    expect(written.map(({ content }) => content.equals(CONTENT))).toEqual([true]);
    expect(written[0]?.create).toMatchObject({
      fileIdentifier: { fileName: 'PAYMENTS' },
      logicalAttributes: { fileLabel: 'night.dat' },
    });
    expect(connects[0]).toMatchObject({ requester: 'ACME', server: 'BANK', accessControl: 'SECRET' });
    expect(await readdir(join(user.directory, '.local/state/pesit'))).toEqual([]);
  });

  test('says it in words for a person, and asks for a password that is in a file', async () => {
    const { port, connects } = await serve();
    const name = await put('night.dat', 'hello');
    await put('password', 'FROMFILE\nand more\n');
    const ran = await user.pesit(['send', name, '--password-file', 'password', ...session(port)]);
    expect(ran).toMatchObject({ code: 0, error: '' });
    expect(ran.out).toMatch(/^night\.dat sent: 5 B in .+\nsha256:2cf24dba/);
    const piped = await user.pesit(['send', name, '--password-file', '-', ...session(port)], { input: 'PIPED\n' });
    expect(piped.code).toBe(0);
    expect(connects.map(({ accessControl }) => accessControl)).toEqual(['FROMFILE', 'PIPED']);
  });

  test('continues by itself what was cut off, from the point that the partner has', async () => {
    const { port, written, creates } = await serve();
    const name = await put('night.dat');
    const ran = await user.pesit(['send', name, '--json', ...session(await cutAfter(port, 100_000))]);
    expect(ran.json()).toMatchObject({ status: 'COMPLETED', attempts: 2, checksum: sha256(CONTENT) });
    expect(Number(ran.json()['restartPoint'])).toBeGreaterThan(0);
    expect(written.map(({ content }) => content.equals(CONTENT))).toEqual([true]);
    expect(creates.map(({ transferId, restarted }) => [transferId, restarted ?? 0])).toEqual([
      [creates[0]?.transferId, 0],
      [creates[0]?.transferId, 1],
    ]);
    expect(ran.error).toContain('attempt 1 of 5 failed');
  });

  test('is continued by the same command when the process was interrupted', async () => {
    const abort = new AbortController();
    let points = 0;
    const { port, written, creates, failures } = await serve({
      ...POINTS,
      before: { checkpoint: () => (++points === 5 ? abort.abort('SIGINT') : undefined) },
    });
    const name = await put('night.dat');
    const command = ['send', name, '--remote', 'PAYMENTS', ...session(port)];
    const first = await user.pesit(command, { signal: abort.signal });
    expect(first).toMatchObject({ code: 130, out: '' });
    expect(first.error).toContain('interrupted by SIGINT');
    expect(failures).toEqual([{ diagnostic: '2-223', endCode: 4 }]);
    const second = await user.pesit([...command, '--json']);
    expect(second.error).toBe(`continuing transfer ${creates[0]?.transferId}, which was cut off\n`);
    expect(Number(second.json()['restartPoint'])).toBeGreaterThanOrEqual(4);
    expect(written.map(({ content }) => content.equals(CONTENT))).toEqual([true]);
    expect(await readdir(join(user.directory, '.local/state/pesit'))).toEqual([]);
  });

  test('does not send a file again whose confirmation was lost', async () => {
    const { port, written, creates } = await serve({
      ...POINTS,
      before: {
        create: (create) => {
          if (create?.restarted === 1) throw refusal('2-250', 'already here');
        },
      },
    });
    const name = await put('night.dat');
    // Each answer before it is far shorter: the end of the file alone is confirmed behind so many points.
    const proxy = await startProxy(port, []);
    closing.push(() => proxy.close());
    const lost = await user.pesit(['send', name, '--attempts', 1, '--json', ...session(proxy.port)], {});
    expect(lost.code).toBe(0);
    const bytes = proxy.bytes[0]?.fromServer ?? 0;
    const cut = await startProxy(port, [{ from: 'server', afterBytes: bytes - 40 }]);
    closing.push(() => cut.close());
    const other = await put('other.dat');
    const ran = await user.pesit(['send', other, '--json', ...session(cut.port)]);
    expect(ran.json()).toMatchObject({ status: 'COMPLETED', attempts: 2 });
    expect(creates.map(({ restarted }) => restarted ?? 0)).toEqual([0, 0, 1]);
    expect(written).toHaveLength(2);
  });

  test('takes a file that has changed since for a new one', async () => {
    const { port, written, creates } = await serve();
    const name = await put('night.dat');
    const command = (at: number) => ['send', name, '--remote', 'X', '--attempts', 1, ...session(at)];
    const proxy = await startProxy(port, [{ from: 'client', afterBytes: 100_000 }]);
    closing.push(() => proxy.close());
    expect((await user.pesit(command(proxy.port))).code).toBe(7);
    await put(name, 'another');
    const ran = await user.pesit(command(proxy.port));
    expect(ran.error).toContain('has changed since its transfer');
    expect(written.map(({ content }) => content.toString())).toEqual(['another']);
    expect(creates[1]?.restarted ?? 0).toBe(0);
  });

  test('starts over where the partner does not want the restart', async () => {
    const { port, written, creates } = await serve({
      ...POINTS,
      before: {
        create: (create) => {
          if (create?.restarted === 1) throw refusal('2-204', 'no restart here');
        },
      },
    });
    const ran = await user.pesit(['send', await put('a'), '--json', ...session(await cutAfter(port, 100_000))]);
    expect(ran.json()).toMatchObject({ status: 'COMPLETED' });
    expect(written).toHaveLength(1);
    expect(new Set(creates.map(({ transferId }) => transferId)).size).toBe(2);
  });

  test.each([
    ['a file in place of it', 'mine'],
    ['a path through a file', 'mine/state'],
  ])('with %s as --state nothing is sent', async (_, state) => {
    const { port, connects } = await serve();
    await put('mine', 'mine');
    const ran = await user.pesit(['send', 'mine', '--state', state, ...session(port)]);
    expect(ran).toMatchObject({ code: 3, out: '' });
    expect(ran.error).toMatch(/cannot be used to keep state \(.+\): choose another with --state/);
    expect(connects).toEqual([]);
    expect(await readFile(join(user.directory, 'mine'), 'utf8')).toBe('mine');
  });

  test('a disk that fills between two attempts: what was kept continues it', async () => {
    const state = join(user.directory, '.local/state/pesit');
    const fresh = async () => join(state, `${(await readdir(state)).find((one) => one.endsWith('.json')) ?? ''}.new`);
    let attempts = 0;
    const { port, written, creates } = await serve({
      ...POINTS,
      before: {
        // Each write to it fails with ENOSPC. What is kept of the first attempt was renamed before its first point.
        checkpoint: async () => (++attempts === 5 ? symlink('/dev/full', await fresh()) : undefined),
      },
    });
    const at = await cutAfter(port, 100_000);
    const command = ['send', await put('night.dat'), '--json', ...session(at)];
    const full = await user.pesit([...command, '--attempts', 2]);
    expect(full.json()).toMatchObject({ error: 'local', exitCode: 3, diagnostic: '2-219', attempts: 2 });
    expect(full.json()['message']).toMatch(/^cannot write .+\.json: the disk is full; free space or enlarge/);
    expect(full.code).toBe(3);
    expect(creates).toHaveLength(1);
    const ran = await user.pesit(command);
    expect(ran.json()).toMatchObject({ status: 'COMPLETED', attempts: 1, checksum: sha256(CONTENT) });
    expect(creates.map(({ restarted }) => restarted ?? 0)).toEqual([0, 1]);
    expect(written.map(({ content }) => content.equals(CONTENT))).toEqual([true]);
    expect(await readdir(state)).toEqual([]);
  });

  test('two of the same at a time: the second one says who is at work', async () => {
    let second: Ran | undefined;
    const name = await put('night.dat');
    const { port } = await serve({
      ...POINTS,
      before: {
        write: async () => {
          second ??= await user.pesit(['send', name, ...session(partner?.port ?? 0)]);
        },
      },
    });
    expect((await user.pesit(['send', name, ...session(port)])).code).toBe(0);
    expect(second).toMatchObject({ code: 3 });
    expect(second?.error).toContain(`process ${process.pid} is at work with this transfer`);
  });

  test('draws a bar where somebody watches, and shows the session on demand without its password', async () => {
    const { port } = await serve();
    const ran = await user.pesit(
      ['send', await put('night.dat'), '--trace', ...session(port), '--password', 'SECRET'],
      { isTTY: true },
    );
    expect(ran.error).toContain('night.dat');
    expect(ran.error).toMatch(/--> .*CONNECT/);
    expect(ran.error).toMatch(/<-- .*ACONNECT/);
    expect(ran.error).not.toContain('SECRET');
  });
});

describe('receive', () => {
  const FILES = { ...POINTS, files: { REPORT: CONTENT }, label: 'today.pdf' };

  test('puts the file under the name that the partner gives, or under another', async () => {
    const { port } = await serve(FILES);
    const ran = await user.pesit(['receive', 'REPORT', '--json', ...session(port)]);
    expect(ran.json()).toMatchObject({ status: 'COMPLETED', size: CONTENT.length, checksum: sha256(CONTENT) });
    expect(ran.code).toBe(0);
    expect((await readFile(join(user.directory, 'today.pdf'))).equals(CONTENT)).toBe(true);
    await mkdir(join(user.directory, 'in'));
    const named = await user.pesit(['receive', 'REPORT', '--file', 'in/x.pdf', ...session(port)]);
    expect(named.out).toMatch(/in\/x\.pdf received: 200\.0 KB in /);
    expect(await readdir(join(user.directory, 'in'))).toEqual(['x.pdf']);
  });

  test('a name that exists is not replaced unless that is asked for', async () => {
    const { port, selects } = await serve(FILES);
    await put('x.pdf', 'mine');
    const refused = await user.pesit(['receive', 'REPORT', '--file', 'x.pdf', ...session(port)]);
    expect(refused).toMatchObject({ code: 3, out: '' });
    expect(refused.error).toContain('x.pdf exists: choose another --file, or give --overwrite');
    expect(selects).toEqual([]);
    const replaced = await user.pesit(['receive', 'REPORT', '--file', 'x.pdf', '--overwrite', ...session(port)]);
    expect(replaced.code).toBe(0);
    expect((await readFile(join(user.directory, 'x.pdf'))).equals(CONTENT)).toBe(true);
    await put('today.pdf', 'mine');
    const kept = await user.pesit(['receive', 'REPORT', ...session(port)]);
    expect(kept.error).toMatch(/today\.pdf exists in .+: the file is kept as today_[0-9a-f]{32}\.pdf/);
    expect(await readFile(join(user.directory, 'today.pdf'), 'utf8')).toBe('mine');
  });

  test('continues by itself, and in the next process, from what is on disk', async () => {
    const { port, reads } = await serve(FILES);
    const command = (at: number, attempts: number) => [
      ...['receive', 'REPORT', '--file', 'x', '--json', '--attempts', attempts, ...session(at)],
    ];
    const proxy = await startProxy(port, [
      { from: 'server', afterBytes: 60_000 },
      { from: 'server', afterBytes: 60_000 },
    ]);
    closing.push(() => proxy.close());
    const lost = await user.pesit(command(proxy.port, 1));
    expect(lost.code).not.toBe(0);
    expect((await readdir(user.directory)).toSorted()).toEqual(['.pesit']);
    const ran = await user.pesit(command(proxy.port, 3));
    expect(ran.json()).toMatchObject({ status: 'COMPLETED', attempts: 2, checksum: sha256(CONTENT) });
    expect(reads).toHaveLength(3);
    expect(reads[1]).toBeGreaterThan(0);
    expect(reads[2]).toBeGreaterThan(reads[1] ?? 0);
    expect(await readdir(user.directory)).toEqual(['x']);
  });

  test('is continued by the same command when the process was interrupted', async () => {
    const abort = new AbortController();
    let bursts = 0;
    const { port, reads, failures } = await serve({
      ...FILES,
      before: { fill: () => (++bursts === 3 ? abort.abort('SIGINT') : undefined) },
    });
    const command = ['receive', 'REPORT', '--file', 'x', '--json', ...session(port)];
    const first = await user.pesit(command, { signal: abort.signal });
    expect(first.json()).toMatchObject({ status: 'FAILED', error: 'interrupted', exitCode: 130, attempts: 1 });
    expect(failures).toEqual([{ diagnostic: '2-223', endCode: 4 }]);
    expect(await readdir(user.directory)).toEqual(['.pesit']);
    const second = await user.pesit(command);
    expect(second.json()).toMatchObject({ status: 'COMPLETED', attempts: 1, checksum: sha256(CONTENT) });
    expect(reads).toHaveLength(2);
    expect(await readdir(user.directory)).toEqual(['x']);
  });

  test.each([
    ['a directory that does not exist', 'none/x', /the directory .+\/none does not exist: create it, or choose/],
    ['a directory that does not exist, without a name', 'none/', /the directory .+\/none does not exist: create it/],
    ['a file in place of the directory', 'mine/x', /\/mine is not a directory: choose another --file/],
    ['a path through a file', 'mine/y/x', /\/mine\/y cannot be used \(ENOTDIR.*\): choose another --file/],
  ])('into %s: nothing is asked of the partner', async (_, file, words) => {
    const { port, connects } = await serve(FILES);
    await put('mine', 'mine');
    const ran = await user.pesit(['receive', 'REPORT', '--file', file, ...session(port)]);
    expect(ran).toMatchObject({ code: 3, out: '' });
    expect(ran.error).toMatch(words);
    expect(connects).toEqual([]);
    expect(await readdir(user.directory)).toEqual(['mine']);
  });

  test('a file that the partner does not have leaves nothing behind', async () => {
    const { port } = await serve(FILES);
    const ran = await user.pesit(['receive', 'NOTHING', '--json', ...session(port)]);
    expect(ran.json()).toMatchObject({ status: 'FAILED', error: 'notFound', diagnostic: '2-205', exitCode: 6 });
    expect(ran.code).toBe(6);
    expect(await readdir(user.directory)).toEqual([]);
  });
});

describe('message and test', () => {
  test('a message brings its reply back', async () => {
    const { port } = await serve({
      message: () => Promise.resolve({ reply: Buffer.from('understood') }),
    });
    const ran = await user.pesit(['message', 'hello', '--virtual-file', 'NOTES', '--expect-reply', ...session(port)]);
    expect(ran).toMatchObject({
      code: 0,
      out: 'message of 5 bytes taken by the partner\nthe partner replies: understood\n',
    });
  });

  test('a test shows what was agreed', async () => {
    const { port, ended } = await serve();
    const ran = await user.pesit(['test', ...session(port)]);
    expect(ran.code).toBe(0);
    expect(ran.out).toMatch(/^BANK accepts ACME: session open in \d+ ms/);
    expect(ran.out).toContain('points every 4 KB, window 2');
    expect(ended).toEqual([undefined]);
  });
});

describe('exit codes say the cause', () => {
  const closedPort = async (): Promise<number> => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    return port;
  };

  test('4: nobody listens', async () => {
    const ran = await user.pesit(['test', ...session(await closedPort())]);
    expect(ran).toMatchObject({ code: 4, out: '' });
    expect(ran.error).toMatch(/^pesit: no connection to 127\.0\.0\.1:\d+: .*check host, port/s);
  });

  test.each([
    ['3-304', 5, 'connect'],
    ['3-301', 5, 'connect'],
    ['2-226', 7, 'create'],
  ] as const)('%s of the partner → %i', async (diagnostic, code, step) => {
    const { port } = await serve({
      before: {
        [step]: () => {
          throw refusal(diagnostic, 'not you');
        },
      },
    });
    const ran = await user.pesit(['send', await put('a', 'a'), ...session(port)]);
    expect(ran.code).toBe(code);
    expect(ran.error).toContain(diagnostic);
    expect(await readdir(join(user.directory, '.local/state/pesit'))).toEqual([]);
  });

  test('8: silence', async () => {
    const server = createServer((socket) => closing.unshift(() => Promise.resolve(socket.destroy())));
    server.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    closing.push(() => new Promise((resolve) => server.close(resolve)));
    const { port } = server.address() as AddressInfo;
    const ran = await user.pesit([
      ...['test', '--host', '127.0.0.1', '--port', port, '--server-id', 'B', '--partner', 'A', '--timeout', 1],
    ]);
    expect(ran.code).toBe(8);
  });

  test.each([
    ['a file that is not there', ['send', 'nothing.dat'], 3, 'cannot be read'],
    ['a certificate that is not there', ['test', '--tls', '--ca', 'nothing.pem'], 3, '--ca: '],
    ['a file without a certificate', ['test', '--tls', '--ca', 'a'], 3, 'there is no certificate (PEM)'],
    ['TLS without TLS', ['test', '--ca', 'a'], 2, '--ca needs --tls'],
    ['a key without its certificate', ['test', '--tls', '--key', 'a'], 2, '--key needs --cert'],
    ['a pin that is none', ['test', '--tls', '--pin', 'zz'], 2, '--pin: expected a SHA-256 fingerprint'],
  ])('%s', async (_, words, code, text) => {
    await put('a', 'a');
    const ran = await user.pesit([...words, ...session(1)]);
    expect(ran.code).toBe(code);
    expect(ran.error).toContain(text);
  });

  test('a link to a file is followed', async () => {
    const { port, written } = await serve();
    await put('a', 'a');
    await symlink('a', join(user.directory, 'link'));
    expect((await user.pesit(['send', 'link', ...session(port)])).code).toBe(0);
    expect(written).toHaveLength(1);
  });
});
