import { reasonOf, settledWithin } from '@pesit-node/ground';
import { isDatabaseUnavailable, LeaseClock } from '@pesit-node/service';
import type { AsLeader, EventStream, PeriodicHandle, PeriodicWork, SecretBox } from '@pesit-node/service';
import { delayAfter } from '@pesit-node/transfers';
import type { RetryPolicy } from '@pesit-node/transfers';

import type { Attempted, Notice } from './attempt.js';
import type { DeliveryStore, GivenUp, TakenDelivery } from './delivery-store.js';
import { HOOK_ATTEMPTED, HOOK_DISABLED } from './events.js';
import type { AttemptOutcome, GivenUpCause, HookWay } from './events.js';
import { findExecutable, KILL_GRACE_MS, runExecutable } from './executable.js';
import { executableOf, keyOfSecret } from './fields.js';
import { mayBeAsked } from './hosts.js';
import { openSecret } from './store.js';
import type { HookConfig } from './store.js';
import { postNotice } from './webhook.js';

export interface DelivererOptions {
  readonly store: DeliveryStore;
  readonly secrets: SecretBox;
  readonly config: HookConfig;
  readonly periodic: Pick<PeriodicWork, 'add'>;
  /** Makes what is to be done once. */
  readonly asLeader: AsLeader;
  readonly events: EventStream;
  /** Name of the pod. */
  readonly node: string;
  /** `server`, `client`. */
  readonly app: string;
  /** The record of a transfer as pages of the history have it. @param row as the table has it */
  readonly recordOf: (row: never) => unknown;
  /** PEM of the CAs of a truststore, of the default one for null; undefined: those of Node.js. */
  readonly casOf: (truststore: string | null) => Promise<readonly string[] | undefined>;
  /** Between two looks for what is due, milliseconds. Default 2000. */
  readonly lookMs?: number | undefined;
  /** Default: after 10 seconds, then three times as long each time, up to an hour. */
  readonly retry?: Omit<RetryPolicy, 'attempts'> | undefined;
  /** See `RunLimits`. */
  readonly killGraceMs?: number | undefined;
  /** How much longer than its attempt a delivery is taken for, milliseconds. Default 10,000. */
  readonly leaseMarginMs?: number | undefined;
}

const LOOK_MS = 2000;
const CLEAN_MS = 60_000;
const BATCH = 1000;
const SETTLE_AGAIN_MS = 1000;
const LEASE_MARGIN_MS = 10_000;
const RETRY: Omit<RetryPolicy, 'attempts'> = { initialDelay: 10_000, maxDelay: 3_600_000, multiplier: 3, jitter: 0.2 };

const wayOf = ({ target }: Pick<TakenDelivery, 'target'>): HookWay =>
  executableOf(target) === undefined ? 'webhook' : 'executable';

interface Running {
  readonly hook: string;
  readonly ended: Promise<void>;
}

/**
 * Delivers what outcomes have ordered (`tables.ts`): at least once each.
 *
 * Any pod takes what is due, and has it for as long as one attempt may take: nobody renews that, because each attempt is ended in
 * time. A pod that dies in between is followed by another when that time is over, with the next number of the attempt. How an attempt ended is written
 * under its number. Attempts that failed are followed by others, until `hooks.give-up-after`.
 */
export class HookDeliverer {
  readonly #options: DelivererOptions;
  readonly #running = new Set<Running>();
  readonly #stopped = new AbortController();
  #look: PeriodicHandle | undefined;
  #cleaning: PeriodicHandle | undefined;
  #isStopping = false;
  /** As the last look found it. */
  #isWanted = false;

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  /** To be called when the tables are there; may be called again. */
  start(): void {
    const { periodic, lookMs = LOOK_MS } = this.#options;
    if (this.#isStopping) return;
    this.#look ??= periodic.add({
      name: 'delivery of hooks',
      intervalMs: lookMs,
      jitter: 0.1,
      run: () => this.#takeDue(),
    });
    this.#cleaning ??= periodic.add({
      name: 'removal of old deliveries of hooks',
      intervalMs: CLEAN_MS,
      jitter: 0.1,
      runsOn: 'leader',
      run: (signal) => this.clean(signal),
    });
  }

  /** A transfer is over: costs nothing where no hook is defined. */
  wake(): void {
    if (this.#isWanted) void this.#look?.runNow();
  }

  /** A hook was changed. */
  changed(): void {
    void this.#look?.runNow();
  }

  /** Takes no more; what runs has `drainMs`, and is then ended: another pod tries it again. */
  async stop(drainMs: number): Promise<void> {
    this.#isStopping = true;
    await this.#cleaning?.remove();
    await this.#look?.remove();
    const all = Promise.all([...this.#running].map(({ ended }) => ended));
    await settledWithin(all, drainMs);
    this.#stopped.abort();
    await settledWithin(all, (this.#options.killGraceMs ?? KILL_GRACE_MS) + SETTLE_AGAIN_MS);
  }

  /** Gives up what nobody will try, and removes what is old. For the leader. */
  async clean(signal?: AbortSignal): Promise<void> {
    const { store, config, asLeader } = this.#options;
    const terms = { ...this.#ways(), most: BATCH, giveUpHours: config['hooks.give-up-after'] };
    for (let more = true; more && signal?.aborted !== true;) {
      const given = await store.giveUp(asLeader, terms);
      this.#tellGivenUp(given, 'not_tried');
      more = given.length === BATCH;
    }
    for (let gone = BATCH; gone === BATCH && signal?.aborted !== true;)
      gone = await store.prune(asLeader, config['hooks.retention-days'], BATCH);
    await this.#bound(signal);
  }

  /** Bounds the deliveries that wait for receivers which are away, and those that are over, by number. */
  async #bound(signal: AbortSignal | undefined): Promise<void> {
    const { store, config, asLeader } = this.#options;
    const kept = config['hooks.max-deliveries'];
    for (let { waiting } = await store.excess(kept); waiting > 0 && signal?.aborted !== true;) {
      const given = await store.giveUpOldest(asLeader, Math.min(waiting, BATCH));
      this.#tellGivenUp(given, 'too_many');
      waiting = given.length === 0 ? 0 : waiting - given.length;
    }
    for (let { over } = await store.excess(kept); over > 0 && signal?.aborted !== true;) {
      const gone = await store.pruneOldest(asLeader, Math.min(over, BATCH));
      over = gone === 0 ? 0 : over - gone;
    }
  }

  #tellGivenUp(given: readonly GivenUp[], cause: GivenUpCause): void {
    for (const { id, hook_id: hook, event, transfer, attempts: attempt, error: reason } of given) {
      const about = { hook, by: undefined, delivery: id, transfer, event, attempt };
      this.#options.events.publish(HOOK_ATTEMPTED, { ...about, outcome: 'given up', cause, reason });
    }
  }

  #ways() {
    const { config } = this.#options;
    return { webhooks: config['hooks.webhooks'], executables: config['hooks.directory'] !== '' };
  }

  async #takeDue(): Promise<void> {
    const { store, config, node, leaseMarginMs = LEASE_MARGIN_MS, killGraceMs = KILL_GRACE_MS } = this.#options;
    const ways = this.#ways();
    // Most nodes ask the database nothing.
    this.#isWanted = (ways.webhooks || ways.executables) && (await store.isWanted());
    const most = config['hooks.concurrency'] - this.#running.size;
    if (!this.#isWanted || most <= 0) return;
    const running: Record<string, number> = {};
    for (const { hook } of this.#running) running[hook] = (running[hook] ?? 0) + 1;
    const leases = {
      webhookLeaseMs: this.#timeoutMs('webhook') + leaseMarginMs,
      executableLeaseMs: this.#timeoutMs('executable') + killGraceMs + leaseMarginMs,
    };
    const since = performance.now();
    const each = config['hooks.concurrency-per-hook'];
    const taken = await store.take({ node, ...ways, most, each, running, ...leases });
    for (const one of taken) {
      const leaseMs = wayOf(one) === 'executable' ? leases.executableLeaseMs : leases.webhookLeaseMs;
      const place: Running = { hook: one.hook_id, ended: this.#deliver(one, leaseMs, since) };
      this.#running.add(place);
      void place.ended.then(() => {
        this.#running.delete(place);
        this.wake();
      });
    }
  }

  #timeoutMs(way: HookWay): number {
    return this.#options.config[`hooks.${way}-timeout`] * 1000;
  }

  /** Never rejects. */
  async #deliver(one: TakenDelivery, leaseMs: number, since: number): Promise<void> {
    const late = new AbortController();
    const { leaseMarginMs = LEASE_MARGIN_MS } = this.#options;
    const lease = new LeaseClock({ leaseMs, margin: leaseMarginMs / 2 / leaseMs, over: () => late.abort() });
    if (!lease.granted(since)) {
      this.#tell(one, 'interrupted', 'this process stood still when it had taken the delivery');
      return;
    }
    const how = await this.#attempt(one, AbortSignal.any([this.#stopped.signal, late.signal])).catch(
      (error: unknown): Attempted => ({ outcome: 'failed', reason: reasonOf(error) }),
    );
    await this.#settle(one, how, lease);
    lease.end();
  }

  async #attempt(one: TakenDelivery, stopped: AbortSignal): Promise<Attempted> {
    const { config, secrets, casOf, killGraceMs } = this.#options;
    const { target: url, secret } = one;
    const executable = executableOf(url);
    const notice: Notice = { id: one.id, attempt: one.attempts, body: await this.#bodyOf(one) };
    if (executable !== undefined) {
      const path = await findExecutable(config['hooks.directory'], executable);
      return runExecutable(path, notice, { timeoutMs: this.#timeoutMs('executable'), killGraceMs }, stopped);
    }
    if (secret === null) throw new Error('the hook has no secret: give it one');
    const refused = mayBeAsked(url, config);
    if (refused !== undefined) throw new Error(`the target of the hook may not be asked: ${refused}`);
    const key = keyOfSecret(openSecret(secrets, one.hook_id, secret));
    if (key === undefined) throw new Error('the secret of the hook is none: give it another');
    const cas = await casOf(one.truststore_name);
    return postNotice({ url, key, cas }, notice, this.#timeoutMs('webhook'), stopped);
  }

  /** The same for each attempt: a receiver may compare them. */
  async #bodyOf({ id, hook_id: hook, event: type, created_at: created }: TakenDelivery): Promise<string> {
    const { store, app, recordOf } = this.#options;
    const row = await store.recordOf(id);
    const data = row === undefined ? null : recordOf(row as never);
    return JSON.stringify({ id, type, timestamp: created.toISOString(), app, hook, data });
  }

  async #settle(one: TakenDelivery, how: Attempted, lease: LeaseClock): Promise<void> {
    const { store, config, retry = RETRY, events } = this.#options;
    const delay = how.outcome === 'interrupted' ? 0 : delayAfter(one.attempts, { ...retry, attempts: Infinity });
    const delayMs = Math.max(delay, how.outcome === 'failed' ? (how.retryAfterMs ?? 0) : 0);
    const terms = { delayMs: Math.round(delayMs), giveUpHours: config['hooks.give-up-after'] };
    for (;;) {
      try {
        const state = await store.settle(one, how, terms);
        if (how.outcome === 'failed' && how.gone === true && (await store.disable(one, how.reason)))
          events.publish(HOOK_DISABLED, { hook: one.hook_id, reason: how.reason });
        const outcome = state === undefined ? 'interrupted' : state === 'GIVEN_UP' ? 'given up' : how.outcome;
        this.#tell(one, outcome, state === undefined ? 'another pod has it' : 'reason' in how ? how.reason : undefined);
        return;
      } catch (error) {
        // Nobody knows how it ended when the lease is over: it is tried again.
        if (!isDatabaseUnavailable(error) || !lease.isHeld || this.#isStopping) {
          this.#tell(one, 'interrupted', `its end could not be written: ${reasonOf(error)}`);
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, SETTLE_AGAIN_MS).unref());
      }
    }
  }

  #tell(one: TakenDelivery, outcome: AttemptOutcome, reason: string | undefined): void {
    const { id: delivery, hook_id: hook, transfer, event, attempts: attempt } = one;
    const about = { hook, by: wayOf(one), delivery, transfer, event, attempt };
    const cause = outcome === 'given up' ? ({ cause: 'failed' } as const) : {};
    this.#options.events.publish(HOOK_ATTEMPTED, { ...about, outcome, ...cause, reason });
  }
}
