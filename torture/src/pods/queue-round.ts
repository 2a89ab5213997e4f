/** A long queue through two processes of the client app: each file once, order where it is asked for, memory as it was. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadavg } from 'node:os';
import { KB } from '../plan.js';
import { call, RestError, type Json } from '../rest.js';
import { INBOX, REMOTE, type PodStage } from './pod-stage.js';
import type { PodRound } from './rolling-round.js';

export interface QueuePlan {
  readonly transfers: number;
  /** One process of the client app is killed for good when half of them have ended. */
  readonly kill: boolean;
}

/** A file that was sent, as one side has it. */
export interface QueuedRecord {
  /** `<kind>-<number>`: those of kind `ordered` in the order of their numbers. */
  readonly name: string;
  readonly status: string;
  /** Milliseconds. */
  readonly endTime: number;
}

/** Resident memory of one process. */
export interface MemorySample {
  readonly pod: string;
  /** Transfers of all that had ended. */
  readonly ended: number;
  readonly bytes: number;
}

const FILE_BYTES = 4 * KB;
/** One of so many is ordered. */
const ORDERED = 10;
/** Requests at a time, beside the ordered ones, which come one after the other. */
const CALLERS = 8;
const LIMIT_MS = 3_600_000;
const LOOK_MS = 1000;
const AGAIN_MS = 500;
/** 409: another process, perhaps one that was killed, is still taking in the first request with this key. */
const PASSING: readonly number[] = [409, 503];
/** Memory at the end may be so much more than when a quarter was through: the heap of V8 breathes. */
const GROWTH = 1.25;
const GROWTH_BYTES = 32 * KB * KB;

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const contentOf = (name: string): Buffer => Buffer.alloc(FILE_BYTES, `${name};`);

/** Everything that is not as it must be of the files, by what both sides have of them. */
export const faultsOf = (
  names: readonly string[],
  records: Readonly<Record<'client' | 'server', readonly QueuedRecord[]>>,
  delivered: readonly string[],
): readonly string[] => {
  const findings: string[] = [];
  for (const side of ['client', 'server'] as const) {
    const completed = records[side].filter(({ status }) => status === 'COMPLETED');
    const known = new Set(completed.map(({ name }) => name));
    const missing = names.filter((name) => !known.has(name));
    if (missing.length > 0)
      findings.push(`${side}: ${missing.length} not COMPLETED, ${missing.slice(0, 3).join(', ')}`);
    if (completed.length > known.size) findings.push(`${side}: ${completed.length - known.size} COMPLETED twice`);
    const ordered = completed
      .filter(({ name }) => name.startsWith('ordered-'))
      .sort((a, b) => a.endTime - b.endTime || numberOf(a) - numberOf(b));
    const wrong = ordered.findIndex((one, k) => k > 0 && numberOf(one) < numberOf(ordered[k - 1] as QueuedRecord));
    if (wrong > 0) findings.push(`${side}: ${ordered[wrong - 1]?.name} ended before ${ordered[wrong]?.name}`);
  }
  const [expected, found] = [new Set(names.map((name) => sha256(contentOf(name)))), new Set(delivered)];
  if (delivered.length !== names.length) findings.push(`${delivered.length} files delivered of ${names.length}`);
  const lost = [...expected].filter((hash) => !found.has(hash));
  if (lost.length > 0) findings.push(`${lost.length} files were never delivered as they were sent`);
  return findings;
};

const numberOf = ({ name }: QueuedRecord): number => Number(name.split('-')[1]);

/** Memory of each process that grew with what went through it. */
export const growthOf = (samples: readonly MemorySample[], transfers: number): readonly string[] =>
  [...new Set(samples.map(({ pod }) => pod))].flatMap((pod) => {
    const own = samples.filter((sample) => sample.pod === pod);
    const most = (from: number, to: number): number =>
      Math.max(
        0,
        ...own.filter(({ ended }) => ended >= from * transfers && ended < to * transfers).map(({ bytes }) => bytes),
      );
    const [early, late] = [most(0, 0.25), most(0.75, 1)];
    return early > 0 && late > early * GROWTH + GROWTH_BYTES
      ? [`${pod}: ${mib(late)} MiB in the last quarter, ${mib(early)} MiB in the first`]
      : [];
  });

const mib = (bytes: number): number => Math.round(bytes / KB / KB);

const memoryOf = async (pid: number | undefined): Promise<number | undefined> => {
  const status = await readFile(`/proc/${pid ?? 0}/status`, 'utf8').catch(() => '');
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) * KB;
};

/** Asks one process after the other until one takes the request: the key makes it one transfer. */
const post = async (stage: PodStage, name: string, first: number): Promise<void> => {
  const body = {
    ...{ server: REMOTE, virtualFile: INBOX, remoteFilename: name },
    fileContent: contentOf(name).toString('base64'),
    ...(name.startsWith('ordered-') ? { ordered: true } : {}),
  };
  const clients = stage.of('client');
  for (let k = first; ; k++) {
    const { base } = clients[k % clients.length] as (typeof clients)[number];
    try {
      await call('POST', `${base}/api/v1/transfers/send`, body, { key: `queue-${name}` });
      return;
    } catch (error) {
      if (error instanceof RestError && !PASSING.includes(error.status)) throw error;
      await delay(AGAIN_MS);
    }
  }
};

const postAll = async (stage: PodStage, names: readonly string[]): Promise<void> => {
  const free = names.filter((name) => !name.startsWith('ordered-'));
  const ordered = names.filter((name) => name.startsWith('ordered-'));
  let next = 0;
  const caller = async (): Promise<void> => {
    for (let k = next++; k < free.length; k = next++) await post(stage, free[k] as string, k);
  };
  const inOrder = async (): Promise<void> => {
    for (const [k, name] of ordered.entries()) await post(stage, name, k);
  };
  await Promise.all([inOrder(), ...Array.from({ length: CALLERS }, caller)]);
};

const deliveredFiles = async (stage: PodStage): Promise<readonly string[]> => {
  const inbox = join(stage.directory, 'server/inbox');
  const names = (await readdir(inbox, { withFileTypes: true })).filter((entry) => entry.isFile());
  const hashes: string[] = [];
  for (const { name } of names) hashes.push(sha256(await readFile(join(inbox, name))));
  return hashes;
};

const recordsOf = (stage: PodStage, app: 'client' | 'server'): Promise<readonly QueuedRecord[]> =>
  stage.rows<QueuedRecord>(
    `select ${app === 'client' ? 'remote_filename' : 'label'} as name, status,
       (extract(epoch from end_time) * 1000)::float8 as "endTime" from pesit_${app}.transfers`,
  );

const progressOf = async (stage: PodStage): Promise<Readonly<Record<'ended' | 'waiting', number>>> => {
  const [row] = await stage.rows<Record<'ended' | 'waiting', number>>(
    `select (count(*) filter (where status in ('COMPLETED', 'FAILED', 'CANCELLED')))::integer as ended,
       (count(*) filter (where status = 'PENDING'))::integer as waiting from pesit_client.transfers`,
  );
  return row ?? { ended: 0, waiting: 0 };
};

export const queueRound = async (stage: PodStage, { transfers, kill }: QueuePlan): Promise<PodRound> => {
  const names = Array.from({ length: transfers }, (_, k) => `${k % ORDERED === 0 ? 'ordered' : 'free'}-${k}`);
  const samples: MemorySample[] = [];
  const began = performance.now();
  let postedAfter = 0;
  const posted = postAll(stage, names).then(() => (postedAfter = performance.now() - began));
  const posting = { isRefused: false };
  posted.catch(() => (posting.isRefused = true));
  const [victim] = stage.of('client');
  let isKilled = false;
  let longest = 0;
  let ended = 0;
  while (ended < transfers && !posting.isRefused && performance.now() - began < LIMIT_MS) {
    await delay(LOOK_MS);
    const progress = await progressOf(stage);
    ended = progress.ended;
    longest = Math.max(longest, progress.waiting);
    for (const { name: pod, process } of stage.of('client')) {
      const bytes = await memoryOf(process.pid);
      if (bytes !== undefined) samples.push({ pod, ended, bytes });
    }
    if (kill && !isKilled && ended >= transfers / 2) {
      isKilled = true;
      victim?.process.kill();
    }
  }
  const seconds = (performance.now() - began) / 1000;
  await posted;
  const records = { client: await recordsOf(stage, 'client'), server: await recordsOf(stage, 'server') };
  const findings = [...faultsOf(names, records, await deliveredFiles(stage)), ...growthOf(samples, transfers)];
  const peak = (from: number, to: number): number =>
    mib(
      Math.max(
        0,
        ...samples.filter(({ ended: at }) => at >= from * transfers && at <= to * transfers).map(({ bytes }) => bytes),
      ),
    );
  const memory = { first: peak(0, 0.25), last: peak(0.75, 1), most: peak(0, 1) };
  const more = records.server.length - transfers;
  return {
    words:
      `${transfers} of 4 KB through two client processes${kill ? ', one killed in the middle' : ''}: ${seconds.toFixed(0)} s ` +
      `(${(transfers / seconds).toFixed(1)} a second; posted within ${(postedAfter / 1000).toFixed(0)} s, at most ${longest} waited), ` +
      `${more} attempts more on the server; the larger client ${memory.first} MiB in the first quarter, ${memory.last} in the last, ` +
      `${memory.most} at most; load ${loadavg()[0]?.toFixed(1)}`,
    findings,
    figures: { transfers, kill, seconds, postedAfter: postedAfter / 1000, longest, more, memory } satisfies Json,
  };
};
