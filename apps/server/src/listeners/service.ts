import { CONFIGURATION_CHANGED, conflict, notFound, refuseUsed } from '@pesit-node/service';
import type { AuditWrite, Caller, ChangeAudit, EventStream, Listed, ListQuery, Logger } from '@pesit-node/service';
import type { Knex } from 'knex';

import { onAllPods } from './all-pods.js';
import type { NamedLine, OnAllPods } from './all-pods.js';
import { LISTENER, portsOf } from './fields.js';
import type { ListenerRow, ListenerStatus, ListenerValues } from './fields.js';
import type { ListenersHere } from './listeners-here.js';
import type { PodLines, SaidBy } from './pod-lines.js';
import type { ListenerStore, StoredListener } from './store.js';
import { admitTogether } from './together.js';
import { LISTENER_USES } from './uses.js';

/** A process that runs listeners. */
export interface ListenerPod {
  readonly name: string;
  /** UUID. */
  readonly instance: string;
}

export interface ListenerServiceOptions {
  readonly store: ListenerStore;
  readonly here: ListenersHere;
  readonly lines: PodLines;
  readonly pod: ListenerPod;
  /** All that live, this one too, oldest first, as far as is known. */
  readonly living: () => readonly ListenerPod[];
  /** Tells the other pods to look. */
  readonly tell: () => void;
  readonly events: EventStream;
  readonly audit: ChangeAudit;
  readonly logger: Logger;
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly now?: () => number;
}

/** A listener with what it does at the moment on all pods that live. */
export interface ListenerView extends OnAllPods {
  readonly row: StoredListener;
  readonly pods: readonly NamedLine[];
  /** Seconds, of the pod that has run it longest. */
  readonly uptime: number;
}

/** The answer to start, stop and restart. */
export interface ListenerOutcome extends ListenerView {
  readonly message: string;
}

const noListener = (id: string): Error => notFound('Listener', id, '/api/v1/servers');

/** How long an answer waits for sessions to end before it says STOPPING instead of STOPPED. */
const STOP_ANSWER_MS = 1500;

/**
 * Listeners as configured and as they are wanted. A verb is written down for all pods, and answered when it is true on this
 * one; the others hear of it, or see it when they look, and each says in the database what it has.
 */
export class ListenerService {
  readonly #options: ListenerServiceOptions;
  #reporting: Promise<void> = Promise.resolve();

  constructor(options: ListenerServiceOptions) {
    this.#options = options;
  }

  async list(query: ListQuery = {}): Promise<Listed<ListenerView>> {
    const { rows, total } = await this.#options.store.find(query);
    const said = await this.#others();
    return { rows: rows.map((row) => this.#view(row, said)), total };
  }

  async get(id: string): Promise<ListenerView> {
    const row = await this.#options.store.get(id);
    if (row === undefined) throw noListener(id);
    return this.#view(row, await this.#others());
  }

  /** @param start whether it is to run; FAILED with the reason when its port cannot be taken here */
  async create(id: string, values: Partial<ListenerValues>, start: boolean, by?: Caller): Promise<ListenerView> {
    admitTogether({ ...(LISTENER.defaults as ListenerRow), ...values });
    const row = await this.#options.store.add(id, values, start, this.#options.audit.change(LISTENER, by));
    if (row === undefined) throw conflict(`Listener ${JSON.stringify(id)} exists already`);
    this.#changed('created', { listener: id, port: row.port }, by);
    await this.#converge(id);
    return this.get(id);
  }

  /** New sessions get the new settings. Another port is taken here before anything is stored: 409 when it cannot be taken. */
  async update(id: string, values: Partial<ListenerValues>, by?: Caller): Promise<ListenerView> {
    const { store, here, audit } = this.#options;
    let row: StoredListener | undefined;
    const after = async (): Promise<StoredListener> => {
      const before = await store.get(id);
      if (before === undefined) throw noListener(id);
      const whole = { ...before, ...values };
      // In its turn: a change that was stored since the request was looked at counts.
      admitTogether(whole);
      return whole;
    };
    await here.change(id, after, async () => {
      row = await store.change(id, values, audit.change(LISTENER, by));
      if (row === undefined) throw noListener(id);
      this.#changed('changed', { listener: id, fields: Object.keys(values), port: row.port }, by);
    });
    await this.report();
    return this.get(id);
  }

  /**
   * It is stopped on every pod: no new sessions, running transfers end in peace.
   * @param force though it is in use @throws {ApiError} 409 when it is in use
   */
  async delete(id: string, force: boolean, by?: Caller): Promise<void> {
    const { store, here, audit } = this.#options;
    const unused = async (knex: Knex, row: StoredListener): Promise<void> =>
      refuseUsed(LISTENER.noun, id, await LISTENER_USES.of(knex, row), LISTENER_USES.forced);
    if (!(await store.delete(id, audit.change(LISTENER, by), force ? undefined : unused))) throw noListener(id);
    this.#changed('deleted', { listener: id, ...(force ? { force } : {}) }, by);
    const running = here.get(id);
    await this.#converge(id);
    await within(running?.ending);
    // Forgotten as soon as its last session has ended.
    void running?.ending.then(() => this.#converge(id)).catch(() => undefined);
  }

  /** @throws {ApiError} 409 when the port cannot be taken here: FAILED with the reason, and tried again until it is stopped. */
  async start(id: string, by?: Caller): Promise<ListenerOutcome> {
    const { store, here } = this.#options;
    if (here.isClosed) throw conflict(`The service is stopping: listener ${id} is not started`);
    const wasRunning = here.get(id)?.isRunning === true;
    const row = await store.want(id, true, this.#audited(id, 'started', by));
    if (row === undefined) throw noListener(id);
    await this.#told(id);
    const { status, statusReason } = here.line(id);
    if (status === 'FAILED')
      throw conflict(`Listener ${id}: ${statusReason ?? ''}. It is tried again by itself until it is stopped`);
    const said = wasRunning ? 'is running already' : 'started';
    return this.#outcome(id, 'RUNNING', `Listener ${id} ${said} on ${portsOf(row)}`);
  }

  /**
   * Takes no more sessions. Running transfers may end: until then, at most `drainMs`, the status is STOPPING.
   * @param force ends the sessions of all pods at once
   */
  async stop(id: string, by?: Caller, force?: () => Promise<void>): Promise<ListenerOutcome> {
    const { store, here } = this.#options;
    const wasStopped = here.line(id).status === 'STOPPED';
    if ((await store.want(id, false, this.#audited(id, 'stopped', by))) === undefined) throw noListener(id);
    await this.#told(id);
    // Now that none begins, those that are there end.
    await force?.();
    const running = here.get(id);
    await within(running?.ending);
    const left = running?.activeConnections ?? 0;
    const transfers = `${left} running ${left === 1 ? 'transfer' : 'transfers'} may end`;
    const message = running?.status === 'STOPPING' ? `takes no more sessions; ${transfers}` : 'stopped';
    return this.#outcome(id, 'STOPPED', `Listener ${id} ${wasStopped ? 'is stopped already' : message}`);
  }

  /** Every pod gives the port up, lets running transfers end, and takes it again at once. @throws {ApiError} 409 when it is stopped. */
  async restart(id: string, by?: Caller): Promise<ListenerOutcome> {
    const { store, here } = this.#options;
    const row = await store.renew(id, this.#audited(id, 'restarted', by));
    if (row === undefined) {
      if ((await store.get(id)) === undefined) throw noListener(id);
      throw conflict(`Listener ${id} is stopped: start it instead`);
    }
    await this.#told(id);
    const { status, statusReason } = here.line(id);
    if (status === 'FAILED')
      throw conflict(`Listener ${id}: ${statusReason ?? ''}. It is tried again by itself until it is stopped`);
    return this.#outcome(id, 'RUNNING', `Listener ${id} restarted on ${portsOf(row)}`);
  }

  /** Says in the database what this pod has, for the other pods. Never rejects: it is said again with the next look. */
  report(): Promise<void> {
    const { here, lines, logger } = this.#options;
    this.#reporting = this.#reporting.then(async () => {
      try {
        await lines.write(here.isClosed ? [] : here.lines());
      } catch (error) {
        logger.debug({ reason: (error as Error).message }, 'could not say in the database what the listeners here do');
      }
    });
    return this.#reporting;
  }

  /** Converges, and says so in the database. @throws when the database fails */
  async look(): Promise<void> {
    await this.#options.here.converge();
    await this.report();
  }

  #changed(action: 'created' | 'changed' | 'deleted', facts: object, by: Caller | undefined): void {
    const said = { what: 'listener', action, facts: { ...facts }, by, recorded: true };
    this.#options.events.publish(CONFIGURATION_CHANGED, said);
    this.#options.tell();
  }

  async #told(id: string): Promise<void> {
    this.#options.tell();
    await this.#converge(id);
  }

  #audited(object: string, action: string, by: Caller | undefined): AuditWrite {
    return this.#options.audit.entry({ by, action, objectType: LISTENER.noun, object });
  }

  async #converge(id: string): Promise<void> {
    await this.#options.here.settle(id);
    await this.report();
  }

  async #others(): Promise<readonly SaidBy[]> {
    const { living, pod, lines } = this.#options;
    const instances = living().map(({ instance }) => instance);
    return lines.read(instances.filter((instance) => instance !== pod.instance));
  }

  #view(row: StoredListener, said: readonly SaidBy[]): ListenerView {
    const { living, pod, here } = this.#options;
    const { server_id: serverId, wanted } = row;
    const isMine = ({ instance }: ListenerPod): boolean => instance === pod.instance;
    const known = living();
    const all = known.some(isMine) ? known : [...known, pod];
    const pods = all.flatMap((one): readonly NamedLine[] => {
      if (isMine(one)) return [{ ...here.line(serverId), pod: one.name }];
      const line = said.find(({ instance, serverId: id }) => instance === one.instance && id === serverId);
      if (line !== undefined) return [{ ...line, pod: one.name }];
      return wanted ? [{ ...UNHEARD, serverId, pod: one.name }] : [];
    });
    const together = onAllPods(pods, wanted);
    const { now = Date.now } = this.#options;
    const runs = together.since === null ? 0 : now() - together.since.getTime();
    return { row, pods, ...together, uptime: Math.max(0, Math.floor(runs / 1000)) };
  }

  /** Says of the other pods what is not yet as it is wanted. */
  async #outcome(id: string, wanted: ListenerStatus, message: string): Promise<ListenerOutcome> {
    const view = await this.get(id);
    const others = view.pods.filter(({ pod, standby }) => pod !== this.#options.pod.name && !standby);
    const failed = others.filter(({ status }) => status === 'FAILED');
    const behind = others.filter(({ status }) => status !== wanted && status !== 'FAILED');
    const notes = [
      ...failed.map(({ pod, statusReason }) => `; ${pod} FAILED: ${statusReason ?? ''}`),
      behind.length === 0 ? '' : `; ${behind.map(({ pod }) => pod).join(', ')} will follow within 10 seconds`,
    ];
    const all = others.length > 0 && failed.length + behind.length === 0 ? `, on all ${others.length + 1} pods` : '';
    return { ...view, message: `${message}${all}${notes.join('')}` };
  }
}

/** A pod that has not looked yet. */
const UNHEARD = {
  status: 'STOPPED',
  statusReason: 'it has not answered yet',
  ...{ nextAttemptAt: null, sessions: 0, refused: 0, since: null, standby: false },
} as const;

/** Waits for the end of `work`, but not longer than an answer may take; the work continues. */
const within = async (work: Promise<void> = Promise.resolve()): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, STOP_ANSWER_MS);
  });
  await Promise.race([work, limit]);
  clearTimeout(timer);
};
