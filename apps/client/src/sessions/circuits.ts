import { explain } from '@pesit-node/protocol';
import type { PesitError } from '@pesit-node/protocol';
import { isDatabaseUnavailable } from '@pesit-node/service';
import type { Audit, EventStream, Logger } from '@pesit-node/service';
import { verdictOn } from '@pesit-node/transfers';

import { CIRCUIT_CHANGED, SERVER_NOT_REACHED, SERVER_REACHED } from '../exchange/events.js';
import type { CircuitChange, CircuitPolicy, CircuitStore } from '../remote-servers/circuit-store.js';
import type { AttemptEnd, Job } from '../transfers/row.js';

export interface CircuitsOptions {
  readonly store: CircuitStore;
  readonly policy: () => CircuitPolicy;
  readonly events: EventStream;
  readonly logger: Logger;
  /** Rows of the server may be taken that could not be before. */
  readonly closed: () => void;
}

/** Nobody can be reached, TLS is not agreed, or nobody is let in for now: nothing that a file or a password is at fault for. */
const isOfServer = (error: PesitError): boolean =>
  error.fault === 'transport' ||
  error.fault === 'timeout' ||
  (error.fault === 'refused' && verdictOn(error) === 'later');

/**
 * The circuit breaker of each remote server. Contacts that fail one after the other open it, on all pods; then nothing of the
 * server is taken from the queue until it is time for a probe, which is one transfer, and whose end decides (`take-statement.ts`).
 * A connection test counts as a contact.
 */
export class Circuits {
  readonly #options: CircuitsOptions;
  /** Servers with contacts that failed, as far as this process knows: a good one has to be told. */
  readonly #failing = new Set<number>();
  /** One after the other, as they came. */
  #writing = Promise.resolve();

  constructor(options: CircuitsOptions) {
    this.#options = options;
    const { events, store, policy } = options;
    events.subscribe(SERVER_NOT_REACHED, ({ serverId, error }) => {
      if (!isOfServer(error)) return;
      const reason = explain(error);
      this.#failing.add(serverId);
      this.#write(serverId, async () => {
        this.#changed(serverId, 'open', reason, await store.failed(serverId, reason, policy()));
      });
    });
    events.subscribe(SERVER_REACHED, ({ serverId }) => this.#reached(serverId));
  }

  /** A transfer was taken. */
  began({ server }: Pick<Job, 'server'>): void {
    if (server.circuit_failures > 0) this.#failing.add(server.id);
  }

  /** An attempt is over. */
  ended({ server }: Pick<Job, 'server'>, { status }: AttemptEnd): void {
    if (status === 'COMPLETED') this.#reached(server.id);
    else if (server.circuit_opened_time !== null) {
      this.#write(server.id, () => this.#options.store.probeOver(server.id));
    }
  }

  /** Closes it for somebody who knows better. @throws errors of the database */
  async close(serverId: number): Promise<void> {
    this.#failing.delete(serverId);
    await this.settled();
    this.#changed(serverId, 'closed', null, await this.#options.store.close(serverId));
    this.#options.closed();
  }

  /** The server was changed: what failed before says nothing of it. */
  forget(serverId: number): void {
    this.#failing.add(serverId);
    this.#reached(serverId);
  }

  /** Resolves when everything noted so far is written. */
  settled(): Promise<void> {
    return this.#writing;
  }

  #reached(serverId: number): void {
    if (!this.#failing.delete(serverId)) return;
    this.#write(serverId, async () => {
      this.#changed(serverId, 'closed', null, await this.#options.store.close(serverId));
      this.#options.closed();
    });
  }

  #changed(serverId: number, state: 'open' | 'closed', reason: string | null, change: CircuitChange | undefined): void {
    if (change?.changed !== true) return;
    this.#options.events.publish(CIRCUIT_CHANGED, { serverId, server: change.name, state, reason });
  }

  #write(serverId: number, work: () => Promise<void>): void {
    this.#writing = this.#writing.then(work).catch((error: unknown) => {
      if (isDatabaseUnavailable(error)) return;
      this.#options.logger.error(
        { err: error, serverRow: serverId },
        'could not store the circuit of the remote server: the next contact does',
      );
    });
  }
}

/** Opened and closed by contacts; that somebody closes one is noted by its route. */
export const auditCircuits = (events: EventStream, audit: Pick<Audit, 'note'>): void => {
  events.subscribe(CIRCUIT_CHANGED, ({ server, state, reason }) => {
    const action = state === 'open' ? 'circuit opened' : 'circuit closed';
    audit.note({ action, objectType: 'remote server', object: server, details: reason === null ? {} : { reason } });
  });
};
