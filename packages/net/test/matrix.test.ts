/**
 * Our own two ends, files on disk and real sockets between them, in every pair of: direction, compression, CRC, sync points,
 * record format, articles (many in a DTF, one each, one that fills it, one cut in segments), entity size, concatenation and dialect. What arrives is what left, by
 * hash and by count.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import type { CompressionMode, Dialect, Parameters } from '@pesit-node/protocol';
import { FileSource, StagedFile, formatOf, receivedFormat } from '../../storage/src/index.js';
import type { RecordFormat } from '../../storage/src/index.js';
import { PesitListener } from '../src/index.js';
import type { ServerHandler, TransferTotals } from '../src/index.js';
import { atEnd, closing, connect, create, select } from './support/harness.js';
import { pairwise } from './support/pairwise.js';
import { START } from './support/partner.js';

const FACTORS = {
  direction: ['write', 'read'],
  compression: [0, 1, 2, 3] as (CompressionMode | 0)[],
  crc: [false, true],
  sync: ['none', 'window 0', 'window 1', 'window 8'],
  format: ['BU', 'BV', 'BF', 'TV', 'TF', '**'],
  articles: ['multi', 'one each', 'mono', 'segmented'],
  entity: [4096, 8192, 32_750, 65_535],
  concatenation: [true, false],
  dialect: ['length-prefixed', 'raw'] as Dialect[],
} as const;
const ROWS = pairwise(FACTORS);
type Row = (typeof ROWS)[number];

const directory = mkdtempSync(join(tmpdir(), 'pesit-net-matrix-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const text = (format: Row['format']): boolean => format.startsWith('T');

/** Small enough for many in one DTF, too long for two, too long for one. */
function recordLengthOf({ articles, entity }: Row): number {
  if (articles === 'multi' || articles === 'one each') return 80;
  return articles === 'mono' ? Math.floor(entity * 0.6) : Math.min(entity + 1000, 65_535);
}

/** Half noise, half what compresses, horizontally and vertically. */
function record(index: number, length: number): Buffer {
  const plain = Buffer.alloc(length, `record ${'-'.repeat(20)} the same ${' '.repeat(9)}`);
  if (index % 2 === 0) return plain;
  const noise = Buffer.from(randomBytes(length).map((byte) => 0x21 + (byte % 0x5d)));
  noise.copy(plain, 0, 0, Math.floor(length / 2));
  return plain;
}

function contentOf(row: Row): { readonly content: Buffer; readonly records: number } {
  const length = recordLengthOf(row);
  const records = Math.max(4, Math.floor(300_000 / length));
  const whole = Array.from({ length: records }, (_, i) => record(i, length));
  if (!text(row.format)) {
    // The last one short, but for fixed records.
    const end = row.format === 'BF' ? [] : [Buffer.alloc(7, 'end')];
    return { content: Buffer.concat([...whole, ...end]), records };
  }
  const lines = whole.map(
    (line, i) =>
      `${line
        .subarray(0, length - (i % 7) - 1)
        .toString('latin1')
        .trimEnd()}.`,
  );
  return { content: Buffer.from(`${lines.join('\n')}\n`, 'latin1'), records };
}

/** What the receiver makes of what the sender announces (PI 31, PI 32), with its own setting or without one (`**`). */
function receivedAs(row: Row, parameters: Parameters): RecordFormat {
  const { recordFormat, recordLength = 0 } = parameters.logicalAttributes ?? {};
  const own = row.format === '**' ? {} : { text: text(row.format) };
  return receivedFormat({ recordFormat, recordLength }, own);
}

const sentAs = (row: Row): RecordFormat =>
  formatOf({
    recordFormat: row.format.endsWith('F') ? 0 : row.format === 'BU' ? undefined : 128,
    recordLength: recordLengthOf(row),
    text: text(row.format),
  });

const syncOf = ({ sync }: Row) =>
  sync === 'none' ? undefined : { intervalKb: 16, window: Number(sync.slice('window '.length)) };

/** One file at each end. */
interface End {
  readonly totals: TransferTotals;
  readonly checksum: string | undefined;
}

let count = 0;

async function exchange(
  row: Row,
): Promise<{ sent: End; received: End; content: Buffer; path: string; records: number; wire: Buffer }> {
  const { content, records } = contentOf(row);
  const key = `f${++count}`;
  const original = join(directory, `${key}.original`);
  writeFileSync(original, content);
  const source = await FileSource.open(original, sentAs(row));
  let staged: StagedFile | undefined;
  const stage = async (parameters: Parameters): Promise<StagedFile> => {
    const format = receivedAs(row, parameters);
    staged = await StagedFile.create({ receiveDirectory: directory, key, format, durability: 'none' });
    return staged;
  };
  let serverTotals: TransferTotals | undefined;
  const failures: unknown[] = [];
  const wire: Buffer[] = [];

  const listener = await PesitListener.listen({
    host: '127.0.0.1',
    port: 0,
    maxConnections: 1,
    tcpipHeader: 'auto',
    rejected: (_, reason) => failures.push(reason),
    accept: (connection): ServerHandler => {
      let created: Parameters = {};
      return {
        connect: () =>
          Promise.resolve({
            syncPoints: { intervalKb: 32, window: 16 },
            multiArticle: row.articles !== 'one each',
            concatenation: row.concatenation,
          }),
        create: (parameters) => {
          created = parameters;
          return Promise.resolve({ maxEntitySize: 65_535, compression: 3 });
        },
        select: () =>
          Promise.resolve({
            maxEntitySize: 65_535,
            compression: 3,
            fileName: 'FILE',
            transferId: 1,
            recordFormat: sentAs(row).recordFormat,
            recordLength: sentAs(row).recordLength,
            maxReservationKb: Math.ceil(content.length / 1024),
          }),
        write: async () => ({ from: START, sink: await stage(created) }),
        read: () => Promise.resolve({ from: START, source }),
        endTransfer: async () => {
          serverTotals = connection.totals;
          if (row.direction === 'write') await staged?.prepareDelivery();
        },
        transferFailed: (error) => Promise.resolve(void failures.push(error)),
        deselected: () => Promise.resolve(),
        learned: () => undefined,
        notice: (notice) => failures.push(notice),
        failed: (error) => failures.push(error),
        ended: (error) => {
          if (error !== undefined) failures.push(error);
        },
      };
    },
  });
  atEnd(() => listener.close(closing, 0));
  const requester = await connect(listener.port, {
    dialect: row.dialect,
    connect: { requester: 'A', server: 'B', accessType: 2, crc: row.crc, syncPoints: syncOf(row) },
    multiArticle: row.articles !== 'one each',
    concatenation: row.concatenation,
    notice: (notice) => failures.push(notice),
    observer: (direction, bytes) => {
      if ((direction === 'sent') === (row.direction === 'write')) wire.push(Buffer.from(bytes));
    },
  });
  const request = { maxEntitySize: row.entity, compression: row.compression };
  const format = sentAs(row);
  const totals =
    row.direction === 'write'
      ? await requester.sendFile({
          request: { ...create, ...request, recordFormat: format.recordFormat, recordLength: format.recordLength },
          source,
        })
      : await requester.receiveFile({
          request: { ...select, ...request },
          open: async (parameters) => ({ from: START, sink: await stage(parameters) }),
          stored: async () => {
            await staged?.prepareDelivery();
          },
        });
  expect(requester.fileTerms).toEqual({ maxEntitySize: row.entity, compression: row.compression });
  await requester.release();
  expect(failures).toEqual([]);
  const { path, checksum } = await staged!.deliver({ path: key, overwrite: false });
  await source.close();
  const [sender, receiver] = row.direction === 'write' ? [totals, serverTotals!] : [serverTotals!, totals];
  return {
    sent: { totals: sender, checksum: source.checksum },
    received: { totals: receiver, checksum },
    content,
    path,
    records,
    wire: Buffer.concat(wire),
  };
}

/** Of what the sender of the data said: entities, and ID.SRC of each DTF. */
function layoutOf(
  wire: Buffer,
  { dialect, crc }: Row,
): { readonly entities: number; readonly dtfs: readonly number[] } {
  const dtfs: number[] = [];
  let entities = 0;
  for (let at = 0; at < wire.length;) {
    const end = dialect === 'raw' ? at + wire.readUInt16BE(at) + (crc ? 2 : 0) : at + 2 + wire.readUInt16BE(at);
    if (dialect === 'length-prefixed') at += 2;
    entities += 1;
    for (; at < end; at += wire.readUInt16BE(at) + (crc ? 2 : 0)) {
      if (wire.readUInt16BE(at + 2) === 0x0000) dtfs.push(wire.readUInt8(at + 5));
    }
  }
  return { entities, dtfs };
}

describe(`${ROWS.length} rows`, () => {
  test('every two values meet', () => {
    const names = Object.keys(FACTORS) as (keyof typeof FACTORS)[];
    for (const a of names) {
      for (const b of names) {
        if (a === b) continue;
        for (const x of FACTORS[a])
          for (const y of FACTORS[b]) expect(ROWS.some((row) => row[a] === x && row[b] === y)).toBe(true);
      }
    }
  });

  test.each(ROWS)(
    '$direction $format, $articles, entity $entity, concatenation $concatenation, compression $compression, CRC $crc, $sync, $dialect',
    async (row) => {
      const { sent, received, content, path, records, wire } = await exchange(row);
      expect(readFileSync(path).equals(content)).toBe(true);
      expect(sent.checksum).toBe(sha256(content));
      expect(received.checksum).toBe(sha256(content));
      expect(received.totals).toEqual(sent.totals);
      const { dataBytes, articles } = sent.totals;
      // Fixed records and lines are articles; the others may be cut where an entity ends.
      if (/^(BF|TV|TF)$/.test(row.format)) expect(articles).toBe(records);
      else expect(articles).toBeGreaterThanOrEqual(records);
      const padded =
        row.format === 'TF' ? records * recordLengthOf(row) : content.length - (text(row.format) ? records : 0);
      const { entities, dtfs } = layoutOf(wire, row);
      if (row.articles === 'one each') expect(new Set(dtfs)).toEqual(new Set([0]));
      if (row.articles === 'multi') expect(Math.max(...dtfs)).toBeGreaterThan(10);
      // Short DTFs share an entity, but not where each has its CRC (§4.5).
      if (row.articles === 'one each' && row.dialect === 'length-prefixed') {
        if (row.crc || !row.concatenation) expect(entities).toBeGreaterThan(dtfs.length);
        else expect(entities).toBeLessThan(dtfs.length / 8);
      }
      if (row.compression === 0) expect(dataBytes).toBe(padded);
      // A vertical string needs two records between two points; nothing grows by more than a byte in 63.
      else expect(dataBytes).toBeLessThan((row.compression === 2 ? 1.03 : 0.9) * padded);
    },
  );
});
