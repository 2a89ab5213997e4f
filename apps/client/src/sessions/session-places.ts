import { EventEmitter } from 'node:events';

import type { ClusterEvents } from '@pesit-node/cluster';
import { PesitError } from '@pesit-node/protocol';
import { isDatabaseUnavailable, LeaseClock, renewTogether } from '@pesit-node/service';
import type { Logger, PeriodicTask } from '@pesit-node/service';

import type { PlaceStore } from '../remote-servers/place-store.js';
import { databaseAway } from '../exchange/restart-keeper.js';

/** A pod that does not renew its places for so long is dead to the others. */
const LEASE_MS = 30_000;
/** Between two looks of a pod that has places: without Redis it hears of a wish by them. */
const LOOK_MS = 2000;
/** Between two tries of who waits for a place, when nobody tells of one. */
const TRY_MS = 500;

/** A server whose sessions are counted. */
export interface LimitedServer {
  readonly serverId: number;
  readonly serverName: string;
  readonly limit: number;
}

export interface SessionPlacesEvents {
  /** Another pod, or another session of this one, wants a place with this server. */
  wanted: [serverId: number];
  /** The session has lost its place. */
  lost: [session: string];
}

export interface SessionPlacesOptions {
  readonly store: PlaceStore;
  readonly events: ClusterEvents;
  readonly logger: Logger;
  /** Default 30,000. */
  readonly leaseMs?: number | undefined;
  /** Default 2000. */
  readonly lookMs?: number | undefined;
}

/**
 * The places of this process with the remote servers that limit their sessions (`maxConnections`), counted over all pods in the
 * database. A place belongs to a session from before it is opened until the partner knows that it is over, so that a session
 * which serves one transfer after the other costs no statement; a server without limit costs none at all.
 *
 * Who finds no place writes a wish down and tells the other pods (topic `sessions`, a hint: the database is the truth): those
 * with an idle session close it, and tell in turn. Without Redis they see the wish when they renew their leases, every two
 * seconds. The places of a pod that died run out; one that cannot renew its own gives them up before (`LeaseClock`).
 */
export class SessionPlaces extends EventEmitter<SessionPlacesEvents> {
  readonly #options: SessionPlacesOptions;
  readonly #leaseMs: number;
  /** Session → server. */
  readonly #held = new Map<string, number>();
  readonly #clocks = new Map<string, LeaseClock>();
  /** Servers for which the last look has found a wish that nothing was done for. */
  readonly #wishes = new Set<number>();
  readonly #notices = new EventEmitter<{ notice: [] }>();
  #noticed = 0;
  #unsubscribe: (() => void) | undefined;

  constructor(options: SessionPlacesOptions) {
    super();
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
    // As many as there are transfers that wait.
    this.#notices.setMaxListeners(0);
  }

  /** For the runner of periodic work. */
  get task(): PeriodicTask {
    const { lookMs: intervalMs = LOOK_MS } = this.#options;
    return { name: 'places of sessions', intervalMs, jitter: 0.1, first: 'after an interval', run: () => this.look() };
  }

  /** To be called when the database is ready; may be called again. @throws errors of the database: call it again */
  async start(): Promise<void> {
    if (this.#unsubscribe !== undefined) return;
    await this.#options.store.forgetEarlier();
    this.#unsubscribe ??= this.#options.events.subscribe('sessions', async () => {
      this.#notice();
      await this.look().catch(() => undefined);
    });
  }

  stop(): void {
    this.#unsubscribe?.();
  }

  /**
   * A place for a session that is about to be opened; it waits while there is none.
   * @param waitMs milliseconds
   * @param makeRoom ends an idle session of this process with the server; false when there is none
   * @throws PesitError 3-309 when none came free in time, 2-201 while the database is away; the reason of `signal`
   */
  async take(
    server: LimitedServer,
    session: string,
    waitMs: number,
    makeRoom: () => Promise<boolean>,
    signal?: AbortSignal,
  ): Promise<void> {
    const end = performance.now() + waitMs;
    let isTold = false;
    for (;;) {
      signal?.throwIfAborted();
      const seen = this.#noticed;
      if (await this.#take(server, session)) return;
      if (await makeRoom()) continue;
      if (!isTold) {
        isTold = true;
        const { serverName, limit } = server;
        this.#options.logger.info(
          { server: serverName, maxConnections: limit },
          'remote server has as many sessions as maxConnections allows: waiting for one to end',
        );
        this.#options.events.tell('sessions');
      }
      const left = end - performance.now();
      if (left <= 0) throw noPlace(server, waitMs);
      if (this.#noticed === seen) await this.#nextNotice(Math.min(TRY_MS, left), signal);
    }
  }

  /** The session is over, or was never opened. Never rejects: a place that cannot be given back runs out. */
  async give(session: string): Promise<void> {
    const serverId = this.#held.get(session);
    if (serverId === undefined) return;
    this.#forget(session);
    // The session that wished has a place now; the next look sees those that still wish.
    this.#wishes.delete(serverId);
    const { store, events, logger } = this.#options;
    try {
      if (await store.give(session)) events.tell('sessions');
    } catch (error) {
      logger.debug(
        { sessionId: session, reason: (error as Error).message },
        'could not give back the place of a session: it expires by itself',
      );
    }
    this.#notice();
  }

  /** Whether the session has its place still. */
  holds(session: string): boolean {
    return this.#held.has(session);
  }

  /** Whether a place with the server is wanted, as far as is known: who asks gives one up, so the next one is told no. */
  heedWish(serverId: number): boolean {
    return this.#wishes.delete(serverId);
  }

  /** Renews the places that are held, and looks which are wanted. @throws errors of the database */
  async look(): Promise<void> {
    if (this.#clocks.size === 0) return;
    const kept = await renewTogether(this.#clocks, async (sessions) => {
      const places = await this.#options.store.renew(sessions, this.#leaseMs / 1000);
      return new Map(places.map((place) => [place.session, place]));
    });
    this.#wishes.clear();
    for (const { serverId, wanted } of kept.values()) if (wanted) this.#wishes.add(serverId);
    for (const serverId of [...this.#wishes]) this.emit('wanted', serverId);
  }

  async #take({ serverId, limit }: LimitedServer, session: string): Promise<boolean> {
    const since = performance.now();
    const leaseSeconds = this.#leaseMs / 1000;
    const isTaken = await this.#options.store
      .take({ session, serverId, limit, leaseSeconds })
      .catch((cause: unknown) => {
        throw isDatabaseUnavailable(cause)
          ? databaseAway('this node cannot tell whether it may open one more session', cause)
          : cause;
      });
    return isTaken && this.#hold(session, serverId, since);
  }

  /** @returns false when the database took so long that the place may be another's by now */
  #hold(session: string, serverId: number, since: number): boolean {
    const over = (): void => {
      this.#forget(session);
      this.emit('lost', session);
    };
    const clock = new LeaseClock({ leaseMs: this.#leaseMs, over });
    if (!clock.granted(since)) return false;
    this.#held.set(session, serverId);
    this.#clocks.set(session, clock);
    return true;
  }

  #forget(session: string): void {
    this.#held.delete(session);
    this.#clocks.get(session)?.end();
    this.#clocks.delete(session);
  }

  #notice(): void {
    this.#noticed++;
    this.#notices.emit('notice');
  }

  #nextNotice(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#notices.off('notice', done);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#notices.on('notice', done);
      signal?.addEventListener('abort', done, { once: true });
    });
  }
}

const noPlace = ({ serverName, limit }: LimitedServer, waitMs: number): PesitError =>
  new PesitError(
    `remote server ${JSON.stringify(serverName)} may have ${limit} session${limit === 1 ? '' : 's'} at a time (maxConnections), of all pods together, and none came free within ${Math.round(waitMs / 100) / 10} s`,
    { fault: 'local', diagnostic: '3-309', condition: 'no place', peerText: 'too many connections' },
  );
