import type { Measurement } from './figures.js';
import { licenseGateRun } from './gate.js';
import type { Sessions } from './node-pair.js';
import type { Stage } from './stage.js';

/** Where rows run: each stage has its own folder, files and pair of apps. */
export const STAGES = {
  disk: { medium: 'disk', sessions: 'kept' },
  memory: { medium: 'memory', sessions: 'kept' },
  'small, one session': { medium: 'disk', sessions: 'kept' },
  'small, a session each': { medium: 'disk', sessions: 'each' },
  'in process': { medium: 'disk', sessions: 'kept' },
} as const satisfies Readonly<Record<string, { readonly medium: 'disk' | 'memory'; readonly sessions: Sessions }>>;

export type StageName = keyof typeof STAGES;

/** One row of the report. */
export interface Case {
  readonly name: string;
  readonly stage: StageName;
  /** `yardstick`: the raw copy itself; `compared`: measured against it in the same round; `alone`: neither. */
  readonly raw: 'yardstick' | 'compared' | 'alone';
  readonly run: (stage: Stage) => Promise<Measurement>;
}

const ONE = 'small, one session';
const EACH = 'small, a session each';

export const CASES: readonly Case[] = [
  { name: 'disk-write-flush', stage: 'disk', raw: 'alone', run: (stage) => stage.writeAndFlush() },
  { name: 'raw-disk', stage: 'disk', raw: 'yardstick', run: (stage) => stage.raw() },
  { name: 'tcp-push-disk', stage: 'disk', raw: 'compared', run: (stage) => stage.transfer('push') },
  { name: 'tcp-pull-disk', stage: 'disk', raw: 'compared', run: (stage) => stage.transfer('pull') },
  { name: 'raw-memory', stage: 'memory', raw: 'yardstick', run: (stage) => stage.raw() },
  { name: 'tcp-push-memory', stage: 'memory', raw: 'compared', run: (stage) => stage.transfer('push') },
  { name: 'tcp-pull-memory', stage: 'memory', raw: 'compared', run: (stage) => stage.transfer('pull') },
  { name: 'small-one-session', stage: ONE, raw: 'alone', run: (stage) => stage.small(1) },
  { name: 'small-1', stage: EACH, raw: 'alone', run: (stage) => stage.small(1) },
  { name: 'small-8', stage: EACH, raw: 'alone', run: (stage) => stage.small(8) },
  { name: 'small-32', stage: EACH, raw: 'alone', run: (stage) => stage.small(32) },
  // Its transfers are requests that go through the gate.
  { name: 'license-gate', stage: 'in process', raw: 'alone', run: () => Promise.resolve(licenseGateRun(2_000_000)) },
];

/**
 * The rows to run for `--only`, in order; a compared row brings its yardstick along. Empty `only`: all.
 *
 * @throws Error for a name that is no row.
 */
export function select(only: readonly string[]): readonly Case[] {
  const unknown = only.find((name) => !CASES.some((row) => row.name === name));
  if (unknown !== undefined) {
    throw new Error(`--only: no row "${unknown}"; the rows are ${CASES.map(({ name }) => name).join(', ')}`);
  }
  if (only.length === 0) return CASES;
  const chosen = CASES.filter(({ name }) => only.includes(name));
  return CASES.filter(
    (row) =>
      chosen.includes(row) ||
      (row.raw === 'yardstick' && chosen.some(({ raw, stage }) => raw === 'compared' && stage === row.stage)),
  );
}
