/**
 * Pods, a Redis and a database in a time of their own, for the model of the leader: what is sent takes a while, may be lost on
 * either way, pods stand still, clocks jump. The pods run the real `TimedLeader` over the real `redisLease`.
 */
import { silentLogger } from '@pesit-node/service/testing';

import type { Fence } from '../../src/leader/fence.js';
import type { LeaseKey } from '../../src/leader/redis-leader.js';
import { redisLease } from '../../src/leader/redis-leader.js';
import { TimedLeader } from '../../src/leader/timed-leader.js';
import { LocalBus } from '../../src/local-events.js';

export type Target = 'redis' | 'database';

/** Times are milliseconds since the beginning, durations milliseconds. */
export type Fault =
  | {
      readonly kind: 'stand still';
      readonly at: number;
      readonly pod: number;
      readonly ms: number;
      readonly clock: boolean;
    }
  | { readonly kind: 'cut'; readonly at: number; readonly pod: number; readonly target: Target; readonly ms: number }
  | {
      readonly kind: 'slow';
      readonly at: number;
      readonly pod: number;
      readonly target: Target;
      readonly ms: number;
      readonly by: number;
    }
  | { readonly kind: 'clock of Redis jumps'; readonly at: number; readonly by: number }
  | { readonly kind: 'Redis forgets'; readonly at: number };

export interface Write {
  readonly at: number;
  readonly pod: number;
  readonly epoch: number;
}

const PODS = 3;
const TTL_MS = 10_000;
const LOOK_MS = 1000;
const WRITE_MS = 700;
/** A command is given up after this; it may be done all the same. */
const ANSWER_MS = { redis: 1000, database: 30_000 };

class Pod {
  readonly #world: SimulatedCluster;
  readonly index: number;
  readonly lease: TimedLeader;
  standsUntil = 0;
  /** How long its monotonic clock has not gone. */
  lostMs = 0;
  /** What it would do, and hears, while it stands still. */
  readonly #missed: (() => void)[] = [];

  constructor(world: SimulatedCluster, index: number) {
    this.#world = world;
    this.index = index;
    const backend = redisLease(world.keyOf(this), world.fenceOf(this), String(index));
    this.lease = new TimedLeader({
      ...{ backend, ttlMs: TTL_MS, events: new LocalBus().join(), logger: silentLogger },
      periodic: { add: () => ({ runNow: () => Promise.resolve(), remove: () => Promise.resolve() }) },
      monotonic: () => world.now - this.lostMs,
      alarm: (ms, ring) => world.after(ms, () => this.act(ring)),
    });
  }

  act(work: () => void): void {
    if (this.#world.now < this.standsUntil) this.#missed.push(work);
    else work();
  }

  goOn(): void {
    if (this.#world.now >= this.standsUntil) for (const work of this.#missed.splice(0)) work();
  }
}

export class SimulatedCluster {
  now = 0;
  readonly pods: readonly Pod[];
  readonly accepted: Write[] = [];
  readonly refused: Write[] = [];
  /** The most pods that took themselves for the leader at one time. */
  mostLeaders = 0;
  readonly #fenceHolds: boolean;
  readonly #random: () => number;
  readonly #faults: readonly Fault[];
  readonly #queue: { readonly at: number; readonly seq: number; readonly run: () => void }[] = [];
  #seq = 0;
  #redisAhead = 0;
  #key: { readonly holder: string; readonly until: number } | undefined;
  #row: { readonly epoch: number; readonly pod: number } = { epoch: 0, pod: -1 };
  /** What one pod sends to one place arrives in order. */
  readonly #arrived = new Map<string, number>();

  /** @param random 0 to 1. @param fenceHolds false: the database takes what every pod writes. */
  constructor(faults: readonly Fault[], random: () => number, fenceHolds = true) {
    this.#faults = faults;
    this.#random = random;
    this.#fenceHolds = fenceHolds;
    this.pods = Array.from({ length: PODS }, (_, index) => new Pod(this, index));
    for (const pod of this.pods) {
      this.#every(LOOK_MS, () => void pod.lease.refresh(), pod);
      this.#every(WRITE_MS, () => this.#write(pod), pod);
    }
    for (const fault of faults) this.after(fault.at, () => this.#begin(fault));
  }

  /** Time goes by until `end`. */
  async run(end: number): Promise<void> {
    for (;;) {
      this.#queue.sort((one, two) => one.at - two.at || one.seq - two.seq);
      const next = this.#queue[0];
      if (next === undefined || next.at > end) break;
      this.#queue.shift();
      this.now = next.at;
      next.run();
      await new Promise(setImmediate);
      const leaders = this.pods.filter(({ lease }) => lease.isLeader).length;
      this.mostLeaders = Math.max(this.mostLeaders, leaders);
    }
    this.now = end;
  }

  after(ms: number, run: () => void): () => void {
    const entry = { at: this.now + ms, seq: (this.#seq += 1), run };
    this.#queue.push(entry);
    return () => {
      const index = this.#queue.indexOf(entry);
      if (index >= 0) this.#queue.splice(index, 1);
    };
  }

  keyOf(pod: Pod): LeaseKey {
    const held = (): string | undefined =>
      this.#key !== undefined && this.#key.until > this.#redisTime ? this.#key.holder : undefined;
    const hold = (holder: string): true => {
      this.#key = { holder, until: this.#redisTime + TTL_MS };
      return true;
    };
    const ask = <T>(work: () => T): Promise<T> => this.#ask(pod, 'redis', work);
    return {
      read: () => ask(held),
      take: (me) => ask(() => (held() ?? me) === me && hold(me)),
      renew: (me) => ask(() => held() === me && hold(me)),
      free: (me) =>
        ask(() => {
          if (held() === me) this.#key = undefined;
        }),
    };
  }

  fenceOf(pod: Pod): Fence {
    return {
      newest: () => this.#ask(pod, 'database', () => this.#row.epoch),
      raise: (from) =>
        this.#ask(pod, 'database', () => {
          if (this.#row.epoch !== from) return undefined;
          this.#row = { epoch: from + 1, pod: pod.index };
          return this.#row.epoch;
        }),
    };
  }

  get #redisTime(): number {
    return this.now + this.#redisAhead;
  }

  #every(ms: number, work: () => void, pod: Pod): void {
    const again = (): void => {
      // As timers do: one that is late does not ring for each time that it missed.
      if (this.now >= pod.standsUntil) work();
      this.after(ms, again);
    };
    this.after(this.#random() * ms, again);
  }

  #begin(fault: Fault): void {
    if (fault.kind === 'clock of Redis jumps') this.#redisAhead += fault.by;
    if (fault.kind === 'Redis forgets') this.#key = undefined;
    if (fault.kind !== 'stand still') return;
    const pod = this.pods[fault.pod % PODS]!;
    if (this.now < pod.standsUntil) return;
    pod.standsUntil = this.now + fault.ms;
    this.after(fault.ms, () => {
      if (!fault.clock) pod.lostMs += fault.ms;
      pod.goOn();
    });
  }

  #faultsNow(pod: Pod, target: Target): readonly Extract<Fault, { readonly target: Target }>[] {
    return this.#faults
      .filter((fault) => 'target' in fault)
      .filter((fault) => fault.pod % PODS === pod.index && fault.target === target)
      .filter(({ at, ms }) => at <= this.now && this.now < at + ms);
  }

  #isCut(pod: Pod, target: Target): boolean {
    return this.#faultsNow(pod, target).some(({ kind }) => kind === 'cut');
  }

  #latency(pod: Pod, target: Target): number {
    const slow = this.#faultsNow(pod, target).map((fault) => (fault.kind === 'slow' ? fault.by : 0));
    return 1 + this.#random() * (20 + Math.max(0, ...slow));
  }

  #ask<T>(pod: Pod, target: Target, work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => pod.act(() => reject(new Error(`${target} does not answer`)));
      this.after(ANSWER_MS[target], giveUp);
      if (this.#isCut(pod, target)) return;
      const way = `${String(pod.index)} ${target}`;
      const arrives = Math.max(this.now + this.#latency(pod, target), this.#arrived.get(way) ?? 0);
      this.#arrived.set(way, arrives);
      this.after(arrives - this.now, () => {
        const answer = work();
        if (this.#isCut(pod, target)) return;
        this.after(this.#latency(pod, target), () => pod.act(() => resolve(answer)));
      });
    });
  }

  /** What a leader does: it looks whether it leads, and what it writes then may arrive much later. */
  #write(pod: Pod): void {
    const { epoch } = pod.lease;
    if (epoch === undefined) return;
    const send = (): void => {
      this.#ask(pod, 'database', () => {
        const holds = this.#row.epoch === epoch && this.#row.pod === pod.index;
        const list = holds || !this.#fenceHolds ? this.accepted : this.refused;
        list.push({ at: this.now, pod: pod.index, epoch });
      }).catch(() => undefined);
    };
    this.after(this.#random() * 50, () => pod.act(send));
  }
}
