import { codecRun } from './codec.js';
import { missingBrowser } from './console.js';
import type { Measurement } from './figures.js';
import { licenseGateRun } from './gate.js';
import type { PairOptions } from './node-pair.js';
import type { DatabaseKind } from './database.js';
import type { Stage } from './stage.js';

export interface StageOptions extends PairOptions {
  readonly medium: 'disk' | 'memory';
  /** Default: that of the run. */
  readonly database?: DatabaseKind;
}

/** Where rows run: each stage has its own folder, files and pair of apps. */
export const STAGES = {
  disk: { medium: 'disk', sessions: 'kept' },
  memory: { medium: 'memory', sessions: 'kept' },
  'small, one session': { medium: 'disk', sessions: 'kept' },
  'small, a session each': { medium: 'disk', sessions: 'each' },
  'disk over TLS': { medium: 'disk', sessions: 'kept', tls: true },
  'memory over TLS': { medium: 'memory', sessions: 'kept', tls: true },
  'many partners': { medium: 'disk', sessions: 'each', atOnce: 100 },
  'many sessions': { medium: 'disk', sessions: 'each', atOnce: 100 },
  'large at once': { medium: 'disk', sessions: 'kept', atOnce: 100 },
  'small beside large': { medium: 'disk', sessions: 'kept' },
  'small, embedded database': { medium: 'disk', sessions: 'each', database: 'embedded' },
  'no checksum': { medium: 'memory', sessions: 'kept', settings: { TRANSFER_CHECKSUM: 'none' } },
  'TLS sessions': { medium: 'disk', sessions: 'kept', tls: true },
  history: { medium: 'disk', sessions: 'kept' },
  'in process': { medium: 'disk', sessions: 'kept' },
} as const satisfies Readonly<Record<string, StageOptions>>;

export type StageName = keyof typeof STAGES;

/** One row of the report. */
export interface Case {
  readonly name: string;
  readonly stage: StageName;
  /**
   * `yardstick`: the raw copy itself; `hashed`: the one that computes the same hashes; `compared`: measured against those of its
   * stage in the same round; `alone`: none of these.
   */
  readonly raw: 'yardstick' | 'hashed' | 'compared' | 'alone';
  /** The row of the same stage, before this one, of which it is a variation: the same but for one thing. */
  readonly plain?: string;
  /** Why it cannot run on this machine; undefined: it can. */
  readonly missing?: () => string | undefined;
  readonly run: (stage: Stage) => Promise<Measurement>;
}

const ONE = 'small, one session';
const EACH = 'small, a session each';
const PUSH = 'tcp-push-memory';
const PUSH_DISK = 'tcp-push-disk';
const TEXT = 'text-plain';
const CODEC = 'codec-plain';
/** Bytes through the protocol engine in a row of it. */
const CODEC_BYTES = 400_000_000;

export const CASES: readonly Case[] = [
  { name: 'disk-write-flush', stage: 'disk', raw: 'alone', run: (stage) => stage.writeAndFlush() },
  { name: 'raw-disk', stage: 'disk', raw: 'yardstick', run: (stage) => stage.raw() },
  { name: 'raw-disk-hashed', stage: 'disk', raw: 'hashed', run: (stage) => stage.raw('hashed') },
  { name: PUSH_DISK, stage: 'disk', raw: 'compared', run: (stage) => stage.transfer('push') },
  { name: 'tcp-pull-disk', stage: 'disk', raw: 'compared', run: (stage) => stage.transfer('pull') },
  {
    name: 'push-disk-no-points',
    stage: 'disk',
    raw: 'alone',
    plain: PUSH_DISK,
    run: (stage) => stage.variation('no-points'),
  },
  { name: 'raw-memory', stage: 'memory', raw: 'yardstick', run: (stage) => stage.raw() },
  { name: 'raw-memory-hashed', stage: 'memory', raw: 'hashed', run: (stage) => stage.raw('hashed') },
  { name: 'tcp-push-memory', stage: 'memory', raw: 'compared', run: (stage) => stage.transfer('push') },
  { name: 'tcp-pull-memory', stage: 'memory', raw: 'compared', run: (stage) => stage.transfer('pull') },
  {
    name: 'push-memory-no-points',
    stage: 'memory',
    raw: 'alone',
    plain: PUSH,
    run: (stage) => stage.variation('no-points'),
  },
  { name: 'tcp-push-crc', stage: 'memory', raw: 'alone', plain: PUSH, run: (stage) => stage.variation('crc') },
  { name: 'articles-4000', stage: 'memory', raw: 'alone', plain: PUSH, run: (stage) => stage.variation('articles') },
  {
    name: 'articles-4000-points',
    stage: 'memory',
    raw: 'alone',
    plain: PUSH,
    run: (stage) => stage.variation('articles-points'),
  },
  { name: 'records-fixed', stage: 'memory', raw: 'alone', plain: PUSH, run: (stage) => stage.variation('BF') },
  { name: 'records-lines', stage: 'memory', raw: 'alone', plain: PUSH, run: (stage) => stage.variation('TV') },
  { name: 'records-padded', stage: 'memory', raw: 'alone', plain: PUSH, run: (stage) => stage.variation('TF') },
  { name: TEXT, stage: 'memory', raw: 'alone', run: (stage) => stage.variation('text') },
  {
    name: 'text-compressed',
    stage: 'memory',
    raw: 'alone',
    plain: TEXT,
    run: (stage) => stage.variation('compressed'),
  },
  // Beside a raw copy over TLS; certificates on both sides.
  { name: 'raw-tls-disk', stage: 'disk over TLS', raw: 'yardstick', run: (stage) => stage.raw() },
  {
    name: 'raw-tls-disk-hashed',
    stage: 'disk over TLS',
    raw: 'hashed',
    run: (stage) => stage.raw('hashed'),
  },
  { name: 'tls-push-disk', stage: 'disk over TLS', raw: 'compared', run: (stage) => stage.transfer('push') },
  { name: 'tls-pull-disk', stage: 'disk over TLS', raw: 'compared', run: (stage) => stage.transfer('pull') },
  { name: 'raw-tls-memory', stage: 'memory over TLS', raw: 'yardstick', run: (stage) => stage.raw() },
  {
    name: 'raw-tls-memory-hashed',
    stage: 'memory over TLS',
    raw: 'hashed',
    run: (stage) => stage.raw('hashed'),
  },
  { name: 'tls-push-memory', stage: 'memory over TLS', raw: 'compared', run: (stage) => stage.transfer('push') },
  { name: 'tls-pull-memory', stage: 'memory over TLS', raw: 'compared', run: (stage) => stage.transfer('pull') },
  { name: 'small-one-session', stage: ONE, raw: 'alone', run: (stage) => stage.small(1) },
  { name: 'small-1', stage: EACH, raw: 'alone', run: (stage) => stage.small(1) },
  { name: 'small-8', stage: EACH, raw: 'alone', run: (stage) => stage.small(8) },
  { name: 'small-32', stage: EACH, raw: 'alone', run: (stage) => stage.small(32) },
  { name: 'partners-100', stage: 'many partners', raw: 'alone', run: (stage) => stage.smallOfPartners(100) },
  { name: 'small-beside-large', stage: 'small beside large', raw: 'alone', run: (stage) => stage.smallBesideLarge() },
  { name: 'small-32-embedded', stage: 'small, embedded database', raw: 'alone', run: (stage) => stage.small(32) },
  { name: 'raw-unhashed', stage: 'no checksum', raw: 'yardstick', run: (stage) => stage.raw() },
  { name: 'push-unhashed', stage: 'no checksum', raw: 'compared', run: (stage) => stage.transfer('push') },
  { name: 'pull-unhashed', stage: 'no checksum', raw: 'compared', run: (stage) => stage.transfer('pull') },
  // Their transfers are sessions, without a file.
  { name: 'tls-sessions', stage: 'TLS sessions', raw: 'alone', run: (stage) => stage.tlsSessions(true) },
  { name: 'tls-sessions-full', stage: 'TLS sessions', raw: 'alone', run: (stage) => stage.tlsSessions(false) },
  // Their latencies are those of REST. The transfers of the first are sessions, without a file.
  { name: 'sessions-1000-idle', stage: 'many sessions', raw: 'alone', run: (stage) => stage.crowd(1000, 0) },
  { name: 'sessions-1000', stage: 'many sessions', raw: 'alone', run: (stage) => stage.crowd(900, 100) },
  { name: 'large-100', stage: 'large at once', raw: 'alone', run: (stage) => stage.largeAtOnce(100) },
  // Its transfers are requests for lists.
  { name: 'history', stage: 'history', raw: 'alone', run: (stage) => stage.history() },
  // In a browser; its latencies are from the click to the picture.
  {
    ...{ name: 'console', stage: 'history', raw: 'alone', missing: missingBrowser },
    run: (stage) => stage.console(),
  },
  // No socket and no file: one article in each entity, and records of 80 bytes.
  { name: CODEC, stage: 'in process', raw: 'alone', run: () => Promise.resolve(codecRun(32_762, CODEC_BYTES)) },
  {
    name: 'codec-records',
    stage: 'in process',
    raw: 'alone',
    plain: CODEC,
    run: () => Promise.resolve(codecRun(80, CODEC_BYTES)),
  },
  // Its transfers are requests that go through the gate.
  { name: 'license-gate', stage: 'in process', raw: 'alone', run: () => Promise.resolve(licenseGateRun(2_000_000)) },
];

/**
 * The rows to run for `--only`, in order; a compared row brings its yardstick along, a variation the plain row. Empty `only`: all.
 *
 * @throws Error for a name that is no row.
 */
export const select = (only: readonly string[]): readonly Case[] => {
  const unknown = only.find((name) => !CASES.some((row) => row.name === name));
  if (unknown !== undefined) {
    throw new Error(`--only: no row "${unknown}"; the rows are ${CASES.map(({ name }) => name).join(', ')}`);
  }
  if (only.length === 0) return CASES;
  const named = CASES.filter(({ name }) => only.includes(name));
  const chosen = CASES.filter((row) => named.includes(row) || named.some(({ plain }) => plain === row.name));
  return CASES.filter(
    (row) =>
      chosen.includes(row) ||
      ((row.raw === 'yardstick' || row.raw === 'hashed') &&
        chosen.some(({ raw, stage }) => raw === 'compared' && stage === row.stage)),
  );
};
