import { randomUUID } from 'node:crypto';

import type { PesitRequester } from '@pesit-node/net';
import type { SingleArticleStyle } from '@pesit-node/protocol';
import type { EventStream, Logger, Traces } from '@pesit-node/service';
import {
  outdatesSession,
  SESSION_OPENED,
  SESSION_REFUSED,
  SESSION_TOLERATED,
  toPesitError,
} from '@pesit-node/transfers';

import type { Contacts } from './contacts.js';
import { faultText, openTraced } from '../traces/traced-opening.js';
import type { TracedSession } from '../traces/traced-opening.js';
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
  /** The error that the transfer failed with: for a trace, and to know whether the session may serve another one. */
  failed(thrown: unknown): void;
  /** Gives it back: kept for the next transfer when it can serve one, closed otherwise. */
  release(): void;
}

interface Open extends TracedSession {
  readonly sessionId: string;
  readonly target: SessionTarget;
}

interface Idle extends Open {
  readonly timer: NodeJS.Timeout;
}

export interface SessionPoolOptions {
  /** Milliseconds that an idle session is kept; 0 = not at all. */
  readonly idleTimeout: number;
  readonly places: SessionPlaces;
  readonly contacts: Contacts;
  readonly traces: Traces;
  readonly events: EventStream;
  readonly logger: Logger;
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
  #stopped = false;

  constructor(options: SessionPoolOptions) {
    this.#options = options;
    options.places.on('wanted', (serverId) => void this.#giveUpIdle(serverId, true));
    options.places.on('lost', (sessionId) => this.#gone(sessionId));
  }

  /**
   * @param transfer whose lines a trace shall name
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
      const opened = await this.#open(target, sessionId, signal);
      return this.#taken({ ...opened, sessionId, target }, transfer, false);
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

  /** Releases every idle session; those in use are closed when they are given back. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const idle of [...this.#idle.values()].flat()) void this.#discard(idle);
    await Promise.all(this.#closing);
  }

  async #open(target: SessionTarget, sessionId: string, signal: AbortSignal): Promise<TracedSession> {
    const { contacts, traces, events } = this.#options;
    const session = { id: sessionId, facts: { sessionId, server: target.serverName } };
    const options = target.options();
    const at = `${options.host}:${options.port}`;
    const notice = (text: string): void => events.publish(SESSION_TOLERATED, { session, text });
    try {
      const learned = (style: SingleArticleStyle): void => contacts.learned(target.serverId, style);
      const opened = await openTraced(traces, target, sessionId, { signal, notice, learned });
      const { terms } = opened.session;
      events.publish(SESSION_OPENED, { session, facts: { at, requester: options.connect.requester, terms } });
      contacts.reached(target.serverId, opened.session);
      void opened.session.closed().then(() => this.#gone(sessionId));
      return opened;
    } catch (thrown) {
      const error = toPesitError(thrown);
      if (signal.aborted) throw error;
      events.publish(SESSION_REFUSED, { session, diagnostic: error.diagnostic, error, facts: { at } });
      contacts.failed(target.serverId, error);
      throw error;
    }
  }

  #taken(open: Open, transfer: string, reused: boolean): TakenSession {
    const { session, sessionId, tracer } = open;
    tracer?.transfer(transfer);
    let given = false;
    let outdated = false;
    const isUsable = (): boolean => session.usable && !outdated;
    const release = (): void => {
      if (given) return;
      given = true;
      tracer?.transfer(undefined);
      const { fileTerms } = session;
      if (fileTerms !== undefined) this.#options.contacts.entity(open.target.serverId, fileTerms.maxEntitySize);
      if (isUsable() && this.#mayStay(open)) this.#keep(open);
      else void this.#close(open);
    };
    const failed = (thrown: unknown): void => {
      outdated ||= outdatesSession(toPesitError(thrown));
      tracer?.note(faultText('transfer failed', thrown));
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
      if (idle.session.usable && idle.tracer?.isOver !== true) {
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

  #close({ session, sessionId, target, tracer }: Open): Promise<void> {
    this.#count(target.serverId, -1);
    const outcome = session.usable ? 'released' : 'the session was over';
    const closing = session.release().then(async () => {
      await this.giveBack(sessionId);
      this.#closing.delete(closing);
      tracer?.end(outcome);
      this.#options.logger.debug({ sessionId, server: target.serverName }, 'session closed');
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
