import type { PodRequests } from '@pesit-node/cluster';
import { PesitError } from '@pesit-node/protocol';
import { notFound, unavailable } from '@pesit-node/service';
import type { Caller } from '@pesit-node/service';

import type { ListenerStore } from '../listeners/store.js';
import type { SessionView } from './schema.js';
import type { SessionsHere } from './sessions-here.js';

export interface SessionServiceOptions {
  readonly here: SessionsHere;
  readonly requests: PodRequests;
  readonly listeners: Pick<ListenerStore, 'get'>;
}

/** How long other pods are waited for, milliseconds: without Redis they look once a second. */
const WAIT_MS = 10_000;

/** §9: closed by the administration. A file that runs can be restarted. */
const endedBy = (actor: string): PesitError =>
  new PesitError(`the session was ended by ${actor}`, {
    fault: 'local',
    diagnostic: '3-316',
    peerText: 'the session was closed by the administration',
  });

/** Subjects of questions to other pods, as text. */
const subjectOf = (about: Readonly<Record<string, string>>): string => JSON.stringify(about);
const aboutOf = (subject: string): Readonly<Record<string, string>> =>
  JSON.parse(subject) as Readonly<Record<string, string>>;

/** The sessions of partners on all pods: each pod knows its own, and is asked. */
export class SessionService {
  readonly #options: SessionServiceOptions;

  constructor(options: SessionServiceOptions) {
    this.#options = options;
    const { here, requests } = options;
    requests.answer('sessions', (subject) => [...here.list(aboutOf(subject)['listener'] ?? '')]);
    requests.answer('end session', (subject) => {
      const { listener = '', id = '', actor = '' } = aboutOf(subject);
      return here.end(listener, id, endedBy(actor));
    });
    requests.answer('end sessions', (subject) => {
      const { listener = '', actor = '' } = aboutOf(subject);
      return here.endAll(listener, endedBy(actor));
    });
  }

  /** @throws {ApiError} 404 when there is no such listener; what the database throws */
  async list(
    listener: string,
  ): Promise<{ readonly sessions: readonly SessionView[]; readonly silentPods: readonly string[] }> {
    const { here, requests } = this.#options;
    await this.#require(listener);
    const answers = await requests.ask<SessionView[]>('sessions', subjectOf({ listener }), WAIT_MS);
    const sessions = [...here.list(listener), ...answers.flatMap(({ answer }) => answer ?? [])];
    return {
      sessions: sessions.sort((a, b) => a.since.localeCompare(b.since)),
      silentPods: answers.filter(({ answer }) => answer === undefined).map(({ pod }) => pod.name),
    };
  }

  /**
   * Ends a session, on whatever pod it runs: ABORT 3-316.
   * @throws {ApiError} 404 when no pod has it, 503 when one that may have it does not answer
   */
  async end(listener: string, id: string, by: Caller | undefined): Promise<void> {
    const { here, requests } = this.#options;
    await this.#require(listener);
    const actor = by?.actor ?? 'an operator';
    if (here.end(listener, id, endedBy(actor))) return;
    const answers = await requests.ask<boolean>('end session', subjectOf({ listener, id, actor }), WAIT_MS);
    if (answers.some(({ answer }) => answer === true)) return;
    const silent = answers.filter(({ answer }) => answer === undefined).map(({ pod }) => pod.name);
    if (silent.length > 0) {
      throw unavailable(`Session ${id} is on no pod that answered; ${silent.join(', ')} did not: try again`);
    }
    throw notFound('Session', id, `/api/v1/servers/${encodeURIComponent(listener)}/sessions`);
  }

  /** Ends all sessions of a listener on all pods. @throws what the database throws */
  async endAll(listener: string, by: Caller | undefined): Promise<void> {
    const { here, requests } = this.#options;
    const actor = by?.actor ?? 'an operator';
    here.endAll(listener, endedBy(actor));
    await requests.ask('end sessions', subjectOf({ listener, actor }), WAIT_MS);
  }

  async #require(listener: string): Promise<void> {
    const row = await this.#options.listeners.get(listener);
    if (row === undefined) throw notFound('Listener', listener, '/api/v1/servers');
  }
}
