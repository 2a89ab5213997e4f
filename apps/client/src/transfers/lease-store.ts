import { keptReason } from '@pesit-node/protocol';
import type { Pacing } from '@pesit-node/storage';
import type { TransferStatus } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import { columnsOf, QUEUED, WAITING } from './row.js';
import type { AttemptEnd, Job, Progress, StoredVersion, TransferRow } from './row.js';

export interface TakeOptions {
  readonly node: string;
  readonly leaseSeconds: number;
  /** Sessions that one remote server may have when its own maxConnections does not say less. */
  readonly maxPerServer: number;
  /** Take only when at least so many are queued, due or not, or for a server of whose transfers none runs. */
  readonly minQueued: number;
  /** How far to count those that wait. */
  readonly countTo: number;
}

export interface Taken {
  readonly job: Job | undefined;
  readonly backlog: number;
  readonly queued: number;
}

/** One lease of a transfer: nobody else has this number. */
export type Lease = Pick<TransferRow, 'id' | 'fence'>;

/** Outcome of renewing a lease. */
export interface Renewed {
  readonly id: string;
  /** Somebody wants the transfer cancelled. */
  readonly cancel_requested: boolean;
}

/** The first of a server's rows that were not tried yet, and the first of those whose next attempt is due. */
const FRESH = `status = 'PENDING' and next_attempt_at is null order by position limit 1`;
const DELAYED = `status = 'PENDING' and next_attempt_at <= now() order by next_attempt_at limit 1`;

/** How often one take asks again when other processes are quicker. */
const MAX_LOOKS = 5;

/**
 * Takes the oldest transfer of the server that has the fewest under way, and a session to spare: a slow partner keeps the
 * others waiting no longer than for a slot. Several processes never take the same one. Its cost does not grow with the
 * queue: a look at two indexes for each server, and rows are counted no further than somebody wants to know.
 */
const TAKE = `
  with busy as (
    select server_id, count(*) as running from transfers where status = 'IN_PROGRESS' group by server_id
  ), waiting as (
    select count(*)::integer as total from (select 1 from transfers where ${WAITING} limit :countTo) counted
  ), queued as (
    select count(*)::integer as total from (select 1 from transfers where ${QUEUED} limit :countTo) counted
  ), chosen as (
    select s.id from remote_servers s
    left join busy b on b.server_id = s.id
    cross join lateral (
      select min(position) as position from (
        (select position from transfers where server_id = s.id and ${FRESH})
        union all (select position from transfers where server_id = s.id and ${DELAYED})
      ) either
    ) oldest
    where s.enabled and oldest.position is not null
      and coalesce(b.running, 0) < least(coalesce(s.max_connections, :maxPerServer), :maxPerServer)
      and (b.running is null or (select total from queued) >= :minQueued)
    order by coalesce(b.running, 0), oldest.position limit 1
  ), fresh as (
    select id, position from transfers where server_id = (select id from chosen) and ${FRESH} for update skip locked
  ), delayed as (
    select id, position from transfers where server_id = (select id from chosen) and ${DELAYED} for update skip locked
  ), next as (
    select id from (select * from fresh union all select * from delayed) either order by position limit 1
  ), taken as (
    update transfers t set status = 'IN_PROGRESS', start_time = coalesce(t.start_time, now()), attempts = t.attempts + 1,
      next_attempt_at = null, node = :node, fence = t.fence + 1, lease_until = now() + make_interval(secs => :leaseSeconds),
      pesit_transfer_id = case when t.direction = 'SEND' and t.pesit_transfer_id is null
        then nextval('pesit_transfer_id') else t.pesit_transfer_id end
    from next, remote_servers s where t.id = next.id and s.id = t.server_id
    returning ${columnsOf('t')}, to_jsonb(s) as server
  )
  select taken.*, waiting.total as backlog, queued.total as queued, exists (select from chosen) as chosen
  from waiting cross join queued left join taken on true`;

/** Under a lease of an older number nothing is written. */
const UNDER_LEASE = `id = :id and status = 'IN_PROGRESS' and fence = :fence`;

/** A wish to cancel that came meanwhile decides, unless the transfer is through. */
const END = `
  update transfers set
    status = case when cancel_requested and :status <> 'COMPLETED' then 'CANCELLED' else :status end,
    end_time = case when :status = 'PENDING' and not cancel_requested then null else now() end,
    next_attempt_at = case when :status = 'PENDING' and not cancel_requested
      then now() + cast(:delay as double precision) * interval '1 millisecond' end,
    failures = failures + case when :counts = 'failed' then 1 else 0 end,
    postponements = case :counts when 'later' then postponements + 1 else 0 end,
    attempts = attempts - case when :counts in ('later', 'none') then 1 else 0 end,
    restartable = cast(:restartable as boolean) and not cancel_requested,
    lease_until = null,
    filename = coalesce(:filename, filename), size = coalesce(cast(:size as bigint), size),
    bytes_transferred = coalesce(cast(:bytesTransferred as bigint), bytes_transferred),
    articles = coalesce(cast(:articles as bigint), articles),
    sync_point = coalesce(cast(:syncPoint as integer), sync_point),
    checksum = :checksum, local_path = :localPath,
    diagnostic = :diagnostic, error_code = :errorCode, error_message = :errorMessage,
    diagnostic_complement = cast(:diagnosticComplement as bytea),
    answer_free_message = cast(:answerFreeMessage as bytea),
    pesit_transfer_id = coalesce(cast(:pesitTransferId as integer), pesit_transfer_id),
    round_trip = coalesce(cast(:roundTrip as double precision), round_trip), advice = coalesce(:advice, advice),
    reply = coalesce(cast(:reply as bytea), reply),
    reply_data_code = coalesce(cast(:replyDataCode as integer), reply_data_code), label = coalesce(:label, label),
    free_message = coalesce(cast(:freeMessage as bytea), free_message),
    original_sender = coalesce(:originalSender, original_sender), final_receiver = coalesce(:finalReceiver, final_receiver),
    creation_date = coalesce(:creationDate, creation_date),
    name_confirmed = coalesce(cast(:nameConfirmed as boolean), name_confirmed),
    content = case when content = 'KEPT' and case when cancel_requested and :status <> 'COMPLETED' then 'CANCELLED' else :status end
      = any (cast(:contentGoesWith as text[])) then 'REMOVED' else content end
  where ${UNDER_LEASE}
  returning ${columnsOf('transfers')}`;

const NOT_GIVEN = {
  ...{ size: null, bytesTransferred: null, articles: null, syncPoint: null, checksum: null },
  ...{ filename: null, localPath: null },
  ...{ diagnostic: null, errorCode: null, errorMessage: null, pesitTransferId: null },
  ...{ roundTrip: null, advice: null },
  ...{ reply: null, label: null, freeMessage: null, originalSender: null, finalReceiver: null },
  ...{ creationDate: null, replyDataCode: null, diagnosticComplement: null, answerFreeMessage: null },
  nameConfirmed: null,
  ...{ delay: 0, counts: 'ended', restartable: false },
};

/** Values for a statement: null for what is not given. */
const withNulls = (given: object): Readonly<Record<string, string | number | boolean | Buffer | null>> => ({
  ...NOT_GIVEN,
  ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
});

const reasonOf = ({ errorMessage }: { readonly errorMessage?: string | undefined }) =>
  errorMessage === undefined ? {} : { errorMessage: keptReason(errorMessage) };

/** A transfer that was taken, as if it never had been; one that somebody wants cancelled is. */
const UNTOUCHED = `
  status = case when cancel_requested then 'CANCELLED' else 'PENDING' end,
  end_time = case when cancel_requested then now() end,
  restartable = restartable and not cancel_requested,
  start_time = case when attempts > 1 then start_time end, attempts = attempts - 1, lease_until = null`;

const RENEW = `
  update transfers t set lease_until = now() + make_interval(secs => :leaseSeconds),
    bytes_transferred = coalesce(r."bytesTransferred", t.bytes_transferred), articles = coalesce(r.articles, t.articles)
  from jsonb_to_recordset(cast(:running as jsonb)) as r(id uuid, fence integer, "bytesTransferred" bigint, articles bigint)
  where t.id = r.id and t.fence = r.fence and t.status = 'IN_PROGRESS'
  returning t.id, t.cancel_requested`;

/** Whether the partner knows of the attempt is not known: the next one is a restart, to be safe; a message has none. */
const REQUEUE = `
  update transfers set
    status = case when cancel_requested then 'CANCELLED' when failures + 1 >= :attempts or type = 'MESSAGE' then 'FAILED'
      else 'PENDING' end,
    end_time = case when cancel_requested or failures + 1 >= :attempts or type = 'MESSAGE' then now() end,
    failures = failures + 1, restartable = type = 'FILE' and not cancel_requested, lease_until = null,
    diagnostic = '2-223', error_code = 'TRANSFER_FAILED', error_message = :message, diagnostic_complement = null
  where status = 'IN_PROGRESS' and case when cast(:node as text) is null then lease_until < now() else node = :node end
  returning ${columnsOf('transfers')}`;

/** The queue: who runs what, and what is kept for the next attempt. One statement each. */
export const leaseStore = (knex: Knex) => {
  const changeUnderLease = async (set: string, values: Readonly<Record<string, string | number>>): Promise<boolean> => {
    const { rows } = await knex.raw<{ rows: unknown[] }>(
      `update transfers set ${set} where ${UNDER_LEASE} returning id`,
      values,
    );
    return rows.length > 0;
  };

  return {
    /** @returns the transfer taken, if any, how many were due before, and how many queued; `countTo` for more */
    take: async (options: TakeOptions): Promise<Taken> => {
      for (let look = 1; ; look++) {
        const { rows } = await knex
          .raw<{ rows: (Job & Omit<Taken, 'job'> & { readonly chosen: boolean })[] }>(TAKE, { ...options })
          .options({ name: 'client_take' });
        const [row] = rows as [(typeof rows)[number]];
        // Without a transfer every column of it is null.
        const isTaken = (row.id as string | null) !== null;
        // Another process was quicker with the last one of that server: there may be other servers. One that only holds the
        // lock of it, and hangs, is left to the next poll.
        if (isTaken || !row.chosen || look === MAX_LOOKS) {
          const { backlog, queued } = row;
          return { job: isTaken ? row : undefined, backlog, queued };
        }
      }
    },

    /**
     * @param contentGoesWith ends at which the content of the request is given up with the same statement
     * @returns the record as it is now; undefined when the lease was lost meanwhile
     */
    end: async (
      { id, fence }: Lease,
      end: AttemptEnd,
      contentGoesWith: readonly TransferStatus[] = [],
    ): Promise<TransferRow | undefined> => {
      if ('counts' in end && end.counts === 'untouched') {
        const sql = `update transfers set ${UNTOUCHED} where ${UNDER_LEASE} returning ${columnsOf('transfers')}`;
        return (await knex.raw<{ rows: TransferRow[] }>(sql, { id, fence })).rows[0];
      }
      const { rows } = await knex
        .raw<{ rows: TransferRow[] }>(END, {
          ...withNulls({ ...end, ...reasonOf(end), id, fence }),
          contentGoesWith: [...contentGoesWith],
        })
        .options({ name: 'client_end' });
      return rows[0];
    },

    /** Longer leases for the transfers that this process runs, and their figures. @returns those that are still its own */
    renew: async (
      leaseSeconds: number,
      running: readonly (Progress & Pick<Lease, 'fence'>)[],
    ): Promise<readonly Renewed[]> => {
      const values = { leaseSeconds, running: JSON.stringify(running) };
      return (await knex.raw<{ rows: Renewed[] }>(RENEW, values)).rows;
    },

    /** Whether the database answers. @throws errors of the database */
    hear: async (): Promise<void> => {
      await knex.raw('select 1');
    },

    /** Gives back what the database says that this process took, and it does not know of: an answer to `take` was lost. */
    giveBackUnknown: async (node: string, known: readonly string[]): Promise<void> => {
      await knex.raw(
        `update transfers set ${UNTOUCHED}
         where status = 'IN_PROGRESS' and node = :node and id <> all (cast(:known as uuid[]))`,
        { node, known: [...known] },
      );
    },

    /**
     * Queues again what a dead process was running.
     * @param which all of this node's (nothing of it runs when it starts), or those whose lease has run out
     * @param attempts those that have failed so often, this time included, end as FAILED
     * @returns their records as they are now
     */
    requeueOrphans: async (
      which: { readonly node: string } | 'expired',
      attempts: number,
      message: string,
    ): Promise<readonly TransferRow[]> => {
      const node = which === 'expired' ? null : which.node;
      return (await knex.raw<{ rows: TransferRow[] }>(REQUEUE, { attempts, message, node })).rows;
    },

    /** The version that is sent from now on. @returns false when the lease was lost */
    keepSourceVersion: ({ id, fence }: Lease, version: StoredVersion): Promise<boolean> =>
      changeUnderLease('source_version = cast(:version as jsonb)', { id, fence, version: JSON.stringify(version) }),

    /** How the points are placed: to be committed before the first of them leaves. @returns false when the lease was lost */
    keepPacings: ({ id, fence }: Lease, pacings: readonly Pacing[]): Promise<boolean> =>
      changeUnderLease('pacings = cast(:pacings as jsonb)', { id, fence, pacings: JSON.stringify(pacings) }),

    /**
     * The partner knows nothing of the attempts before: a new PI 13 for a SEND, none yet for a RECEIVE.
     * @returns it (0 for none); undefined when the lease was lost
     */
    startOver: async ({ id, fence }: Lease): Promise<number | undefined> => {
      const { rows } = await knex.raw<{ rows: { pesit_transfer_id: number | null }[] }>(
        `update transfers set restartable = false, pacings = null, sync_point = null,
           pesit_transfer_id = case when direction = 'SEND' then nextval('pesit_transfer_id') end
         where ${UNDER_LEASE} returning pesit_transfer_id`,
        { id, fence },
      );
      return rows[0] && (rows[0].pesit_transfer_id ?? 0);
    },
  };
};
