/** All processes are restarted one by one, or PostgreSQL is lost as often, while files cross in both directions. */
import { createHash } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Chance } from '@pesit-node/protocol/testing';
import { statuses } from '../judge.js';
import { KB, MB } from '../plan.js';
import { call, RestError, type Json } from '../rest.js';
import { DATABASE, INBOX, OUTBOX, REMOTE, type Pod, type PodStage } from './pod-stage.js';

export interface PodRound {
  /** For the eye. */
  readonly words: string;
  /** Everything that is not as it must be. */
  readonly findings: readonly string[];
  readonly figures: Json;
}

export interface RollingPlan {
  readonly seed: number;
  readonly signal: 'term' | 'kill' | 'database';
  readonly transfers: number;
}

export interface Crossing {
  readonly name: string;
  readonly direction: 'push' | 'pull';
  readonly hash: string;
  id: string;
}

/** After the last restart. */
const END_LIMIT_MS = 300_000;
const START_AGAIN_MS = 120_000;
const LOOK_AGAIN_MS = 100;
const PAGE = 500;
/** So many may still be under way when the next restart begins. */
const AT_A_TIME = 24;

const sizeOf = (chance: Chance): number =>
  chance.weighted<() => number>([
    [6, () => chance.between(1, 64 * KB)],
    [3, () => chance.between(64 * KB, MB)],
    [1, () => chance.between(MB, 8 * MB)],
  ])();

const make = async (stage: PodStage, { seed, transfers }: RollingPlan): Promise<readonly Crossing[]> => {
  const chance = new Chance(seed);
  const crossings: Crossing[] = [];
  for (let k = 0; k < transfers; k++) {
    const direction = chance.pick(['push', 'pull'] as const);
    const name = `${direction}-${seed}-${k}`;
    const bytes = chance.fill(Buffer.allocUnsafe(sizeOf(chance)));
    const place = direction === 'push' ? 'client/send' : 'server/outbox';
    await writeFile(join(stage.directory, place, name), bytes);
    crossings.push({ name, direction, hash: createHash('sha256').update(bytes).digest('hex'), id: '' });
  }
  return crossings;
};

/** Asks any pod of the client app until one has taken the request: the key keeps it from being taken twice. */
export const request = async (stage: PodStage, { name, direction }: Crossing, turn: number): Promise<string> => {
  const limit = performance.now() + START_AGAIN_MS;
  const common = { server: REMOTE, syncPointsEnabled: true, syncInterval: 64, syncWindow: 4 };
  const body =
    direction === 'push'
      ? { ...common, filename: name, remoteFilename: name, virtualFile: INBOX }
      : { ...common, remoteFilename: name, virtualFile: OUTBOX, localName: name, selectByName: true };
  const pods = stage.of('client');
  for (let k = turn; ; k++) {
    const { base } = pods[k % pods.length] as Pod;
    try {
      const verb = direction === 'push' ? 'send' : 'receive';
      return String((await call('POST', `${base}/api/v1/transfers/${verb}`, body, { key: name }))['id']);
    } catch (error) {
      const isFinal = error instanceof RestError && error.status < 500 && error.status !== 409;
      if (isFinal || performance.now() > limit) throw error;
      await delay(LOOK_AGAIN_MS);
    }
  }
};

export const isFinal = ({ status }: Json): boolean => !['PENDING', 'IN_PROGRESS'].includes(String(status));

/** Records of the client app, by id. */
export const recordsOf = async (
  stage: PodStage,
  crossings: readonly Crossing[],
): Promise<ReadonlyMap<string, Json>> => {
  const records = new Map<string, Json>();
  for (let page = 0; page * PAGE < crossings.length; page++) {
    const answer = await stage.ask(
      'client',
      `/api/v1/transfers/history?size=${PAGE}&page=${page}&sort=createdTime,desc`,
    );
    for (const record of answer['content'] as readonly Json[]) records.set(String(record['id']), record);
  }
  return records;
};

/** Looks until so few are under way. @returns the records then, or at the limit */
export const settled = async (stage: PodStage, asked: readonly Crossing[], most: number, limitMs: number) => {
  const limit = performance.now() + limitMs;
  for (;;) {
    const records = await recordsOf(stage, asked).catch(() => new Map<string, Json>());
    const open = asked.filter(({ id }) => {
      const record = records.get(id);
      return record === undefined || !isFinal(record);
    });
    if (open.length <= most || performance.now() > limit) return records;
    await delay(LOOK_AGAIN_MS);
  }
};

const READ_ONLY_MS = 5000;
const LOSSES = ['crash', 'read-only', 'too many connections', 'another address'] as const;

/**
 * @param pod that starts again while it is lost
 * @returns how it was lost
 */
const loseDatabase = async ({ database, postgres }: PodStage, { process }: Pod, chance: Chance): Promise<string> => {
  const loss = chance.pick(LOSSES);
  switch (loss) {
    case 'crash':
      database.process.kill();
      await database.process.ended();
      await database.process.start();
      break;
    case 'read-only':
      await database.setReadOnly(true);
      await delay(READ_ONLY_MS);
      await database.setReadOnly(false);
      break;
    case 'too many connections': {
      await database.setFull(DATABASE, true);
      process.kill();
      await process.ended();
      const starting = process.start();
      await delay(READ_ONLY_MS);
      await database.setFull(DATABASE, false);
      await starting;
      break;
    }
    case 'another address':
      // A standby is read-only until it is promoted, and so is what was the first before it ends.
      await database.setReadOnly(true);
      await postgres.cut();
      await database.move();
      postgres.leadTo([database.address]);
      await postgres.open();
      await delay(READ_ONLY_MS);
      await database.setReadOnly(false);
      break;
  }
  return loss;
};

/** From the loss of the leader to the next one's listeners (issue 14), milliseconds. */
const LISTENS_WITHIN_MS = 12_000;

/** The listeners run on the leader alone: milliseconds until they run again after a pod has ended. */
const listensAgain = async (stage: PodStage): Promise<number> => {
  const from = performance.now();
  while (!(await stage.takesPartners()) && performance.now() - from < START_AGAIN_MS) await delay(LOOK_AGAIN_MS);
  return performance.now() - from;
};

/** @returns how long nobody took partners, milliseconds */
const restart = async (stage: PodStage, { process }: Pod, signal: 'term' | 'kill'): Promise<number> => {
  if (signal === 'kill') {
    process.kill();
    await process.ended();
  } else {
    await process.stop();
  }
  const [ms] = await Promise.all([listensAgain(stage), process.start()]);
  return ms;
};

/** Hashes of the files in a directory, and the names in its staging directory. */
const contents = async (
  directory: string,
): Promise<{ readonly hashes: readonly string[]; readonly staged: number }> => {
  const hashes: string[] = [];
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    if (!entry.isFile()) continue;
    hashes.push(
      createHash('sha256')
        .update(await readFile(join(directory, entry.name)))
        .digest('hex'),
    );
  }
  return { hashes, staged: (await readdir(join(directory, '.pesit')).catch(() => [])).length };
};

const serverRecords = async (stage: PodStage, count: number): Promise<readonly Json[]> => {
  const records: Json[] = [];
  for (let page = 0; page * PAGE < 4 * count; page++) {
    const { content } = await stage.ask('server', `/api/v1/transfers?size=${PAGE}&page=${page}&sort=id,desc`);
    records.push(...(content as readonly Json[]));
    if ((content as readonly Json[]).length < PAGE) break;
  }
  return records;
};

export const judge = async (stage: PodStage, crossings: readonly Crossing[], records: ReadonlyMap<string, Json>) => {
  const findings: string[] = [];
  const arrived = {
    push: await contents(join(stage.directory, 'server/inbox')),
    pull: await contents(join(stage.directory, 'client/received')),
  };
  const ofServer = await serverRecords(stage, crossings.length);
  const counts = { failed: 0, lost: 0, doubled: 0, unfinished: 0 };
  for (const { name, direction, hash, id } of crossings) {
    const record = records.get(id) ?? {};
    const status = String(record['status']);
    const told = `${name}: ${statuses([record])} ${JSON.stringify(record['errorMessage'] ?? null)}`;
    const files = arrived[direction].hashes.filter((other) => other === hash).length;
    const completed = ofServer.filter(
      (other) => other['checksum'] === `sha256:${hash}` && other['status'] === 'COMPLETED',
    );
    const find = (fate: keyof typeof counts, text: string): void => {
      counts[fate]++;
      findings.push(`${fate.toUpperCase()}: ${text}`);
    };
    if (status === 'FAILED') find('failed', told);
    else if (status !== 'COMPLETED') find('unfinished', told);
    if (files === 0) find('lost', `${told}; no file with its contents has arrived`);
    if (files > 1) find('doubled', `${name}: ${files} files`);
    if (completed.length > 1) find('doubled', `${name}: ${completed.length} COMPLETED records of the server app`);
    if (completed.length === 0 && status === 'COMPLETED')
      find('unfinished', `${name}: no COMPLETED record of the server app`);
  }
  for (const direction of ['push', 'pull'] as const)
    if (arrived[direction].staged > 0)
      findings.push(`WRONG: ${direction}: ${arrived[direction].staged} names left in staging`);
  return { findings, counts };
};

export const tidy = async ({ directory }: PodStage): Promise<void> => {
  for (const place of ['client/send', 'server/outbox', 'server/inbox', 'client/received'])
    for (const entry of await readdir(join(directory, place), { withFileTypes: true }))
      if (entry.isFile()) await rm(join(directory, place, entry.name));
};

const shuffled = <T>(all: readonly T[], chance: Chance): readonly T[] => {
  const rest = [...all];
  return all.flatMap(() => rest.splice(chance.below(rest.length), 1));
};

export const rollingRound = async (stage: PodStage, plan: RollingPlan): Promise<PodRound> => {
  const began = performance.now();
  const crossings = await make(stage, plan);
  // In another order each round, and the transfers are spread over all restarts.
  const chance = new Chance(plan.seed ^ 0x0b5);
  const order = shuffled(stage.pods, chance);
  const share = Math.ceil(crossings.length / order.length);
  const struck: string[] = [];
  const gaps: number[] = [];
  const asked: Crossing[] = [];
  const ask = async (crossing: Crossing, k: number): Promise<void> => {
    crossing.id = await request(stage, crossing, k);
    asked.push(crossing);
  };
  for (const [k, pod] of order.entries()) {
    const batch = crossings.slice(k * share, (k + 1) * share);
    const first = asked.length;
    const asking = Promise.all(batch.map(ask));
    // Some of them run by then, the others wait or are being asked for.
    while (asked.length < first + batch.length / 4) await delay(LOOK_AGAIN_MS);
    await delay(chance.between(0, 500));
    if (plan.signal === 'database') struck.push(await loseDatabase(stage, pod, chance));
    else {
      gaps.push(await restart(stage, pod, plan.signal));
      struck.push(pod.name);
    }
    await asking;
    await settled(stage, asked, AT_A_TIME, START_AGAIN_MS);
  }
  const records = await settled(stage, crossings, 0, END_LIMIT_MS);
  let result = await judge(stage, crossings, records);
  // The other side's last record, its tidying.
  for (let look = 0; look < 100 && result.findings.length > 0; look++) {
    await delay(LOOK_AGAIN_MS);
    result = await judge(stage, crossings, records);
  }
  const gapMs = Math.round(Math.max(0, ...gaps));
  const findings = [...result.findings];
  if (gapMs > LISTENS_WITHIN_MS)
    findings.push(`LATE: nobody took partners for ${gapMs} ms, ${LISTENS_WITHIN_MS} are the limit`);
  if (findings.length === 0) await tidy(stage);
  const seconds = (performance.now() - began) / 1000;
  // The page of the history has records of the rounds before, too.
  const attempts = crossings.reduce((sum, { id }) => sum + Number(records.get(id)?.['attempts'] ?? 0), 0);
  const { failed, lost, doubled, unfinished } = result.counts;
  return {
    words:
      `${plan.signal}: ${struck.join(', ')}; ${crossings.length} transfers, ${attempts} attempts: ` +
      `${failed} failed, ${lost} lost, ${doubled} doubled, ${unfinished} unfinished; at most ${gapMs} ms without a listener; ${seconds.toFixed(1)} s`,
    findings,
    figures: {
      seed: plan.seed,
      signal: plan.signal,
      transfers: crossings.length,
      attempts,
      ...result.counts,
      gapMs,
      seconds,
    },
  };
};
