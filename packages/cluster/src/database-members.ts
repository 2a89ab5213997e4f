import { EventEmitter } from 'node:events';

import type { Logger, PeriodicHandle, PeriodicWork } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { ClusterEvents } from './events.js';
import { NO_FACTS } from './members.js';
import type {
  ClusterUsage,
  LivingPod,
  Members,
  MembersEvents,
  MembersView,
  PodFacts,
  PodIdentity,
  RosterPod,
} from './members.js';

export interface DatabaseMembersOptions {
  readonly knex: Knex;
  readonly pod: PodIdentity;
  readonly events: ClusterEvents;
  /** Runs the renewals. */
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: Logger;
  /** Facts of this pod for the others. Default: none. */
  readonly facts?: () => Promise<PodFacts>;
  /** How long a pod that is not heard of counts as living, milliseconds. Default 10,000. */
  readonly leaseMs?: number;
  /** Milliseconds of a clock that nobody can set. */
  readonly monotonic?: () => number;
}

const LEASE_MS = 10_000;
/** Renewals in the time of a lease: one that is late harms nobody. */
const RENEWALS = 3;
/** A database that does not answer must not hold up the end of the process: the lease runs out by itself. */
const LEAVE_MS = 2000;

/**
 * A pod that was killed and starts again under its name has the place that it had. Two that live under one name still
 * count as two: the one that finds its row taken comes back as the youngest.
 */
const TAKE_OVER = `
  update pesit_common.cluster_pods set instance = :instance, seen_at = now()
  where instance = (
    select instance from pesit_common.cluster_pods
    where app = :app and cluster = :cluster and namespace = :namespace and pod = :name
      and seen_at > now() - make_interval(secs => :window)
    order by position limit 1 for update skip locked
  )`;

const RENEW = `
  with known as (
    insert into pesit_common.clusters (app, name) select :app, :cluster
    where not exists (select from pesit_common.clusters where app = :app and name = :cluster)
    on conflict do nothing
  ), forgotten as (
    delete from pesit_common.cluster_pods where seen_at < now() - interval '1 day' and instance <> :instance
  ), renewed as (
    update pesit_common.cluster_pods 
      set seen_at = now(), address = :address, version = :version, ready = :ready,
        not_ready_reason = :notReadyReason, sessions = :sessions
    where instance = :instance returning instance
  )
  insert into pesit_common.cluster_pods (instance, app, cluster, namespace, pod, address, version, ready, not_ready_reason,
    sessions)
  select cast(:instance as uuid), :app, :cluster, :namespace, :name, :address, :version, cast(:ready as boolean),
    :notReadyReason, cast(:sessions as integer)
  where not exists (select from renewed)`;

const LIVING = `
  select p.app, p.cluster, p.instance, p.pod as name, p.since
  from pesit_common.cluster_pods p join pesit_common.clusters c on c.app = p.app and c.name = p.cluster
  where p.seen_at > now() - make_interval(secs => :window)
  order by c.position, p.position`;

const ROSTER = `
  select app, instance, pod as name, since, address, version, ready,
    not_ready_reason as "notReadyReason", sessions from pesit_common.cluster_pods
  where cluster = :cluster and seen_at > now() - make_interval(secs => :window)
  order by position`;

interface Row {
  readonly app: string;
  readonly cluster: string;
  readonly instance: string;
  readonly name: string;
  readonly since: Date;
}

/** Membership by a lease in PostgreSQL: one row a process, renewed every few seconds. */
export class DatabaseMembers extends EventEmitter<MembersEvents> implements Members {
  readonly #options: Required<DatabaseMembersOptions>;
  readonly #unsubscribe: () => void;
  #view: MembersView | undefined;
  #renewals: PeriodicHandle | undefined;
  #work: Promise<void> = Promise.resolve();
  /** A look that was asked for and has not begun: whoever asks meanwhile has the same. */
  #next: Promise<void> | undefined;
  #leaving: Promise<void> | undefined;
  #facts = NO_FACTS;
  #renewedAt: number | undefined;
  /** When this pod could renew again after it could not, and since when it could not. */
  #outage: { readonly from: number; readonly to: number } | undefined;

  constructor(options: DatabaseMembersOptions) {
    super();
    this.#options = {
      leaseMs: LEASE_MS,
      monotonic: () => performance.now(),
      facts: () => Promise.resolve(NO_FACTS),
      ...options,
    };
    this.#unsubscribe = options.events.subscribe('members', () =>
      this.#renewedAt === undefined ? undefined : this.refresh(),
    );
  }

  get view(): MembersView | undefined {
    return this.#view;
  }

  start(): void {
    if (this.#leaving !== undefined) return;
    if (this.#renewals !== undefined) {
      void this.#renewals.runNow();
      return;
    }
    this.#renewals = this.#options.periodic.add({
      name: 'renewal of the membership in the cluster',
      intervalMs: this.#options.leaseMs / RENEWALS,
      jitter: 0.1,
      run: () => this.#look(),
    });
  }

  refresh(): Promise<void> {
    return this.#look().catch((error: unknown) => {
      this.#options.logger.debug({ reason: (error as Error).message }, 'could not renew the membership of this pod');
    });
  }

  #look(): Promise<void> {
    if (this.#next !== undefined) return this.#next;
    const look = this.#work.then(async () => {
      this.#next = undefined;
      if (this.#leaving !== undefined) return;
      await this.#renew();
      this.#show(await this.#living());
    });
    this.#next = look;
    this.#work = look.catch(() => undefined);
    return look;
  }

  async usage(): Promise<ClusterUsage> {
    const rows = await this.#living();
    const most = (counts: ReadonlyMap<string, number>): number => Math.max(1, ...counts.values());
    const count = (keys: readonly string[]): ReadonlyMap<string, number> => {
      const counts = new Map<string, number>();
      for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
      return counts;
    };
    const pods = count(rows.map(({ app, cluster }) => JSON.stringify([app, cluster])));
    const clusters = count([...pods.keys()].map((key) => (JSON.parse(key) as [string])[0]));
    return { clusters: most(clusters), podsPerCluster: most(pods) };
  }

  async roster(): Promise<readonly RosterPod[]> {
    const { knex, pod } = this.#options;
    return (await knex.raw<{ rows: RosterPod[] }>(ROSTER, { ...pod, window: this.#window() })).rows;
  }

  leave(): Promise<void> {
    const limit = new Promise<void>((resolve) => setTimeout(resolve, LEAVE_MS).unref());
    return (this.#leaving ??= Promise.race([this.#leave(), limit]));
  }

  async #leave(): Promise<void> {
    this.#unsubscribe();
    await this.#renewals?.remove();
    await this.#work;
    if (this.#renewedAt === undefined) return;
    const { knex, pod, events, logger } = this.#options;
    try {
      await knex.raw('delete from pesit_common.cluster_pods where instance = ?', [pod.instance]);
      events.tell('members');
    } catch (error) {
      logger.debug(
        { reason: (error as Error).message },
        'could not give back the membership of this pod: it expires by itself',
      );
    }
  }

  async #renew(): Promise<void> {
    const { knex, pod, events, leaseMs, monotonic } = this.#options;
    const begun = monotonic();
    const first = this.#renewedAt === undefined;
    if (first) await knex.raw(TAKE_OVER, { ...pod, window: leaseMs / 1000 });
    this.#lookAtItself();
    await knex.raw(RENEW, { ...pod, ...this.#facts });
    if (this.#renewedAt !== undefined && begun - this.#renewedAt > leaseMs) {
      this.#outage = { from: this.#renewedAt, to: begun };
    }
    this.#renewedAt = monotonic();
    if (first) events.tell('members');
  }

  /** The next renewal tells the others: one that waited for the facts might come too late. */
  #lookAtItself(): void {
    this.#options.facts().then(
      (facts) => (this.#facts = facts),
      (error: unknown) =>
        this.#options.logger.debug({ reason: (error as Error).message }, 'could not look at this pod'),
    );
  }

  /** While the database was away nobody could renew: who was there before has one more lease to come back. */
  #window(): number {
    const { leaseMs, monotonic } = this.#options;
    const now = monotonic();
    const outage = this.#outage;
    return (outage !== undefined && now - outage.to < leaseMs ? now - outage.from + leaseMs : leaseMs) / 1000;
  }

  async #living(): Promise<readonly Row[]> {
    return (await this.#options.knex.raw<{ rows: Row[] }>(LIVING, { window: this.#window() })).rows;
  }

  #show(rows: readonly Row[]): void {
    const { app, cluster, instance } = this.#options.pod;
    const ofApp = rows.filter((row) => row.app === app);
    const pods = ofApp
      .filter((row) => row.cluster === cluster)
      .map(({ since, ...row }): LivingPod => ({ instance: row.instance, name: row.name, since: since.getTime() }));
    const self = pods.find((pod) => pod.instance === instance);
    // Somebody emptied the table between two statements: the next look finds the new row.
    if (self === undefined) return;
    const view = { cluster, self, clusters: [...new Set(ofApp.map((row) => row.cluster))], pods };
    const changed = JSON.stringify(view) !== JSON.stringify(this.#view);
    this.#view = view;
    if (changed) this.emit('change', view);
  }
}
