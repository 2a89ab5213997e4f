import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

import type { Logger, PeriodicHandle, PeriodicWork } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { ClusterEvents } from './events.js';
import type { LivingPod } from './members.js';

type Json = object | string | number | boolean | null;
type Answer = (subject: string) => Json | Promise<Json>;

export interface PodRequestsOptions {
  readonly knex: Knex;
  /** UUID of this process. */
  readonly instance: string;
  /** The other pods of this app that live, as far as is known. */
  readonly others: () => readonly LivingPod[];
  /** Nobody else can work on this database. */
  readonly isAlone: boolean;
  readonly events: Pick<ClusterEvents, 'tell' | 'subscribe'>;
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: Logger;
  /** Between two looks whether this pod is asked something, milliseconds. Default 1000. */
  readonly lookMs?: number;
}

export interface PodAnswer<T> {
  readonly pod: LivingPod;
  /** Undefined: it has not answered in time. */
  readonly answer: T | undefined;
}

const LOOK_MS = 1000;
/** Between two looks whether all have answered. */
const POLL_MS = 100;

const OPEN = `select id, kind, subject from pesit_common.pod_requests where instance = :instance and answered_at is null order by asked_at limit 100`;
const ANSWER = `update pesit_common.pod_requests set answer = cast(:answer as jsonb), answered_at = now() where id = :id`;
const ASK = `
  with forgotten as (delete from pesit_common.pod_requests where asked_at < now() - interval '1 minute')
  insert into pesit_common.pod_requests (id, instance, kind, subject)
  select * from unnest(cast(:ids as uuid[]), cast(:instances as uuid[]), cast(:kinds as text[]), cast(:subjects as text[]))`;
const ANSWERS = `select id, answer from pesit_common.pod_requests where id = any (cast(:ids as uuid[])) and answered_at is not null`;
const FORGET = `delete from pesit_common.pod_requests where id = any (cast(:ids as uuid[]))`;

/**
 * Questions of a pod to the others of its app, for what only the process itself knows or can do: its sessions. A question is a
 * row for each pod, which answers in it; Redis, where there is one, makes both sides look at once, and without it each
 * looks once a second. Answers are no promise: a pod that dies leaves its question open, and whoever asked says so.
 */
export class PodRequests {
  readonly #options: PodRequestsOptions;
  readonly #answers = new Map<string, Answer>();
  /** Questions that are being answered. */
  readonly #busy = new Set<string>();
  #looks: PeriodicHandle | undefined;
  #unsubscribe: (() => void) | undefined;

  constructor(options: PodRequestsOptions) {
    this.#options = options;
  }

  /** Answers questions of this kind from `start` on. */
  answer(kind: string, answer: Answer): void {
    this.#answers.set(kind, answer);
  }

  start(): void {
    const { isAlone, events, periodic, lookMs: intervalMs = LOOK_MS } = this.#options;
    if (isAlone || this.#looks !== undefined) return;
    const looks = periodic.add({ name: 'questions of other pods', intervalMs, jitter: 0.1, run: () => this.#look() });
    this.#looks = looks;
    this.#unsubscribe = events.subscribe('requests', () => looks.runNow());
  }

  async stop(): Promise<void> {
    this.#unsubscribe?.();
    await this.#looks?.remove();
  }

  /**
   * Asks every other pod, and waits for the answers so long, milliseconds. No statement where there is none.
   * @throws when the database fails
   */
  async ask<T extends Json>(kind: string, subject: string, waitMs: number): Promise<readonly PodAnswer<T>[]> {
    const { knex, events, others, isAlone } = this.#options;
    const asked = isAlone ? [] : others().map((pod) => ({ pod, id: randomUUID() }));
    if (asked.length === 0) return [];
    const ids = asked.map(({ id }) => id);
    await knex.raw(ASK, {
      ids,
      instances: asked.map(({ pod }) => pod.instance),
      kinds: ids.map(() => kind),
      subjects: ids.map(() => subject),
    });
    events.tell('requests');
    const limit = performance.now() + waitMs;
    for (;;) {
      const { rows } = await knex.raw<{ rows: readonly { id: string; answer: T }[] }>(ANSWERS, { ids });
      if (rows.length === asked.length || performance.now() > limit) {
        await knex.raw(FORGET, { ids });
        const answers = new Map(rows.map(({ id, answer }) => [id, answer]));
        return asked.map(({ pod, id }) => ({ pod, answer: answers.get(id) }));
      }
      await delay(POLL_MS);
    }
  }

  async #look(): Promise<void> {
    const { knex, instance } = this.#options;
    const { rows } = await knex.raw<{ rows: readonly { id: string; kind: string; subject: string }[] }>(OPEN, {
      instance,
    });
    // Not waited for: an answer may take seconds, and others are asked meanwhile.
    for (const row of rows) if (!this.#busy.has(row.id)) void this.#answer(row);
  }

  async #answer({ id, kind, subject }: { readonly id: string; readonly kind: string; readonly subject: string }) {
    const { knex, logger } = this.#options;
    this.#busy.add(id);
    try {
      // An older or newer version may ask what this one does not know: null, as one that has nothing to say.
      const answer = (await this.#answers.get(kind)?.(subject)) ?? null;
      await knex.raw(ANSWER, { id, answer: JSON.stringify(answer) });
    } catch (error) {
      logger.warn({ err: error, kind, subject }, 'could not answer a question of another pod');
    } finally {
      this.#busy.delete(id);
    }
  }
}
