import type { Knex } from 'knex';

import type { ListenerStatus } from './fields.js';

/** One listener on one pod. */
export interface PodLine {
  readonly serverId: string;
  readonly status: ListenerStatus;
  readonly statusReason: string | null;
  /** When a FAILED one is tried again. */
  readonly nextAttemptAt: Date | null;
  /** Sessions. */
  readonly sessions: number;
  /** Connections turned away since the start of the pod. */
  readonly refused: number;
  /** Since when it has its port; null: it has none. */
  readonly since: Date | null;
  /** This pod runs no listeners while another one leads (`cluster.listeners`). */
  readonly standby: boolean;
}

export interface SaidBy extends PodLine {
  /** UUID of the process. */
  readonly instance: string;
}

/** Lines of pods that nobody has heard of for a day are removed with the next ones. */
const WRITE = `
  with given as (
    select * from jsonb_to_recordset(cast(:lines as jsonb)) as l ("serverId" text, status text, "statusReason" text,
      "nextAttemptAt" timestamptz, sessions integer, refused bigint, since timestamptz, standby boolean)
  ), gone as (
    delete from listener_pods p
    where case when p.instance = :instance then not exists (select from given g where g."serverId" = p.server_id)
      else p.reported_at < now() - interval '1 day' end
  )
  insert into listener_pods as p
    (server_id, instance, status, status_reason, next_attempt_at, sessions, refused, since, standby)
  select "serverId", cast(:instance as uuid), status, "statusReason", "nextAttemptAt", sessions, refused, since, standby
  from given
  on conflict (server_id, instance) do update set status = excluded.status, status_reason = excluded.status_reason,
    next_attempt_at = excluded.next_attempt_at, sessions = excluded.sessions, refused = excluded.refused,
    since = excluded.since, standby = excluded.standby, reported_at = now()`;

const READ = `
  select instance, server_id as "serverId", status, status_reason as "statusReason",
    next_attempt_at as "nextAttemptAt", sessions, refused, since, standby
  from listener_pods where instance = any (cast(:instances as uuid[]))`;

/** So often a pod writes its lines although nothing has changed, milliseconds: much less than the day after which they are removed. */
const REPEAT_MS = 3_600_000;

/** The lines of all pods in the database. Those of a pod that has died are left out by whoever reads: its lease says so. */
export class PodLines {
  readonly #knex: Knex;
  readonly #instance: string;
  #written = '';
  #writtenAt = 0;

  /** @param instance UUID of this process, as the cluster knows it */
  constructor(knex: Knex, instance: string) {
    this.#knex = knex;
    this.#instance = instance;
  }

  /** Says what this pod has, if that has changed: one statement. @throws when the database fails */
  async write(lines: readonly PodLine[]): Promise<void> {
    const text = JSON.stringify(lines);
    if (text === this.#written && performance.now() - this.#writtenAt < REPEAT_MS) return;
    await this.#knex.raw(WRITE, { lines: text, instance: this.#instance });
    this.#written = text;
    this.#writtenAt = performance.now();
  }

  /** Reads the lines of these pods. @throws when the database fails */
  async read(instances: readonly string[]): Promise<readonly SaidBy[]> {
    if (instances.length === 0) return [];
    return (await this.#knex.raw<{ rows: SaidBy[] }>(READ, { instances: [...instances] })).rows;
  }
}
