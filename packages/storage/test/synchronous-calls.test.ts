/** Which calls a process makes itself: the rules by a clock of the test, and the real calls as they are made by them. */
import { execFileSync } from 'node:child_process';
import { constants, mkdirSync, renameSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { StagedFile, formatOf, nodeFiles } from '../src/index.js';
import { directoryLooksBy, filesBy } from '../src/node-files.js';
import { SynchronousCalls } from '../src/synchronous-calls.js';
import type { CallKind, Ground } from '../src/synchronous-calls.js';
import { batchOf } from './support/articles.js';
import { filesIn, rejection, sandbox } from './support/sandbox.js';

const LOCAL: Ground = { device: 1n, isLocal: true, isMemory: false };

/** Lets answers of the pool arrive. */
const arrived = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A clock that the test moves, looks that it answers, and turns of the event loop that it ends. */
class Rules {
  now = 0;
  readonly looks: { readonly path: string; readonly answer: (ground: Ground | Error) => Promise<void> }[] = [];
  readonly #turns: (() => void)[] = [];
  readonly calls = new SynchronousCalls({
    look: (path) =>
      new Promise((resolve, reject) => {
        const answer = (ground: Ground | Error) => {
          if (ground instanceof Error) reject(ground);
          else resolve(ground);
          return arrived();
        };
        this.looks.push({ path, answer });
      }),
    now: () => this.now,
    nextTurn: (begin) => this.#turns.push(begin),
  });
  readonly directory = this.calls.directory('/d');

  allows(kind: CallKind = 'name', bytes = 0): boolean {
    return this.calls.allows(this.directory, kind, bytes);
  }

  /** The look that was asked for is answered after `ms`. */
  async looked(ground: Ground | Error = LOCAL, ms = 0): Promise<void> {
    const look = this.looks.shift();
    if (look === undefined) throw new Error('nobody looks');
    this.now += ms;
    await look.answer(ground);
  }

  async trusted(): Promise<this> {
    this.allows();
    await this.looked();
    return this;
  }

  /** A synchronous call that takes `ms`. */
  async took(ms: number, kind: CallKind = 'name', bytes = 0): Promise<void> {
    await this.calls.atOnce(this.directory, kind, bytes, () => (this.now += ms));
    this.endTurn();
  }

  /** A call of the pool that takes `ms`. */
  async pooled(ms: number, kind: CallKind = 'name'): Promise<void> {
    await this.calls.pooled(this.directory, kind, () => {
      this.now += ms;
      return Promise.resolve();
    });
  }

  endTurn(): void {
    for (const begin of this.#turns.splice(0)) begin();
  }
}

describe('a directory', () => {
  test('is looked at by the pool before the first call is made at once', async () => {
    const rules = new Rules();
    expect([rules.allows(), rules.allows()]).toEqual([false, false]);
    expect(rules.looks.map(({ path }) => path)).toEqual(['/d']);
    await rules.looked();
    expect([rules.allows('name'), rules.allows('read', 65_536), rules.allows('write', 1_048_576)]).toEqual([
      true,
      true,
      true,
    ]);
  });

  test.each<[string, Ground | Error, number]>([
    ['lies on a file system that may leave this machine', { ...LOCAL, isLocal: false }, 0],
    ['is not there', Object.assign(new Error('gone'), { code: 'ENOENT' }), 0],
    ['answered slowly', LOCAL, 101],
  ])('that %s is left to the pool, and looked at again only seconds later', async (_, ground, ms) => {
    const rules = new Rules();
    rules.allows();
    await rules.looked(ground, ms);
    expect([rules.allows(), rules.looks.length]).toEqual([false, 0]);
    rules.now += 2501;
    expect([rules.allows(), rules.looks.length]).toEqual([false, 1]);
    await rules.looked();
    expect(rules.allows()).toBe(true);
  });

  test('is looked at again beside while it is used, and before anything else after a time without use', async () => {
    const rules = await new Rules().trusted();
    rules.now += 2501;
    expect([rules.allows(), rules.looks.length]).toEqual([true, 1]);
    await rules.looked();
    rules.now += 5001;
    expect([rules.allows(), rules.looks.length]).toEqual([false, 1]);
  });

  test('whose look is not answered is left to the pool', async () => {
    const rules = await new Rules().trusted();
    rules.now += 2501;
    rules.allows();
    rules.now += 201;
    expect(rules.allows()).toBe(false);
    await rules.looked();
    // The answer came too late to be believed.
    expect(rules.allows()).toBe(false);
  });

  test('over which another volume was mounted is left to the pool from the next look on', async () => {
    const rules = await new Rules().trusted();
    rules.now += 2501;
    rules.allows();
    await rules.looked({ ...LOCAL, device: 2n, isLocal: false });
    expect(rules.allows()).toBe(false);
  });
});

describe('a volume', () => {
  test('with a flush that is not answered is left to the pool until it is', async () => {
    const rules = await new Rules().trusted();
    const other = rules.calls.directory('/other');
    rules.calls.allows(other, 'name');
    await rules.looked();
    let flushed: () => void = () => undefined;
    const flush = rules.calls.pooled(
      rules.directory,
      undefined,
      () => new Promise<void>((resolve) => (flushed = resolve)),
    );
    rules.now += 200;
    expect([rules.allows(), rules.calls.allows(other, 'name')]).toEqual([true, true]);
    rules.now += 1;
    expect([rules.allows(), rules.calls.allows(other, 'name')]).toEqual([false, false]);
    flushed();
    await flush;
    expect([rules.allows(), rules.calls.allows(other, 'name')]).toEqual([true, true]);
  });

  test('that is slow is left to the pool for twenty times what it took, for calls of that kind', async () => {
    const rules = await new Rules().trusted();
    for (let i = 0; i < 10; i++) await rules.took(2, 'read');
    expect(rules.allows('read')).toBe(true);
    await rules.took(2, 'read');
    expect([rules.allows('read'), rules.allows('write'), rules.allows('name')]).toEqual([false, true, true]);
    const suspendedAt = rules.now;
    await rules.pooled(1, 'read');
    await rules.pooled(1, 'read');
    let looked = 0;
    while (!rules.allows('read')) {
      for (; rules.looks.length > 0; looked++) await rules.looked();
      rules.now += 10;
    }
    expect(looked).toBe(0);
    expect(rules.now - suspendedAt).toBeGreaterThan(400);
    expect(rules.now - suspendedAt).toBeLessThan(450);
  });

  test('is tried again only when the pool is answered promptly', async () => {
    const rules = await new Rules().trusted();
    await rules.took(30);
    rules.now += 700;
    expect(rules.allows()).toBe(false);
    await rules.pooled(1);
    await rules.pooled(101);
    await rules.pooled(1);
    expect(rules.allows()).toBe(false);
    await rules.pooled(1);
    expect(rules.allows()).toBe(true);
  });

  test('may take a millisecond more for each million bytes', async () => {
    const rules = await new Rules().trusted();
    for (let i = 0; i < 100; i++) await rules.took(1.9, 'write', 1_000_000);
    for (let i = 0; i < 100; i++) await rules.took(0.9, 'name');
    expect([rules.allows('write'), rules.allows('name')]).toEqual([true, true]);
  });
});

test('in one turn of the event loop no more than 2 ms, or 4 MB, are spent in calls', async () => {
  const rules = await new Rules().trusted();
  const call = (ms: number, bytes: number) =>
    rules.calls.atOnce(rules.directory, 'read', bytes, () => (rules.now += ms));
  for (let i = 0; i < 4; i++) await call(0, 1_048_576);
  expect([rules.allows('read', 1), rules.allows('name')]).toEqual([false, true]);
  rules.endTurn();
  expect(rules.allows('read', 1)).toBe(true);
  for (let i = 0; i < 3; i++) await call(0.7, 1);
  expect(rules.allows()).toBe(false);
  rules.endTurn();
  expect(rules.allows()).toBe(true);
});

test('a service that is told so makes no call itself, or looks alone', async () => {
  const rules = await new Rules().trusted();
  const allowed = () => (['look', 'name', 'read', 'write'] as const).map((kind) => rules.allows(kind));
  expect(allowed()).toEqual([true, true, true, true]);
  rules.calls.mode = 'looks';
  expect(allowed()).toEqual([true, false, false, false]);
  rules.calls.mode = 'never';
  expect(allowed()).toEqual([false, false, false, false]);
});

test('only a volume without a disk is flushed by a call that the process makes itself', async () => {
  const disk = await new Rules().trusted();
  expect([disk.allows('write'), disk.allows('flush')]).toEqual([true, false]);
  const memory = new Rules();
  memory.allows();
  await memory.looked({ ...LOCAL, isMemory: true });
  expect([memory.allows('write'), memory.allows('flush')]).toEqual([true, true]);
  memory.calls.mode = 'looks';
  expect(memory.allows('flush')).toBe(false);
});

test('changes of names that are slow keep no look from being made at once', async () => {
  const rules = await new Rules().trusted();
  await rules.took(30, 'name');
  expect([rules.allows('name'), rules.allows('look')]).toEqual([false, true]);
});

/** Calls that are made at once wherever the rules leave it open, and how many were. */
class Eager extends SynchronousCalls {
  made = 0;

  constructor(look: () => Promise<Ground>) {
    super({ look, now: () => 0 });
  }

  override atOnce<T>(...[directory, kind, bytes, call]: Parameters<SynchronousCalls['atOnce']>): Promise<T> {
    this.made += 1;
    return super.atOnce(directory, kind, bytes, call as () => T);
  }
}

const eagerIn = async (directory: string, ground: Partial<Ground> = {}) => {
  const { device } = await nodeFiles.lstat(directory);
  const calls = new Eager(() => Promise.resolve({ ...LOCAL, device, ...ground }));
  const files = filesBy(calls);
  calls.allows(calls.directory(directory), 'name');
  await arrived();
  /** How many of these calls were made at once. */
  const made = async <T>(work: () => Promise<T>): Promise<number> => {
    const before = calls.made;
    await work();
    return calls.made - before;
  };
  return { calls, files, made };
};

const CREATE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
const bytes = Buffer.from('sixteen bytes ..');

describe('the real file system', () => {
  test('answers at once as through the pool', async () => {
    const directory = sandbox();
    const { files, made } = await eagerIn(directory);
    const [path, other] = [join(directory, 'f'), join(directory, 'g')];
    const used = await made(async () => {
      const file = await files.open(path, CREATE, 0o600);
      expect(await file.writev([bytes, bytes], 0)).toBe(32);
      const into = Buffer.alloc(20);
      expect(await file.readv([into], 16)).toBe(16);
      expect(into.subarray(0, 16).equals(bytes)).toBe(true);
      expect(await file.stat()).toEqual(await nodeFiles.lstat(path));
      await file.close();
      await files.link(path, other);
      expect(await files.lstat(other)).toMatchObject({ kind: 'file', size: 32, links: 2 });
      await files.unlink(path);
      await files.rename(other, path);
      expect(filesIn(directory)).toEqual(['f']);
    });
    expect(used).toBe(9);
    for (const [work, code] of [
      [() => files.open(path, CREATE, 0o600), 'EEXIST'],
      [() => files.lstat(other), 'ENOENT'],
      [() => files.unlink(other), 'ENOENT'],
      [() => files.link(other, path), 'ENOENT'],
      [() => files.mkdir(path, 0o700), 'EEXIST'],
    ] as const) {
      expect(await made(async () => expect(await rejection(work())).toMatchObject({ code }))).toBe(1);
    }
  });

  test('is never made to flush, to cut, to list or to free many blocks by a synchronous call', async () => {
    const directory = sandbox();
    const { files, made } = await eagerIn(directory);
    const path = join(directory, 'f');
    const file = await files.open(path, CREATE | constants.O_DSYNC, 0o600);
    expect(await made(() => file.writev([bytes], 0))).toBe(0);
    expect(await made(() => file.datasync())).toBe(0);
    expect(await made(() => file.sync())).toBe(0);
    expect(await made(() => file.truncate(1))).toBe(0);
    await file.close();
    expect(await made(() => files.readdir(directory))).toBe(0);
    truncateSync(path, 1_048_577);
    expect(await made(() => files.rename(path, join(directory, 'moved')))).toBe(1);
    writeFileSync(path, 'small');
    expect(await made(() => files.rename(path, join(directory, 'moved')))).toBe(0);
    writeFileSync(path, 'small');
    expect(await made(() => files.rename(path, join(directory, 'moved')))).toBe(1);
    truncateSync(join(directory, 'moved'), 1_048_577);
    expect(await made(() => files.unlink(join(directory, 'moved')))).toBe(0);
  });

  test('that has no disk is flushed at once', async () => {
    const directory = sandbox();
    const { calls, files, made } = await eagerIn(directory, { isMemory: true });
    const file = await files.open(join(directory, 'f'), CREATE | constants.O_DSYNC, 0o600);
    const flushes = async () => {
      expect(await file.writev([bytes], 0)).toBe(16);
      await file.datasync();
      await file.sync();
    };
    expect(await made(flushes)).toBe(3);
    calls.mode = 'looks';
    expect(await made(flushes)).toBe(0);
    await file.close();
  });

  test('is looked at without being changed by looks alone', async () => {
    const directory = sandbox();
    const { calls, files, made } = await eagerIn(directory);
    const looks = directoryLooksBy(calls);
    const path = join(directory, 'f');
    writeFileSync(path, 'x');
    calls.mode = 'looks';
    expect(
      await made(async () => {
        const file = await files.open(path, constants.O_RDONLY | constants.O_NONBLOCK);
        await file.stat();
        await file.close();
        await files.lstat(path);
        expect(await files.realpath(directory)).toBe(directory);
        expect(await looks.isDirectory(directory)).toBe(true);
        await looks.writable(directory);
        expect(await looks.free(directory)).toBeGreaterThan(0);
      }),
    ).toBe(8);
    const changes = async () => {
      const file = await files.open(join(directory, 'g'), CREATE, 0o600);
      await file.writev([bytes], 0);
      await file.close();
      await files.link(path, join(directory, 'h'));
      await files.unlink(path);
    };
    expect(await made(changes)).toBe(0);
    expect(filesIn(directory)).toEqual(['g', 'h']);
  });

  test('does not wait for the writer of a FIFO', async () => {
    const directory = sandbox();
    const { files } = await eagerIn(directory);
    execFileSync('mkfifo', [join(directory, 'fifo')]);
    // Opened at once, nobody would be left to open the other end.
    const reading = files.open(join(directory, 'fifo'), constants.O_RDONLY);
    const writer = await nodeFiles.open(join(directory, 'fifo'), constants.O_WRONLY);
    await Promise.all([writer.close(), reading.then((file) => file.close())]);
  });

  test('leaves a file of another device than its directory to the pool', async () => {
    const directory = sandbox();
    writeFileSync(join(directory, 'f'), 'x');
    const calls = new Eager(() => Promise.resolve({ ...LOCAL, device: -1n }));
    const files = filesBy(calls);
    calls.allows(calls.directory(directory), 'name');
    await arrived();
    const file = await files.open(join(directory, 'f'), constants.O_RDONLY | constants.O_NONBLOCK);
    const before = calls.made;
    await file.readv([Buffer.alloc(1)], 0);
    expect(calls.made).toBe(before);
    await file.close();
  });

  test('gets no call on a file that was closed, and closes it behind those that are under way', async () => {
    const directory = sandbox();
    const { files, calls } = await eagerIn(directory);
    calls.mode = 'never';
    const file = await files.open(join(directory, 'f'), CREATE, 0o600);
    const order: string[] = [];
    const written = file.writev([bytes], 0).then((length) => order.push(`wrote ${length}`));
    await file.close().then(() => order.push('closed'));
    await written;
    expect(order).toEqual(['wrote 16', 'closed']);
    expect(await rejection(file.datasync())).toMatchObject({ code: 'EBADF' });
    await file.close();
  });
});

test('a receive directory that a link has replaced between two transfers is noticed', async () => {
  const top = sandbox();
  const [inside, elsewhere] = [join(top, 'in'), join(top, 'elsewhere')];
  mkdirSync(inside);
  mkdirSync(elsewhere);
  const { files, calls } = await eagerIn(top);
  const receive = async (key: string): Promise<string> => {
    const format = formatOf({ recordLength: 80 });
    const file = await StagedFile.create({ receiveDirectory: inside, key, format, files });
    file.write(batchOf('hello'));
    const { path } = await file.deliver({ path: key, overwrite: false });
    return path;
  };
  expect(await receive('first')).toBe(join(inside, 'first'));
  await arrived();
  const before = calls.made;
  expect(await receive('second')).toBe(join(inside, 'second'));
  expect(calls.made).toBeGreaterThan(before + 5);
  renameSync(inside, join(top, 'moved'));
  symlinkSync(elsewhere, inside);
  // By its real path it is judged whether files may lie there.
  expect(await receive('third')).toBe(join(elsewhere, 'third'));
  expect(filesIn(join(top, 'moved'))).toEqual(['first', 'second']);
});
