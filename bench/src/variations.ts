/** Transfers that differ from the plain push in one thing: what is sent, and how it is asked for. */
import { writeListing, writeRecords } from './files.js';

/** Files of short records are no larger: a record costs what a record costs. */
const RECORDS_SIZE = 256 * 1024 * 1024;

export interface Variation {
  /** Makes the file; undefined: the large file of the plain row. */
  readonly file?: { readonly name: string; readonly write: (path: string, size: number) => Promise<void> };
  /** Settings of the virtual file that receives it; undefined: that of the plain row. */
  readonly inbox?: Readonly<Record<string, unknown>>;
  /** Fields of the request for the transfer. */
  readonly request?: Readonly<Record<string, unknown>>;
  /** Whether records, or bytes on the wire, are of interest. */
  readonly counts?: 'records' | 'compression';
}

const small = (size: number): number => Math.min(size, RECORDS_SIZE);

const FIXED = {
  name: 'records.bin',
  write: (path: string, size: number) => writeRecords(path, small(size), ''),
};
const LINES = {
  name: 'records.txt',
  write: (path: string, size: number) => writeRecords(path, small(size), '\n'),
};
const LISTING = { name: 'listing.txt', write: (path: string, size: number) => writeListing(path, small(size)) };

const records = (recordFormat: number, text: boolean) => ({ recordFormat, recordLength: 80, text });
/** Articles as most products send them, one in each DTF: PI 25 less the 6 bytes of its header (pesit-e.md §1). */
const articles = { inbox: { recordLength: 4000 }, request: { recordLength: 4000, maxEntitySize: 4006 } };
const listing = { recordFormat: 128, recordLength: 132, text: true };

export const VARIATIONS = {
  articles: { ...articles, counts: 'records' },
  'articles-points': {
    ...articles,
    request: { ...articles.request, syncInterval: 32, syncWindow: 4 },
    counts: 'records',
  },
  'no-points': { request: { syncPointsEnabled: false } },
  crc: { request: { crc: true } },
  BF: { file: FIXED, inbox: records(0, false), request: records(0, false), counts: 'records' },
  TV: { file: LINES, inbox: records(128, true), request: records(128, true), counts: 'records' },
  TF: { file: LINES, inbox: records(0, true), request: records(0, true), counts: 'records' },
  text: { file: LISTING, inbox: listing, request: listing },
  compressed: {
    file: LISTING,
    inbox: { ...listing, compression: 'both' },
    request: { ...listing, compression: 'both' },
    counts: 'compression',
  },
} as const satisfies Readonly<Record<string, Variation>>;

export type VariationName = keyof typeof VARIATIONS;
