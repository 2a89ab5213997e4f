/**
 * PostgreSQL is away for a while, as a volume or a machine may be, in the middle of transfers each way: it stands still with all of its
 * processes, so that nothing is answered and no connection ends, or it is stopped. Transfers wait and complete, or fail with words and are
 * restarted; then files and records of both apps have to agree.
 */
import { createHash } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Chance } from '@pesit-node/protocol/testing';
import { MB } from '../plan.js';
import { call, type Json } from '../rest.js';
import type { Pod, PodStage } from './pod-stage.js';
import { judge, request, settled, tidy, type Crossing, type PodRound } from './rolling-round.js';

export interface AwayPlan {
  readonly seed: number;
  /** Transfers each way. */
  readonly each: number;
  /** How long it is away, seconds. */
  readonly seconds: number;
}

const WAYS = ['stands still', 'is stopped'] as const;

/** After it is back. */
const END_LIMIT_MS = 300_000;
const LOOK_AGAIN_MS = 100;
/** For the last records of both apps, and their tidying. */
const AGREE_LIMIT_MS = 30_000;
/** How often a transfer that failed with words is restarted. */
const RESTARTS = 3;

const make = async (stage: PodStage, { seed, each }: AwayPlan, chance: Chance): Promise<readonly Crossing[]> => {
  const crossings: Crossing[] = [];
  for (let k = 0; k < 2 * each; k++) {
    const direction = k % 2 === 0 ? 'push' : 'pull';
    const name = `${direction}-${seed}-${k}`;
    const bytes = chance.fill(Buffer.allocUnsafe(chance.between(MB, 16 * MB)));
    const place = direction === 'push' ? 'client/send' : 'server/outbox';
    await writeFile(join(stage.directory, place, name), bytes);
    crossings.push({ name, direction, hash: createHash('sha256').update(bytes).digest('hex'), id: '' });
  }
  return crossings;
};

/** Files that have arrived whole, both ways. */
const arrived = async ({ directory }: PodStage): Promise<number> => {
  const names = await Promise.all(
    ['server/inbox', 'client/received'].map((place) =>
      readdir(join(directory, place)).then(
        (all) => all.filter((name) => !name.startsWith('.')),
        () => [],
      ),
    ),
  );
  return names.flat().length;
};

/** How many restarts were asked for, of those that FAILED. */
const restartFailed = async (
  stage: PodStage,
  crossings: readonly Crossing[],
  records: ReadonlyMap<string, Json>,
  findings: string[],
): Promise<number> => {
  const failed = crossings.filter(({ id }) => records.get(id)?.['status'] === 'FAILED');
  for (const { id, name } of failed) {
    const words = records.get(id)?.['errorMessage'];
    if (typeof words !== 'string' || words === '') findings.push(`SILENT: ${name} FAILED without words`);
    const { base } = stage.of('client')[0] as Pod;
    await call('POST', `${base}/api/v1/transfers/${id}/retry`);
  }
  return failed.length;
};

export const databaseAwayRound = async (stage: PodStage, plan: AwayPlan): Promise<PodRound> => {
  const { seed, each, seconds } = plan;
  const began = performance.now();
  const chance = new Chance(seed);
  // One seed after the other tries both.
  const way = WAYS[seed % WAYS.length] as (typeof WAYS)[number];
  const { process } = stage.database;
  const findings: string[] = [];
  const crossings = await make(stage, plan, chance);
  const asking = Promise.all(
    crossings.map(async (crossing, k) => {
      crossing.id = await request(stage, crossing, k);
    }),
  );
  // Some are over by then, some run, the others wait or are being asked for.
  const most = chance.between(0, each);
  while ((await arrived(stage)) < most) await delay(LOOK_AGAIN_MS);
  await delay(chance.between(0, 300));
  const before = await arrived(stage);
  if (way === 'stands still') await process.freezeAll();
  else await process.stop('SIGINT');
  const health: number[] = [];
  const until = performance.now() + seconds * 1000;
  while (performance.now() < until) {
    const from = performance.now();
    await Promise.all(stage.pods.map(({ base }) => call('GET', `${base}/actuator/health/liveness`))).catch(
      (error: unknown) => findings.push(`DEAD: a pod is not alive while PostgreSQL is away: ${String(error)}`),
    );
    health.push(performance.now() - from);
    await delay(1000);
  }
  const during = (await arrived(stage)) - before;
  if (way === 'stands still') process.continueAll();
  else await process.start();
  await asking;
  let records = await settled(stage, crossings, 0, END_LIMIT_MS);
  let restarts = 0;
  for (let turn = 0; turn < RESTARTS; turn++) {
    const more = await restartFailed(stage, crossings, records, findings);
    restarts += more;
    if (more === 0) break;
    records = await settled(stage, crossings, 0, END_LIMIT_MS);
  }
  const limit = performance.now() + AGREE_LIMIT_MS;
  let result = await judge(stage, crossings, records);
  while (result.findings.length > 0 && performance.now() < limit) {
    await delay(LOOK_AGAIN_MS);
    result = await judge(stage, crossings, records);
  }
  findings.push(...result.findings);
  if (findings.length === 0) await tidy(stage);
  const attempts = crossings.reduce((sum, { id }) => sum + Number(records.get(id)?.['attempts'] ?? 0), 0);
  const { failed, lost, doubled, unfinished } = result.counts;
  const slowest = Math.round(Math.max(0, ...health));
  const total = (performance.now() - began) / 1000;
  return {
    words:
      `PostgreSQL ${way} for ${seconds} s, ${before} of ${2 * each} files there before, ${during} more meanwhile; ${attempts} attempts, ` +
      `${restarts} restarts by hand: ${failed} failed, ${lost} lost, ${doubled} doubled, ${unfinished} unfinished; ` +
      `liveness at most ${slowest} ms; ${total.toFixed(1)} s`,
    findings,
    figures: {
      seed,
      way,
      seconds,
      transfers: 2 * each,
      before,
      during,
      attempts,
      restarts,
      ...result.counts,
      slowest,
      total,
    },
  };
};
