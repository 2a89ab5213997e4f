import { randomUUID } from 'node:crypto';

import { lookAtEach } from '@pesit-node/certificates';
import { securityFacts } from '@pesit-node/net';
import type { PesitRequester } from '@pesit-node/net';
import type { SingleArticleStyle } from '@pesit-node/protocol';
import type { EventStream } from '@pesit-node/service';
import {
  negotiatedOf,
  outdatesSession,
  SESSION_ENDED,
  SESSION_OPENED,
  SESSION_REFUSED,
  SESSION_TOLERATED,
  toPesitError,
} from '@pesit-node/transfers';
import type { ObservedSession } from '@pesit-node/transfers';

import {
  SERVER_NOT_REACHED,
  SERVER_REACHED,
  SERVER_SEEN,
  SESSION_GIVEN_BACK,
  SESSION_TAKEN,
} from '../exchange/events.js';
import { seenIn } from '../remote-servers/seen.js';
import type { ServerTraces } from '../traces/server-traces.js';
import type { SessionPlaces } from './session-places.js';
import type { SessionTarget } from './session-target.js';

/** A session while one transfer uses it. */
export interface TakenSession {
  readonly session: PesitRequester;
  /** For the log. */
  readonly sessionId: string;
  /** It has served before: the partner may have given it up since. */
  readonly reused: boolean;
  /** It is there, and the partner has not refused it: it can serve another transfer. */
  readonly usable: boolean;
  /** The error that the transfer failed with: the session may be of no use for another one. */
  failed(thrown: unknown): void;
  /** Gives it back: kept for the next transfer when it can serve one, closed otherwise. */
  release(): void;
}

interface Open {
  readonly session: PesitRequester;
  readonly sessionId: string;
  readonly observed: ObservedSession;
  readonly target: SessionTarget;
}

interface Idle extends Open {
  readonly timer: NodeJS.Timeout;
}

export interface SessionPoolOptions {
  /** Milliseconds that an idle session is kept; 0 = not at all. */
  readonly idleTimeout: number;
  readonly places: SessionPlaces;
  readonly traces: Pick<ServerTraces, 'open' | 'isCutOff'>;
  readonly events: EventStream;
}

/**
 * Sessions with remote servers. Who asks for one gets an idle one with the same identity and terms, else a new one; whether
 * a server may have one more is the queue's business, except that idle sessions make room for a new one, here or on another
 * pod (`SessionPlaces`).
 */
export class SessionPool {
  readonly #options: SessionPoolOptions;
  readonly #idle = new Map<string, Idle[]>();
  /** Sessions with each server, idle ones included. */
  readonly #sessions = new Map<number, number>();
  readonly #closing = new Set<Promise<void>>();
  /** Those that transfers use, and what keeps each from serving another one. */
  readonly #used = new Map<Open, () => void>();
  #stopped = false;

  constructor(options: SessionPoolOptions) {
    this.#options = options;
    options.places.on('wanted', (serverId) => void this.#giveUpIdle(serverId, true));
    options.places.on('lost', (sessionId) => this.#gone(sessionId));
  }

  /**
   * @param transfer id of the one that uses it
   * @param fresh open a new session even when one is idle
   * @throws PesitError as `PesitRequester.open`
   */
  async acquire(target: SessionTarget, transfer: string, signal: AbortSignal, fresh: boolean): Promise<TakenSession> {
    const idle = fresh ? undefined : this.#takeIdle(target.key);
    if (idle !== undefined) return this.#taken(idle, transfer, true);
    const sessionId = randomUUID();
    await this.reserve(target, sessionId, target.connectTimeout, signal);
    this.#count(target.serverId, 1);
    try {
      const open = await this.#open(target, sessionId, signal);
      const taken = this.#taken(open, transfer, false);
      // While it was being opened no look at the sessions saw it.
      this.#endRevoked(open).catch(() => undefined);
      return taken;
    } catch (error) {
      this.#count(target.serverId, -1);
      await this.giveBack(sessionId);
      throw error;
    }
  }

  /** Sessions that are open or being opened, idle ones included. */
  get open(): number {
    return [...this.#sessions.values()].reduce((sum, count) => sum + count, 0);
  }

  /**
   * Makes sure that the server may have one more session, on all pods: when it has as many as it may an idle one ends, and this
   * resolves when the partner knows. `giveBack` when the session is over.
   * @param waitMs milliseconds, for those that other pods have
   * @throws PesitError as `SessionPlaces.take`
   */
  async reserve(target: SessionTarget, sessionId: string, waitMs: number, signal?: AbortSignal): Promise<void> {
    const { serverId, serverName, limit, maxSessions } = target;
    if ((this.#sessions.get(serverId) ?? 0) >= maxSessions) await this.#giveUpIdle(serverId);
    if (limit === undefined) return;
    const makeRoom = () => this.#giveUpIdle(serverId);
    await this.#options.places.take({ serverId, serverName, limit }, sessionId, waitMs, makeRoom, signal);
  }

  /** The partner knows that the session is over, or it was never opened. */
  giveBack(sessionId: string): Promise<void> {
    return this.#options.places.give(sessionId);
  }

  /** Closes what is idle with one server: its terms have changed. */
  closeIdle(serverId: number): void {
    for (const idle of [...this.#idle.values()].flat()) {
      if (idle.target.serverId === serverId) void this.#discard(idle);
    }
  }

  /**
   * Ends sessions with servers whose certificates were revoked since: those in use when they are given back.
   * @throws the first error, when all were looked at: of the database, or a store is missing
   */
  closeRevoked(): Promise<void> {
    return lookAtEach([...[...this.#idle.values()].flat(), ...this.#used.keys()], (open) => this.#endRevoked(open));
  }

  async #endRevoked({ session, sessionId, observed, target }: Open): Promise<void> {
    if (!(await target.isRevoked(session.security))) return;
    // It may have been given back, or taken, meanwhile.
    const idle = this.#idle.get(target.key)?.find((one) => one.sessionId === sessionId);
    const used = [...this.#used.entries()].find(([one]) => one.sessionId === sessionId);
    if (idle === undefined && used === undefined) return;
    const text = 'the certificate of the remote server was revoked: its session ends, after the transfer that it runs';
    this.#options.events.publish(SESSION_TOLERATED, { session: observed, text });
    used?.[1]();
    if (idle !== undefined) void this.#discard(idle);
  }

  /** Releases every idle session; those in use are closed when they are given back. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const idle of [...this.#idle.values()].flat()) void this.#discard(idle);
    await Promise.all(this.#closing);
  }

  async #open(target: SessionTarget, sessionId: string, signal: AbortSignal): Promise<Open> {
    const { traces, events } = this.#options;
    const { serverId } = target;
    const observed = { id: sessionId, facts: { sessionId, server: target.serverName } };
    const options = target.options();
    const at = `${options.host}:${options.port}`;
    const notice = (text: string): void => events.publish(SESSION_TOLERATED, { session: observed, text });
    try {
      const learned = (style: SingleArticleStyle): void =>
        events.publish(SERVER_SEEN, { serverId, singleArticle: style });
      const session = await traces.open(observed, target, { signal, notice, learned });
      const { terms, answer } = session;
      const facts = { at, requester: options.connect.requester, terms, ...securityFacts(session.security) };
      events.publish(SESSION_OPENED, { session: observed, facts });
      events.publish(SERVER_REACHED, { serverId, negotiated: negotiatedOf(terms), seen: seenIn(answer) });
      void session.closed().then(() => this.#gone(sessionId));
      return { session, sessionId, observed, target };
    } catch (thrown) {
      const error = toPesitError(thrown);
      if (signal.aborted) throw error;
      events.publish(SESSION_REFUSED, { session: observed, diagnostic: error.diagnostic, error, facts: { at } });
      events.publish(SERVER_NOT_REACHED, { serverId, error });
      throw error;
    }
  }

  #taken(open: Open, transfer: string, reused: boolean): TakenSession {
    const { events } = this.#options;
    const { session, sessionId, observed, target } = open;
    events.publish(SESSION_TAKEN, { session: observed, transfer, reused });
    let given = false;
    let outdated = false;
    this.#used.set(open, () => (outdated = true));
    let error: unknown;
    const isUsable = (): boolean => session.usable && !outdated;
    const release = (): void => {
      if (given) return;
      given = true;
      this.#used.delete(open);
      events.publish(SESSION_GIVEN_BACK, { session: observed, error });
      const { maxEntitySize } = session.fileTerms ?? {};
      if (maxEntitySize !== undefined) events.publish(SERVER_SEEN, { serverId: target.serverId, maxEntitySize });
      if (isUsable() && this.#mayStay(open)) this.#keep(open);
      else void this.#close(open);
    };
    const failed = (thrown: unknown): void => {
      outdated ||= outdatesSession(toPesitError(thrown));
      error = thrown;
    };
    return {
      ...{ session, sessionId, reused, failed, release },
      get usable() {
        return isUsable();
      },
    };
  }

  #mayStay({ target: { serverId, limit }, sessionId }: Open): boolean {
    const { places, idleTimeout } = this.#options;
    if (this.#stopped || idleTimeout === 0) return false;
    return limit === undefined || (places.holds(sessionId) && !places.heedWish(serverId));
  }

  /** Ends the session that has been idle longest with the server. @returns false when there is none */
  async #giveUpIdle(serverId: number, asWished = false): Promise<boolean> {
    const oldest = [...this.#idle.values()].flat().find((idle) => idle.target.serverId === serverId);
    if (oldest === undefined) return false;
    if (asWished) this.#options.places.heedWish(serverId);
    await this.#discard(oldest);
    return true;
  }

  #keep(open: Open): void {
    const { key } = open.target;
    const timer = setTimeout(() => void this.#discard(idle), this.#options.idleTimeout).unref();
    const idle: Idle = { ...open, timer };
    const list = this.#idle.get(key);
    if (list === undefined) this.#idle.set(key, [idle]);
    else list.push(idle);
  }

  /** The one used last: the others grow old and go. Dead ones are dropped on the way. */
  #takeIdle(key: string): Idle | undefined {
    for (;;) {
      const idle = this.#idle.get(key)?.at(-1);
      if (idle === undefined) return undefined;
      // One whose trace was switched off does not serve a transfer that shall have one: its key says that it should.
      if (idle.session.usable && !this.#options.traces.isCutOff(idle.observed)) {
        this.#forget(idle);
        return idle;
      }
      void this.#discard(idle);
    }
  }

  /** A partner may end a session while it is idle: then it no longer takes a place. */
  #gone(sessionId: string): void {
    const idle = [...this.#idle.values()].flat().find((one) => one.sessionId === sessionId);
    if (idle !== undefined) void this.#discard(idle);
  }

  #forget(idle: Idle): void {
    clearTimeout(idle.timer);
    const { key } = idle.target;
    const rest = (this.#idle.get(key) ?? []).filter((other) => other !== idle);
    if (rest.length > 0) this.#idle.set(key, rest);
    else this.#idle.delete(key);
  }

  #discard(idle: Idle): Promise<void> {
    this.#forget(idle);
    return this.#close(idle);
  }

  #close({ session, sessionId, observed, target }: Open): Promise<void> {
    this.#count(target.serverId, -1);
    const isReleased = session.usable;
    const closing = session.release().then(async () => {
      await this.giveBack(sessionId);
      this.#closing.delete(closing);
      const error = isReleased ? undefined : session.ended;
      this.#options.events.publish(SESSION_ENDED, { session: observed, opened: true, error });
    });
    this.#closing.add(closing);
    return closing;
  }

  #count(serverId: number, change: number): void {
    const count = (this.#sessions.get(serverId) ?? 0) + change;
    if (count > 0) this.#sessions.set(serverId, count);
    else this.#sessions.delete(serverId);
  }
}
