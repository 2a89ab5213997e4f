/** One round: a transfer, what goes wrong on its way, and whether everything is as it must be in the end. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Action, Fault } from './faults.js';
import { judge, resentBytes, type Finding, type Observation } from './judge.js';
import type { RoundPlan } from './plan.js';
import type { Traffic } from './proxy.js';
import { writeSource } from './source.js';
import type { Stage } from './stage.js';

/** A round that takes longer does not converge; the longest waits are restarts of apps on a busy machine. */
const ROUND_LIMIT_MS = 90_000;
/** What may still be going on when the client app has its end: the other side's last record, its tidying. */
const SETTLE_LIMIT_MS = 15_000;
const LOOK_AGAIN_MS = 25;

export interface RoundResult {
  readonly plan: RoundPlan;
  /** Empty: all is well. */
  readonly findings: readonly Finding[];
  readonly resentBytes: number;
  readonly attempts: number;
  readonly seconds: number;
  readonly traffic: Traffic;
  readonly observation: Observation;
}

function actionInWords(action: Action): string {
  if (action.do === 'kill') return `kill the ${action.victim}${action.afterMs > 0 ? ` (+${action.afterMs} ms)` : ''}`;
  if (action.do === 'stall') return `stall ${action.ms} ms`;
  return action.do === 'drop' ? `drop${action.cut ? ' and cut' : ''}` : action.do;
}

function faultInWords({ moment, action }: Fault): string {
  const words = actionInWords(action);
  if (moment.at === 'time') return `${words} after ${moment.ms} ms`;
  if (moment.at === 'bytes') return `${words} at byte ${moment.count} of the ${moment.direction}s`;
  return `${words} ${moment.side} ${moment.name}${moment.occurrence > 1 ? ` ${moment.occurrence}` : ''}`;
}

/** The plan in a line. */
export function inWords({ direction, file, session, latencyMs, faults }: RoundPlan): string {
  const { size, format, recordLength } = file;
  const { dialect, entity, interval, window } = session;
  const points = interval === 0 ? 'no points' : `${interval} KB x ${window}`;
  const latency = latencyMs === 0 ? '' : `, ${latencyMs} ms each way`;
  const what = faults.length === 0 ? 'nothing' : faults.map(faultInWords).join('; ');
  return `${direction} ${size} B ${format}${recordLength}, ${dialect} ${entity}, ${points}${latency}: ${what}`;
}

/** Looks until all is well, or nothing can be expected to change any more. */
async function settled(look: () => Promise<Observation>, plan: RoundPlan, isCompleted: boolean) {
  const limit = performance.now() + (isCompleted ? SETTLE_LIMIT_MS : 0);
  for (;;) {
    const observation = await look();
    const findings = judge(plan, observation);
    if (findings.length === 0 || performance.now() > limit) return { observation, findings };
    await delay(LOOK_AGAIN_MS);
  }
}

/**
 * @param makeSource writes the source and returns its SHA-256 in hex
 * @param limitMs until the client app must have brought the transfer to its end
 */
export async function runRound(
  stage: Stage,
  plan: RoundPlan,
  makeSource = (path: string) => writeSource(path, plan.file, plan.seed),
  limitMs = ROUND_LIMIT_MS,
): Promise<RoundResult> {
  const began = performance.now();
  const name = `round-${plan.seed}.dat`;
  const source = join(stage.directory, name);
  const hash = await makeSource(source);
  await stage.prepare(plan, source, name);
  stage.arm(plan);
  const id = await stage.request(plan, name);
  const { status } = await stage.finalRecord(id, limitMs);
  const traffic = await stage.disarm(plan);
  await stage.whole();
  const look = () => stage.observe(plan, name, hash, traffic);
  const { observation, findings } = await settled(look, plan, status === 'COMPLETED');
  if (findings.length === 0) await stage.tidy(plan, name, observation);
  await rm(source, { force: true });
  return {
    plan,
    findings,
    resentBytes: resentBytes(observation),
    attempts: traffic.attempts,
    seconds: (performance.now() - began) / 1000,
    traffic,
    observation,
  };
}
