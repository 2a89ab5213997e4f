/** A file that is too large to be sent twice: what its restart near the end costs, in bytes, time and memory. */
import { truncate, writeFile } from 'node:fs/promises';
import type { Finding } from './judge.js';
import { articleBytes, resendLimit, resentBytes } from './judge.js';
import type { RoundPlan } from './plan.js';
import { runRound } from './round.js';
import { sha256 } from './source.js';
import type { Stage } from './stage.js';

const CUT_AT = 0.95;
const LIMIT_MS = 3_600_000;
/** Tp as partners have it: what is there already is read for its hash while one of them waits. */
export const GIANT_SILENCE_MS = 30_000;

export interface GiantFigures {
  readonly bytes: number;
  readonly attempts: number;
  /** Article bytes that crossed more than once, and what window and one flush allow. */
  readonly resentBytes: number;
  readonly resendLimit: number;
  readonly seconds: number;
  readonly peakRssMb: Readonly<Record<'server' | 'client', number>>;
  readonly findings: readonly Finding[];
}

/** Pushes a sparse file through one cut at 95 % of it. */
export const runGiant = async (stage: Stage, gibibytes: number): Promise<GiantFigures> => {
  const size = gibibytes * 2 ** 30;
  const plan: RoundPlan = {
    seed: 0,
    transfers: [{ direction: 'push', file: { size, format: 'BV', recordLength: 32_000, ebcdic: false, runs: false } }],
    session: {
      dialect: 'length-prefixed',
      entity: 65_535,
      interval: 1024,
      window: 16,
      compression: 'none',
      crc: false,
      resync: false,
    },
    latencyMs: 0,
    faults: [
      { moment: { at: 'bytes', direction: 'request', count: Math.floor(size * CUT_AT) }, action: { do: 'reset' } },
    ],
    absenceMs: 0,
  };
  const makeSource = async (path: string): Promise<string> => {
    await writeFile(path, '');
    await truncate(path, size);
    return sha256(path);
  };
  const { seconds, transfers } = await runRound(stage, plan, makeSource, LIMIT_MS);
  const [{ findings, observation }] = transfers;
  return {
    bytes: articleBytes(observation.clientRecords[0] ?? {}),
    attempts: observation.attempts,
    resentBytes: resentBytes(observation),
    resendLimit: resendLimit(plan.session, size),
    seconds: Math.round(seconds * 10) / 10,
    peakRssMb: stage.peakMemory(),
    findings,
  };
};
