import type { ClusterEvents } from '@pesit-node/cluster';
import { hotStatement } from '@pesit-node/service';
import type { Logger, PeriodicTask } from '@pesit-node/service';
import type { Knex } from 'knex';

/** A listener or a partner, with places for sessions; a session needs one of each. */
export interface PlaceOwner {
  readonly kind: 'listener' | 'partner';
  readonly id: string;
  /** Sessions at a time, of all pods together. */
  readonly limit: number;
}

export interface SessionPlacesOptions {
  readonly knex: Knex;
  /** UUID of this process, as the cluster knows it. */
  readonly instance: string;
  /** UUIDs of the pods that live, as far as is known. */
  readonly living: () => readonly string[];
  /** Nobody else can work on this database: places are counted here alone. */
  readonly exclusive: boolean;
  readonly events: Pick<ClusterEvents, 'tell'>;
  readonly logger: Logger;
  /** Between two looks at what other pods want, milliseconds. Default 5000. */
  readonly lookMs?: number | undefined;
}

/** A pod that does not renew its membership for so long is dead, seconds: as `DatabaseMembers` has it. */
const LEASE_SECONDS = 10;
const LOOK_MS = 5000;
/** How long a pod keeps no spare places after another one was refused, milliseconds. */
const SCARCE_MS = 10_000;
const MOST_SPARE = 16;
/** How long places that nobody else wants are kept for the next sessions, milliseconds. */
const KEEP_MS = 1000;

/** Places that a pod keeps beyond those that it uses, so that most sessions cost no statement; none of a limit below 16. */
const spareOf = (limit: number): number => Math.min(MOST_SPARE, Math.floor(limit / 16));

interface Held {
  readonly owner: string;
  /** As it was asked for last. */
  limit: number;
  used: number;
  /** Sessions that ask for a place now. */
  asking: number;
  /** As many as the database has given this pod. */
  places: number;
  /** By `performance.now()`: until then nothing is spared. */
  scarceUntil: number;
}

const takePlaces = hotStatement<{ readonly owner: string; readonly places: number }>(
  'server_take_places',
  'select owner, places from take_places(:instance, cast(:living as uuid[]), make_interval(secs => :lease), cast(:asked as jsonb))',
);

const WANTED = `
  with gone as (
    delete from session_places s where s.instance <> :instance
      and not exists (select from pesit_common.cluster_pods p where p.instance = s.instance)
  )
  select distinct owner from session_places
  where instance <> :instance and refused_at > now() - make_interval(secs => :lease)`;

/**
 * Places for the sessions of listeners and partners, counted over all pods. A pod takes some at once and keeps a few that it does
 * not use, so that a session costs a statement only where the limit is small or near. The database never gives more than the limit; the
 * places of a pod that died are free when its lease is over.
 *
 * A pod that finds none tells the others (topic `sessions`, a hint; without Redis they look every five seconds), which give back
 * what they do not use, and keep no spare ones for a while.
 */
export class SessionPlaces {
  readonly #options: SessionPlacesOptions;
  readonly #held = new Map<string, Held>();
  #work: Promise<unknown> = Promise.resolve();
  #isReturning = false;
  #keeping: NodeJS.Timeout | undefined;

  constructor(options: SessionPlacesOptions) {
    this.#options = options;
  }

  /** For the runner of periodic work. */
  get task(): PeriodicTask {
    const { lookMs: intervalMs = LOOK_MS } = this.#options;
    return { name: 'places of sessions', intervalMs, jitter: 0.1, first: 'after an interval', run: () => this.look() };
  }

  /**
   * Takes a place of each, or none. No statement as long as this pod has places, else one.
   * @returns the first that has none left. @throws when the database fails
   */
  async take(...asked: readonly PlaceOwner[]): Promise<PlaceOwner | undefined> {
    const all = asked.map((one) => this.#of(one));
    for (const held of all) held.asking++;
    try {
      const isShortHere = all.some((held) => this.#isShort(held));
      const full = isShortHere && !this.#options.exclusive ? await this.#ask(all) : this.#seize(all);
      if (full < 0) return undefined;
      // A place of the other owner that was taken for it is not needed.
      this.#giveBackSoon();
      if (!this.#options.exclusive) this.#options.events.tell('sessions');
      return asked[full];
    } finally {
      for (const held of all) {
        held.asking--;
        this.#tidy(held);
      }
    }
  }

  /** The session is over. */
  give(...owners: readonly Pick<PlaceOwner, 'kind' | 'id'>[]): void {
    let isScarce = false;
    for (const { kind, id } of owners) {
      const held = this.#held.get(`${kind} ${id}`);
      if (held === undefined) continue;
      held.used--;
      isScarce ||= this.#spare(held) === 0;
      this.#tidy(held);
    }
    if (isScarce) this.#giveBackSoon();
    else this.#giveBackLater();
  }

  /** Gives back what others want and this pod does not use. @throws when the database fails */
  async look(): Promise<void> {
    const { knex, instance, exclusive } = this.#options;
    if (exclusive) return;
    const { rows } = await knex.raw<{ rows: { owner: string }[] }>(WANTED, { instance, lease: LEASE_SECONDS });
    for (const { owner } of rows) {
      const held = this.#held.get(owner);
      if (held !== undefined) held.scarceUntil = performance.now() + SCARCE_MS;
    }
    await this.#inTurn(() => this.#giveBack());
  }

  /** Gives back all: for the end of the process. Never rejects: they expire by themselves. */
  async close(): Promise<void> {
    const { knex, instance, exclusive, logger } = this.#options;
    clearTimeout(this.#keeping);
    if (exclusive) return;
    await this.#inTurn(async () => {
      await knex('session_places').where({ instance }).delete();
    }).catch((error: unknown) => {
      logger.debug({ reason: (error as Error).message }, 'could not give back the places of sessions: they expire');
    });
  }

  #of({ kind, id, limit }: PlaceOwner): Held {
    const owner = `${kind} ${id}`;
    const held = this.#held.get(owner) ?? { owner, limit, used: 0, asking: 0, places: 0, scarceUntil: 0 };
    held.limit = limit;
    this.#held.set(owner, held);
    return held;
  }

  #tidy(held: Held): void {
    if (held.used === 0 && held.places === 0 && held.asking === 0) this.#held.delete(held.owner);
  }

  #isShort({ used, places, limit }: Held): boolean {
    return used >= (this.#options.exclusive ? limit : Math.min(places, limit));
  }

  /** Takes what is there at once. @returns the index of the first that has none; nothing is taken then */
  #seize(all: readonly Held[]): number {
    const full = all.findIndex((held) => this.#isShort(held));
    if (full < 0) for (const held of all) held.used++;
    return full;
  }

  /** One statement of this pod at a time: what it holds is what the last one said. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#work.then(work);
    this.#work = turn.catch(() => undefined);
    return turn;
  }

  /** Asks the database for those that are short, in turn: another session's statement may have brought enough. */
  #ask(all: readonly Held[]): Promise<number> {
    return this.#inTurn(async () => {
      const short = all.filter((held) => this.#isShort(held));
      await this.#set(short.map((held) => [held, held.used + 1 + this.#spare(held), held.places]));
      return this.#seize(all);
    });
  }

  #giveBack(): Promise<void> {
    const spared = [...this.#held.values()].filter((held) => held.places > held.used + 2 * this.#spare(held));
    // Before the statement: a session that comes meanwhile must not take what is given back.
    for (const held of spared) held.places = held.used + this.#spare(held);
    return this.#set(spared.map((held) => [held, held.places, held.places]));
  }

  #giveBackSoon(): void {
    if (this.#options.exclusive || this.#isReturning) return;
    this.#isReturning = true;
    void this.#inTurn(() => {
      this.#isReturning = false;
      return this.#giveBack();
    }).catch((error: unknown) => {
      const reason = (error as Error).message;
      this.#options.logger.debug({ reason }, 'could not give back places of sessions: trying again with the next look');
    });
  }

  /** Many short sessions take the places of each other without a statement. */
  #giveBackLater(): void {
    if (this.#options.exclusive) return;
    this.#keeping ??= setTimeout(() => {
      this.#keeping = undefined;
      this.#giveBackSoon();
    }, KEEP_MS).unref();
  }

  #spare({ limit, scarceUntil }: Held): number {
    return performance.now() < scarceUntil ? 0 : spareOf(limit);
  }

  /** Asks for `want` places of each for this pod, which keeps `least` in any case; the database says how many it has then. */
  async #set(wanted: readonly (readonly [held: Held, want: number, least: number])[]): Promise<void> {
    if (wanted.length === 0) return;
    const { knex, instance, living } = this.#options;
    const asked = wanted.map(([{ owner, limit }, want, least]) => ({ owner, limit, wanted: want, used: least }));
    const values = { instance, living: [...living()], lease: LEASE_SECONDS, asked: JSON.stringify(asked) };
    const rows = await takePlaces(knex, values);
    for (const [held] of wanted) {
      held.places = rows.find(({ owner }) => owner === held.owner)?.places ?? held.places;
      this.#tidy(held);
    }
  }
}
