/**
 * The bytes of a point journal. A header, padded to whole records, then records of 64 bytes, little endian:
 *
 *     header   0 magic `PESITPTS` · 8 version · 10 record format, two letters · 12 record length · 14 length of the memo
 *              16 nonce, 8 bytes · 24 EBCDIC code page or 0 · 26 zero · 28 CRC-32 of bytes 0–27 and the memo · 32 memo, UTF-8
 *     record   0 number, 3 bytes · 3 flags · 4 file offset · 12 data bytes · 20 articles · 28 SHA-256 of the file up to here
 *              60 CRC-32 of the nonce and bytes 0–59
 *
 * The nonce keeps a record of an older journal, which a crash may bring back from freed blocks, from being taken for one of
 * this. The digest tells whether the bytes before the point are still those that were received.
 */
import { crc32 } from 'node:zlib';
import { CODE_PAGES } from '@pesit-node/protocol';
import type { StoredPoint } from './group-commit.js';
import type { RecordFormat } from './record-format.js';

export const JOURNAL_VERSION = 1;
export const RECORD_SIZE = 64;
/** Bytes of UTF-8. */
export const MAX_MEMO = 1024;

const MAGIC = Buffer.from('PESITPTS', 'latin1');
const FIXED_HEADER = 32;
const NONCE_AT = 16;
const CODE_PAGE_AT = 24;
const HEADER_CRC_AT = 28;
const DIGEST_AT = 28;
const DIGEST_SIZE = 32;
const RECORD_CRC_AT = 60;
/** Longest header: what has to be read to know it. */
export const MAX_HEADER = FIXED_HEADER + MAX_MEMO;

/** The data before the point were on stable storage before this record was written. */
const FLUSHED = 1;
const HAS_DIGEST = 2;

export interface JournalHeader {
  readonly format: Pick<RecordFormat, 'name' | 'recordLength' | 'codePage'>;
  /** Text of the caller about the transfer, for when the file is found again. */
  readonly memo: string;
  /** 8 random bytes. */
  readonly nonce: Buffer;
}

export interface JournalPoint extends StoredPoint {
  readonly flushed: boolean;
  readonly digest: Buffer | undefined;
}

/** Where the first record begins. */
export const headerSize = (memoBytes: number): number =>
  Math.ceil((FIXED_HEADER + memoBytes) / RECORD_SIZE) * RECORD_SIZE;

export const encodeHeader = ({ format, memo, nonce }: JournalHeader): Buffer => {
  const text = Buffer.from(memo, 'utf8');
  const header = Buffer.alloc(headerSize(text.length));
  MAGIC.copy(header);
  header.writeUInt16LE(JOURNAL_VERSION, 8);
  header.write(format.name, 10, 'latin1');
  header.writeUInt16LE(format.recordLength, 12);
  header.writeUInt16LE(text.length, 14);
  header.writeUInt16LE(Number(format.codePage ?? 0), CODE_PAGE_AT);
  nonce.copy(header, NONCE_AT);
  header.writeUInt32LE(crc32(text, crc32(header.subarray(0, HEADER_CRC_AT))), HEADER_CRC_AT);
  text.copy(header, FIXED_HEADER);
  return header;
};

/** A header, or in words why there is none. */
export const decodeHeader = (bytes: Buffer): (JournalHeader & { readonly size: number }) | string => {
  if (bytes.length < FIXED_HEADER) return `the journal of points ends within its header (${bytes.length} bytes)`;
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) return 'the journal of points begins with something else';
  const version = bytes.readUInt16LE(8);
  if (version !== JOURNAL_VERSION) {
    return `the journal of points has version ${version}, this release reads version ${JOURNAL_VERSION}`;
  }
  const length = bytes.readUInt16LE(14);
  const text = bytes.subarray(FIXED_HEADER, FIXED_HEADER + length);
  const isWhole = length <= MAX_MEMO && text.length === length;
  if (!isWhole || crc32(text, crc32(bytes.subarray(0, HEADER_CRC_AT))) !== bytes.readUInt32LE(HEADER_CRC_AT)) {
    return 'the header of the journal of points is damaged';
  }
  return {
    format: {
      name: bytes.toString('latin1', 10, 12) as RecordFormat['name'],
      recordLength: bytes.readUInt16LE(12),
      codePage: CODE_PAGES.find((page) => Number(page) === bytes.readUInt16LE(CODE_PAGE_AT)),
    },
    memo: text.toString('utf8'),
    nonce: Buffer.from(bytes.subarray(NONCE_AT, NONCE_AT + 8)),
    size: headerSize(length),
  };
};

export const encodeRecords = (points: readonly JournalPoint[], nonce: Buffer): Buffer => {
  const seed = crc32(nonce);
  const bytes = Buffer.alloc(points.length * RECORD_SIZE);
  points.forEach(({ number, fileOffset, dataBytes, articles, flushed, digest }, i) => {
    const record = bytes.subarray(i * RECORD_SIZE, (i + 1) * RECORD_SIZE);
    record.writeUIntLE(number, 0, 3);
    record[3] = (flushed ? FLUSHED : 0) | (digest === undefined ? 0 : HAS_DIGEST);
    record.writeBigUInt64LE(BigInt(fileOffset), 4);
    record.writeBigUInt64LE(BigInt(dataBytes), 12);
    record.writeBigUInt64LE(BigInt(articles), 20);
    digest?.copy(record, DIGEST_AT);
    record.writeUInt32LE(crc32(record.subarray(0, RECORD_CRC_AT), seed), RECORD_CRC_AT);
  });
  return bytes;
};

/** @returns undefined for a record that is torn, damaged, of another journal, or not written yet (zeros) */
export const decodeRecord = (record: Buffer, nonce: Buffer): JournalPoint | undefined => {
  if (crc32(record.subarray(0, RECORD_CRC_AT), crc32(nonce)) !== record.readUInt32LE(RECORD_CRC_AT)) return undefined;
  const flags = record[3] ?? 0;
  return {
    number: record.readUIntLE(0, 3),
    fileOffset: Number(record.readBigUInt64LE(4)),
    dataBytes: Number(record.readBigUInt64LE(12)),
    articles: Number(record.readBigUInt64LE(20)),
    flushed: (flags & FLUSHED) !== 0,
    digest: (flags & HAS_DIGEST) === 0 ? undefined : Buffer.from(record.subarray(DIGEST_AT, DIGEST_AT + DIGEST_SIZE)),
  };
};
