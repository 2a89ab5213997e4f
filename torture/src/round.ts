/** One round: a transfer, what goes wrong on its way, and whether everything is as it must be in the end. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Action, Fault } from './faults.js';
import { judge, type Finding, type Observation } from './judge.js';
import type { FilePlan, RoundPlan, SessionPlan, TransferPlan } from './plan.js';
import type { Traffic } from './proxy.js';
import { writeSource } from './source.js';
import type { Stage } from './stage.js';

/** A round that takes longer does not converge. Some have a thousand points, one after the other, on a machine that may be busy. */
const ROUND_LIMIT_MS = 240_000;
/** Work that may still run when the client app has its end: the other side's last record, its tidying. */
const SETTLE_LIMIT_MS = 15_000;
const LOOK_AGAIN_MS = 25;

export interface TransferResult {
  /** Empty: all is well. */
  readonly findings: readonly Finding[];
  readonly observation: Observation;
}

export interface RoundResult {
  readonly seconds: number;
  readonly traffic: Traffic;
  /** As in the plan. */
  readonly transfers: readonly [TransferResult, ...TransferResult[]];
}

const actionInWords = (action: Action): string => {
  if (action.do === 'kill') return `kill the ${action.victim}${action.afterMs > 0 ? ` (+${action.afterMs} ms)` : ''}`;
  if (action.do === 'stall') return `stall ${action.ms} ms`;
  return action.do === 'drop' ? `drop${action.cut ? ' and cut' : ''}` : action.do;
};

const faultInWords = ({ moment, action }: Fault): string => {
  const words = actionInWords(action);
  if (moment.at === 'time') return `${words} after ${moment.ms} ms`;
  if (moment.at === 'bytes') return `${words} at byte ${moment.count} of the ${moment.direction}s`;
  return `${words} ${moment.side} ${moment.name}${moment.occurrence > 1 ? ` ${moment.occurrence}` : ''}`;
};

const transferInWords = ({ direction, file: { size, format, recordLength, ebcdic } }: TransferPlan): string =>
  `${direction} ${size} B ${format}${recordLength}${ebcdic ? ' EBCDIC' : ''}`;

/** The plan in a line. */
export const inWords = ({ transfers, session, latencyMs, faults }: RoundPlan): string => {
  const { dialect, entity, interval, window, compression, crc, resync } = session;
  const points = interval === 0 ? 'no points' : `${interval} KB x ${window}`;
  const latency = latencyMs === 0 ? '' : `, ${latencyMs} ms each way`;
  const what = faults.length === 0 ? 'nothing' : faults.map(faultInWords).join('; ');
  const extras = [
    compression === 'none' ? '' : `, compression ${compression}`,
    crc ? ', CRC' : '',
    resync ? ', RESYN' : '',
  ];
  return `${transfers.map(transferInWords).join(' and ')}, ${dialect} ${entity}, ${points}${extras.join('')}${latency}: ${what}`;
};

/** Looks until all is well, or nothing can be expected to change. */
const settled = async (
  look: () => Promise<Observation>,
  plan: TransferPlan,
  session: SessionPlan,
  isCompleted: boolean,
): Promise<TransferResult> => {
  const limit = performance.now() + (isCompleted ? SETTLE_LIMIT_MS : 0);
  for (;;) {
    const observation = await look();
    const findings = judge(plan, session, observation);
    if (findings.length === 0 || performance.now() > limit) return { observation, findings };
    await delay(LOOK_AGAIN_MS);
  }
};

/**
 * @param makeSource writes a source and returns its SHA-256 in hex
 * @param limitMs until the client app must have brought the transfers to their end
 */
export const runRound = async (
  stage: Stage,
  plan: RoundPlan,
  makeSource = (path: string, file: FilePlan) => writeSource(path, file, plan.seed),
  limitMs = ROUND_LIMIT_MS,
): Promise<RoundResult> => {
  const began = performance.now();
  const { session } = plan;
  const { exchange } = stage;
  const prepared: { readonly transfer: TransferPlan; readonly name: string; readonly hash: string }[] = [];
  for (const transfer of plan.transfers) {
    const name = `${transfer.direction}-${plan.seed}.dat`;
    const source = join(stage.directory, name);
    const hash = await makeSource(source, transfer.file);
    await exchange.prepare(transfer, source, name);
    await rm(source);
    prepared.push({ transfer, name, hash });
  }
  await exchange.beginRound();
  stage.arm(plan);
  const run = async ({ transfer, name }: (typeof prepared)[number]): Promise<boolean> => {
    const id = await exchange.request(transfer, session, name);
    return (await exchange.finalRecord(id, limitMs))['status'] === 'COMPLETED';
  };
  const isCompleted = await Promise.all(prepared.map(run));
  const traffic = await stage.disarm(plan);
  await stage.whole();
  const transfers: TransferResult[] = [];
  for (const [k, { transfer, name, hash }] of prepared.entries()) {
    const look = () => exchange.observe(transfer, name, hash, traffic);
    const result = await settled(look, transfer, session, isCompleted[k] === true);
    if (result.findings.length === 0) await exchange.tidy(transfer, name, result.observation);
    transfers.push(result);
  }
  return {
    seconds: (performance.now() - began) / 1000,
    traffic,
    transfers: transfers as [TransferResult, ...TransferResult[]],
  };
};
