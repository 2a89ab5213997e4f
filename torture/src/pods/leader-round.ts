/** The leader of an app is lost: it ends, is killed, stands still, or Redis is away. Never may two lead. */
import { setTimeout as delay } from 'node:timers/promises';
import { Chance } from '@pesit-node/protocol/testing';
import type { AppName } from '../app-process.js';
import { call } from '../rest.js';
import type { Epoch, Pod, PodStage } from './pod-stage.js';
import type { PodRound } from './rolling-round.js';

type Loss = 'ends' | 'is killed' | 'stands still' | 'Redis is away';

/** From the loss to the next leader, milliseconds (issue 14, Show). */
const LIMITS: Readonly<Record<Loss, number>> = {
  ends: 1000,
  'is killed': 12_000,
  // Its lease has to run out first.
  'stands still': 12_000,
  'Redis is away': 12_000,
};
const STANDS_MS = 15_000;
const AWAY_MS = 30_000;
/** A leader gives up 9 s after its last renewal. */
const GIVEN_UP_MS = 11_000;
const ELECTED_MS = 60_000;
const LOOK_AGAIN_MS = 50;
const ANSWER_MS = 2000;

/** A pod said at some time between `from` and `to` whether it leads. */
export interface Sample {
  readonly pod: string;
  readonly from: number;
  readonly to: number;
  readonly leads: boolean;
}

/** Two pods that both led: one said so before and after the other did, and never in between that it does not. */
export const overlaps = (samples: readonly Sample[]): readonly string[] => {
  const found = new Set<string>();
  for (const pod of new Set(samples.map((sample) => sample.pod))) {
    const own = samples.filter((sample) => sample.pod === pod);
    for (const [k, after] of own.entries()) {
      const before = own[k - 1];
      if (before?.leads !== true || !after.leads) continue;
      const other = samples.find(
        (one) => one.pod !== pod && one.leads && one.from >= before.to && one.to <= after.from,
      );
      if (other !== undefined) found.add([pod, other.pod].sort().join(' and '));
    }
  }
  return [...found];
};

/** Asks every pod of an app again and again. */
class Watch {
  readonly samples: Sample[] = [];
  readonly #pods: readonly Pod[];
  readonly #loops: Promise<unknown>;
  #over = false;

  constructor(pods: readonly Pod[]) {
    this.#pods = pods;
    this.#loops = Promise.all(pods.map((pod) => this.#ask(pod)));
  }

  async end(): Promise<void> {
    this.#over = true;
    await this.#loops;
  }

  /** The pod that said last that it leads. */
  get leader(): Pod | undefined {
    return this.#pods.find(({ name }) => this.samples.findLast(({ pod }) => pod === name)?.leads === true);
  }

  /** @returns the time when a pod said that it leads, asked after `since`; undefined at the limit */
  async next(since: number, limitMs: number, but?: Pod): Promise<Sample | undefined> {
    const limit = performance.now() + limitMs;
    while (performance.now() < limit) {
      const sample = this.samples.find(({ pod, from, leads }) => leads && from >= since && pod !== but?.name);
      if (sample !== undefined) return sample;
      await delay(LOOK_AGAIN_MS);
    }
    return undefined;
  }

  async #ask({ name, base }: Pod): Promise<void> {
    while (!this.#over) {
      const from = performance.now();
      const answer = await call('GET', `${base}/api/v1/cluster/status`, undefined, { limitMs: ANSWER_MS }).catch(
        () => undefined,
      );
      if (answer !== undefined)
        this.samples.push({ pod: name, from, to: performance.now(), leads: answer['isLeader'] === true });
      await delay(LOOK_AGAIN_MS);
    }
  }
}

const epochOf = (epochs: readonly Epoch[], app: AppName): number => epochs.find((one) => one.app === app)?.epoch ?? 0;

interface Lost {
  /** When the leader was lost. */
  readonly at: number;
  /** Brings everything back. */
  readonly mend: () => Promise<void>;
}

const lose = async (stage: PodStage, leader: Pod, loss: Loss): Promise<Lost> => {
  const at = performance.now();
  const { process, name } = leader;
  switch (loss) {
    case 'ends':
      return { at, mend: () => process.stop().then(() => process.start()) };
    case 'is killed':
      process.kill();
      return { at, mend: () => process.ended().then(() => process.start()) };
    case 'stands still':
      process.freeze();
      return {
        at,
        mend: async () => {
          await delay(Math.max(0, STANDS_MS - (performance.now() - at)));
          process.continue();
        },
      };
    case 'Redis is away':
      if (stage.redis === undefined) throw new Error(`${name}: there is no Redis`);
      await stage.redis.cut();
      return { at, mend: () => (stage.redis as NonNullable<typeof stage.redis>).open() };
  }
};

export const leaderRound = async (stage: PodStage, seed: number): Promise<PodRound> => {
  const chance = new Chance(seed);
  const app = chance.pick<AppName>(['server', 'client']);
  const loss = chance.weighted<Loss>([
    [3, 'is killed'],
    [3, 'ends'],
    [3, 'stands still'],
    [stage.redis === undefined ? 0 : 1, 'Redis is away'],
  ]);
  const watch = new Watch(stage.of(app));
  const findings: string[] = [];
  let ms: number | undefined;
  try {
    const first = await watch.next(0, ELECTED_MS);
    const leader = watch.leader;
    if (first === undefined || leader === undefined) throw new Error(`nobody leads the pods of the ${app} app`);
    await delay(chance.between(0, 3000));
    const epochBefore = epochOf(await stage.epochs(), app);
    const { at, mend } = await lose(stage, leader, loss);
    let since = at;
    if (loss === 'Redis is away') {
      await delay(GIVEN_UP_MS);
      const from = performance.now();
      const still = await watch.next(from, AWAY_MS - GIVEN_UP_MS);
      if (still !== undefined) findings.push(`TWO: ${still.pod} leads although Redis is away`);
      since = performance.now();
      await mend();
    }
    // A process that ends does so while the next one is awaited.
    const back = loss === 'ends' ? mend() : undefined;
    back?.catch(() => undefined);
    const next = await watch.next(since, ELECTED_MS, loss === 'Redis is away' ? undefined : leader);
    ms = next === undefined ? undefined : Math.round(next.to - since);
    if (ms === undefined) findings.push(`NOBODY: no leader within ${ELECTED_MS / 1000} s`);
    else if (ms > LIMITS[loss]) findings.push(`LATE: the next leader after ${ms} ms, ${LIMITS[loss]} are the limit`);
    if (loss === 'ends') await back;
    else if (loss !== 'Redis is away') await mend();
    // Who was frozen, or is back, says what it thinks now.
    const resumed = performance.now();
    while (!watch.samples.some(({ pod, from }) => pod === leader.name && from >= resumed)) await delay(LOOK_AGAIN_MS);
    const epochAfter = epochOf(await stage.epochs(), app);
    if (epochAfter <= epochBefore) findings.push(`WRONG: the epoch went from ${epochBefore} to ${epochAfter}`);
  } finally {
    await watch.end();
  }
  findings.push(...overlaps(watch.samples).map((pods) => `TWO: ${pods} led at the same time`));
  return {
    words: `${app}: the leader ${loss === 'Redis is away' ? 'stays, Redis is away' : loss}; the next after ${String(ms)} ms`,
    findings,
    figures: { seed, app, loss, ms },
  };
};
