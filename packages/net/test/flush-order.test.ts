/**
 * The promise of pesit-e.md §7, seen where it is made: what leaves this side on the wire, and what it has done to the disk by
 * then, in one log. A real listener and a real staged file; the file layer notes each write, and each flush when it begins
 * and when it ends.
 */
import { constants, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { FileSource, StagedFile, formatOf } from '../../storage/src/index.js';
import type { FileOperations } from '../../storage/src/index.js';
import { recordedFiles } from '../../storage/test/support/recorded-files.js';
import type { WireObserver } from '../src/index.js';
import { connect, create, listen } from './support/harness.js';
import { START } from './support/partner.js';

const KB = 1024;
const LENGTH = 4000;
/** Of the journal: its header, and each record. */
const SLOT = 64;

const directory = realpathSync(mkdtempSync(join(tmpdir(), 'pesit-net-order-')));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

/** Codes of ACK(SYN) and ACK(TRANS.END); everything else that this side says is passed over. Length-prefixed. */
const spoken =
  (log: string[]): WireObserver =>
  (direction, bytes) => {
    if (direction !== 'sent') return;
    for (let at = 2; at < bytes.length; at += 2 + bytes.readUInt16BE(at)) {
      const code = bytes.toString('hex', at + 2, at + 4);
      // PI 20, with as many bytes as the number needs.
      if (code === 'c038') log.push(`ACK(SYN) ${bytes.readUIntBE(at + 8, bytes.readUInt8(at + 7))}`);
      if (code === 'c037') log.push('ACK(TRANS.END)');
    }
  };

/** Notes each record of a journal that is on stable storage: written to a file whose writes are flushed when they end. */
const recorded = (log: string[]): FileOperations => {
  const files = recordedFiles(log);
  return {
    ...files,
    open: async (path, flags, mode) => {
      const file = await files.open(path, flags, mode);
      if (!path.endsWith('.points') || (flags & constants.O_DSYNC) === 0) return file;
      return {
        ...file,
        writev: async (buffers, position) => {
          const written = await file.writev(buffers, position);
          const bytes = Buffer.concat(buffers).subarray(0, written);
          for (let at = 0; at + SLOT <= written; at += SLOT) {
            // Behind the last record there are zeros.
            if (bytes.subarray(at, at + SLOT).some((byte) => byte !== 0)) log.push(`record ${(position + at) / SLOT}`);
          }
          return written;
        },
      };
    },
  };
};

/** What of a file is on stable storage for certain: what was written when a flush began that has ended. */
class Stable {
  bytes = 0;
  #written = 0;
  readonly #flushes: number[] = [];
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  read(line: string): void {
    const [, position, length] = new RegExp(`^write ${this.#name} (\\d+)\\+(\\d+)$`).exec(line) ?? [];
    if (position !== undefined) this.#written = Math.max(this.#written, Number(position) + Number(length));
    if (line === `datasync ${this.#name} …`) this.#flushes.push(this.#written);
    // Of two that are under way nobody says which has ended: the one that covers less.
    if (line === `datasync ${this.#name} done`) this.bytes = Math.max(this.bytes, this.#flushes.shift() ?? 0);
  }
}

test.each<[number, number]>([
  [8, 1],
  [16, 4],
  [64, 16],
])('no ACK(SYN) and no ACK(TRANS.END) before its flush: %i KB x %i', async (intervalKb, window) => {
  const log: string[] = [];
  const key = `order-${intervalKb}`;
  const size = 2_000_000;
  const original = join(directory, `${key}.original`);
  writeFileSync(original, Buffer.alloc(size, 'x'));
  let staged: StagedFile | undefined;
  const stage = async () => {
    const options = { receiveDirectory: directory, key, format: formatOf({}), files: recorded(log) };
    staged = await StagedFile.create(options);
    return { from: START, sink: staged };
  };
  const listening = await listen({}, (handler) => {
    handler.connection.observe(spoken(log));
    handler.connect = () => Promise.resolve({ syncPoints: { intervalKb, window } });
    Object.assign(handler, { write: stage });
    handler.endTransfer = async () => {
      await staged?.deliver({ path: key, overwrite: false, marked: true });
    };
  });
  const requester = await connect(listening.port, {
    connect: { requester: 'A', server: 'B', accessType: 2, syncPoints: { intervalKb, window } },
  });
  const source = await FileSource.open(original, formatOf({ recordLength: LENGTH }));
  await requester.sendFile({ request: { ...create, maxEntitySize: 32_000, recordLength: LENGTH }, source });
  await source.close();
  await requester.release();

  const perPoint = Math.floor((intervalKb * KB) / LENGTH) * LENGTH;
  const data = new Stable(`${key}.part`);
  const seen = new Set<string>();
  let acknowledged = 0;
  for (const line of log) {
    data.read(line);
    seen.add(line);
    const point = /^ACK\(SYN\) (\d+)$/.exec(line)?.[1];
    if (point !== undefined) {
      expect(data.bytes).toBeGreaterThanOrEqual(Number(point) * perPoint);
      for (let record = 1; record <= Number(point); record++) expect(seen.has(`record ${record}`)).toBe(true);
      for (const name of ['.pesit', basename(directory)]) expect(seen).toContain(`sync ${name} done`);
      acknowledged = Number(point);
    }
    if (line === 'ACK(TRANS.END)') {
      expect(data.bytes).toBe(size);
      const ours = log.slice(log.indexOf(`link ${key}.part ${key}`), log.indexOf(line));
      expect(ours).toContain(`sync ${basename(directory)} done`);
    }
  }
  // The last of them may be left to ACK(TRANS.END).
  expect(acknowledged).toBeGreaterThanOrEqual(Math.ceil(size / perPoint) - 1 - window);
  expect(seen).toContain('ACK(TRANS.END)');
});
