import { Batches } from '@pesit-node/service';
import type { Pacing } from '@pesit-node/storage';
import type { TransferStatus } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import { writeEnds } from './end-statement.js';
import type { EndedRow } from './end-statement.js';
import { withAttempt } from './former-attempts.js';
import { columnsOf } from './row.js';
import type { AttemptEnd, Progress, StoredVersion, TransferRow } from './row.js';
import { takeNext } from './take-statement.js';
import type { TakeAnswer, Taken, TakeOptions } from './take-statement.js';

/** One lease of a transfer: nobody else has this number. */
export type Lease = Pick<TransferRow, 'id' | 'fence'>;

/** Outcome of renewing a lease. */
export interface Renewed {
  readonly id: string;
  /** Somebody wants the transfer cancelled. */
  readonly cancel_requested: boolean;
}

/** How often one take asks again when other processes are quicker. */
const MAX_LOOKS = 5;

/** Under a lease of an older number nothing is written. */
const UNDER_LEASE = `id = :id and status = 'IN_PROGRESS' and fence = :fence`;

/** A transfer that was taken, as if it never had been; one that somebody wants cancelled is. */
const UNTOUCHED = `
  status = case when cancel_requested then 'CANCELLED' else 'PENDING' end,
  end_time = case when cancel_requested then now() end,
  restartable = restartable and not cancel_requested,
  start_time = case when attempts > 1 then start_time end, attempts = attempts - 1, lease_until = null`;

const RENEW = `
  update transfers t set lease_until = now() + make_interval(secs => :leaseSeconds),
    bytes_transferred = coalesce(r."bytesTransferred", t.bytes_transferred), articles = coalesce(r.articles, t.articles),
    sync_point = coalesce(r."syncPoint", t.sync_point), announced = coalesce(r.announced, t.announced)
  from jsonb_to_recordset(cast(:running as jsonb)) as
    r(id uuid, fence integer, "bytesTransferred" bigint, articles bigint, "syncPoint" integer, announced bigint)
  where t.id = r.id and t.fence = r.fence and t.status = 'IN_PROGRESS'
  returning t.id, t.cancel_requested`;

/** Whether the partner knows of the attempt is not known: the next one is a restart, to be safe; a message has none. */
const REQUEUE = `
  update transfers t set former_attempts = ${withAttempt({
    status: `case when cancel_requested then 'CANCELLED' else 'FAILED' end`,
    diagnostic: `'2-223'`,
    errorMessage: 'cast(:message as text)',
    bytesTransferred: 'bytes_transferred',
    articles: 'articles',
    syncPoint: 'sync_point',
    place: 'cast(null as jsonb)',
  })},
    status = case when cancel_requested then 'CANCELLED' when failures + 1 >= :attempts or type = 'MESSAGE' then 'FAILED'
      else 'PENDING' end,
    end_time = case when cancel_requested or failures + 1 >= :attempts or type = 'MESSAGE' then now() end,
    failures = failures + 1, restartable = type = 'FILE' and not cancel_requested, lease_until = null,
    diagnostic = '2-223', error_code = 'TRANSFER_FAILED', error_message = :message, diagnostic_complement = null
  where status = 'IN_PROGRESS' and case when cast(:node as text) is null then lease_until < now() else node = :node end
  returning ${columnsOf('t')}`;

/** Those that should have begun by now, some of them. `:message` says so; what the last attempt ended with follows it. */
const EXPIRE = `
  update transfers set status = 'FAILED', end_time = now(), next_attempt_at = null,
    diagnostic = '2-221', error_code = 'TIMEOUT',
    error_message = left(:message || coalesce('; the last attempt ended with: ' || error_message, ''), 2000)
  where id in (
    select id from transfers where status = 'PENDING' and expires_at <= now()
    order by expires_at limit :most for update skip locked
  )
  returning ${columnsOf('transfers')}`;

/**
 * The queue: who runs what, and what is kept for the next attempt. One statement each.
 * @param underWay transfers that this process runs
 */
export const leaseStore = (knex: Knex, underWay?: () => number) => {
  const ends = new Batches({ run: (rows: readonly EndedRow[]) => writeEnds(rows, 'together', knex), underWay });
  const changeUnderLease = async (set: string, values: Readonly<Record<string, string | number>>): Promise<boolean> => {
    const { rows } = await knex.raw<{ rows: unknown[] }>(
      `update transfers set ${set} where ${UNDER_LEASE} returning id`,
      values,
    );
    return rows.length > 0;
  };

  return {
    /** `countTo` for more than so many that are due, or queued */
    take: async (options: TakeOptions): Promise<Taken> => {
      for (let look = 1; ; look++) {
        const rows = await takeNext(knex, { ...options });
        const [{ backlog, queued, chosen }] = rows as [TakeAnswer];
        const jobs = rows.filter(({ id }) => (id as string | null) !== null);
        // Other processes were quicker with the last ones of those servers: there may be other servers. One that only holds the
        // lock of a row, and hangs, is left to the next poll.
        if (jobs.length > 0 || !chosen || look === MAX_LOOKS) return { jobs, backlog, queued };
      }
    },

    /**
     * Written with others that end now; what those left out, because it is locked or no longer ours, is tried alone.
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
      const row = { id, fence, end, contentGoesWith };
      return (await ends.add(row)) ?? (await writeEnds([row], 'alone', knex))[0];
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

    /** @param most so many at a time @returns the records of those whose `expires_at` has come, FAILED now */
    expire: async (most: number, message: string): Promise<readonly TransferRow[]> =>
      (await knex.raw<{ rows: TransferRow[] }>(EXPIRE, { most, message })).rows,

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
