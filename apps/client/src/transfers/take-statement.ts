import { columnsOf, countedUpTo } from './row.js';
import type { Job } from './row.js';

export interface TakeOptions {
  readonly node: string;
  readonly leaseSeconds: number;
  /** Sessions that one remote server may have when its own maxConnections does not say less. */
  readonly maxPerServer: number;
  /** Take no more than so many. */
  readonly slots: number;
  /** So many of them whatever waits; the next ones, */
  readonly freely: number;
  /** only while at least so many are queued, due or not, or for a server of whose transfers none runs. */
  readonly minQueued: number;
  /** How far to count those that wait. */
  readonly countTo: number;
}

export interface Taken {
  readonly jobs: readonly Job[];
  /** Transfers that were due before, and that were queued. */
  readonly backlog: number;
  readonly queued: number;
}

/** A server's rows that were not tried yet, in their order, and those whose next attempt is due. */
const FRESH = `status = 'PENDING' and next_attempt_at is null order by position`;
const DELAYED = `status = 'PENDING' and next_attempt_at <= now() order by next_attempt_at`;

/** Sessions that a server has to spare. */
const SPARE = `least(coalesce(s.max_connections, :maxPerServer), :maxPerServer) - coalesce(b.running, 0)`;

/**
 * Takes, one after the other, the oldest transfer of the server that has the fewest under way, and a session to spare: a slow
 * partner keeps the others waiting no longer than for a slot. Several processes never take the same one. Its cost does not grow with
 * the queue: a look at two indexes for each server, as far as there are slots, and rows are counted no further than somebody wants
 * to know.
 *
 * `nth` of a server's rows is the order in which they would be taken from it alone: of the first that was not tried and the first
 * that is due the one with the lower position, so that a delayed row comes no sooner than those that were due before it (`turn`).
 * It is taken when that server runs `running + nth - 1`, which puts the rows of all servers in order. Locked rows are left to
 * whoever has them, for the next ones of the same server. `abs`: see `end-statement.ts`.
 */
export const TAKE = `
  with busy as (
    select server_id, count(*) as running from transfers where status = 'IN_PROGRESS' group by server_id
  ), counted as (
    select least(fresh + due, :countTo)::integer as backlog, least(fresh + delayed, :countTo)::integer as queued from (
      select ${countedUpTo(':countTo', 'is null')} as fresh, ${countedUpTo(':countTo', '<= now()')} as due,
        ${countedUpTo(':countTo', 'is not null')} as delayed
    ) parts
  ), candidates as (
    select s.id, coalesce(b.running, 0) as running, one.position, one.is_fresh, one.nth
    from remote_servers s left join busy b on b.server_id = s.id
    cross join lateral (
      select position, is_fresh, row_number() over (order by turn, due nulls first, position) as nth from (
        (select position, true as is_fresh, position as turn, null::timestamptz as due
         from transfers where server_id = s.id and ${FRESH} limit greatest(0, least(:slots, ${SPARE})))
        union all
        select position, false, max(position) over (order by due, position), due from (
          select position, next_attempt_at as due
          from transfers where server_id = s.id and ${DELAYED} limit greatest(0, least(:slots, ${SPARE}))
        ) delayed
      ) either
      order by nth limit greatest(0, least(:slots, ${SPARE}))
    ) one
    where s.enabled
  ), ranked as (
    select *, row_number() over (order by running + nth, position) as rank from candidates
  ), chosen as (
    select id, count(*) filter (where is_fresh) as fresh, count(*) filter (where not is_fresh) as delayed
    from ranked cross join counted
    where rank <= :slots
      and (rank <= :freely or (running = 0 and nth = 1) or counted.queued - rank + 1 >= :minQueued)
    group by id
  ), fresh as (
    select one.id, one.position from chosen c cross join lateral (
      select id, position from transfers where server_id = c.id and ${FRESH} limit c.fresh for update skip locked
    ) one
  ), delayed as (
    select one.id, one.position from chosen c cross join lateral (
      select id, position from transfers where server_id = c.id and ${DELAYED} limit c.delayed for update skip locked
    ) one
  ), next as (
    select id, position from (select * from fresh union all select * from delayed) either where position = abs(position)
  ), taken as (
    update transfers t set status = 'IN_PROGRESS', start_time = coalesce(t.start_time, now()), attempts = t.attempts + 1,
      next_attempt_at = null, node = :node, fence = t.fence + 1, lease_until = now() + make_interval(secs => :leaseSeconds),
      pesit_transfer_id = case when t.direction = 'SEND' and t.pesit_transfer_id is null
        then nextval('pesit_transfer_id') else t.pesit_transfer_id end
    from next, remote_servers s where t.id = next.id and s.id = t.server_id
    returning ${columnsOf('t')}, to_jsonb(s) as server, t.position
  )
  select taken.*, counted.backlog, counted.queued, exists (select from chosen) as chosen
  from counted left join taken on true
  order by taken.position`;

/** A row of the answer; without a transfer every column of one is null. */
export type TakeAnswer = Job & Omit<Taken, 'jobs'> & { readonly chosen: boolean };
