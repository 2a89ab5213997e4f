import { hotStatement } from '@pesit-node/service';

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

/** From then on it is not begun: `EXPIRE` ends it. */
const IN_TIME = '(expires_at is null or expires_at > now())';

/** A server's rows of one priority that were not tried yet, in their order, and those whose next attempt is due. */
const FRESH = `status = 'PENDING' and next_attempt_at is null and order_key is null and ${IN_TIME}`;
const DELAYED = `status = 'PENDING' and next_attempt_at <= now() and order_key is null and ${IN_TIME}`;

/** Sessions that a server has to spare; while its circuit is open none, then one for a probe. */
const MOST = 'least(coalesce(s.max_connections, :maxPerServer), :maxPerServer)';
const SPARE = `case when s.circuit_until is null then ${MOST}
  when s.circuit_until > now() or s.circuit_probe_until > now() then 0 else least(1, ${MOST}) end - coalesce(b.running, 0)`;
const AS_SPARE = `limit greatest(0, least(:slots, ${SPARE}))`;

/**
 * Takes, one after the other, the most urgent and then oldest transfer of the server that has the fewest under way, and a session to
 * spare: a slow partner keeps the others waiting no longer than for a slot, and what is urgent for one server keeps no other waiting.
 * Several processes never take the same one. Its cost does not grow with the queue: a look at two indexes for each server and
 * priority, as far as there are slots, one at each order, and rows are counted no further than somebody wants to know.
 *
 * `nth` of a server's rows is the order in which they would be taken from it alone: by priority, and of the first that was not tried
 * and the first that is due the one with the lower position, so that a delayed row comes no sooner than those of its priority that
 * were due before it (`turn`). It is taken when that server runs `running + nth - 1`, which puts the rows of all servers in order.
 * Locked rows are left to whoever has them, for the next ones of the same server. `abs`: see `end-statement.ts`.
 *
 * A server whose circuit is open has one probe: who writes it down first (`probes`), with the row locked, has it.
 *
 * Of each order only the first row that did not end well is looked at (`heads`): whatever that waits for, the next ones wait, too.
 */
const TAKE = `
  with recursive busy as (
    select server_id, count(*) as running from transfers where status = 'IN_PROGRESS' group by server_id
  ), heads as (
    (select id, server_id, order_key, position, priority, status, next_attempt_at, expires_at
     from transfers where order_key is not null order by server_id, order_key, position limit 1)
    union all
    select n.* from heads h cross join lateral (
      select id, server_id, order_key, position, priority, status, next_attempt_at, expires_at from transfers
      where order_key is not null and (server_id, order_key) > (h.server_id, h.order_key)
      order by server_id, order_key, position limit 1
    ) n
  ), counted as (
    select least(fresh + due + ordered, :countTo)::integer as backlog,
      least(fresh + delayed + ordered, :countTo)::integer as queued
    from (
      select ${countedUpTo(':countTo', 'fresh')} as fresh, ${countedUpTo(':countTo', 'due')} as due,
        ${countedUpTo(':countTo', 'delayed')} as delayed, ${countedUpTo(':countTo', 'ordered')} as ordered
    ) parts
  ), candidates as (
    select s.id, s.circuit_until is not null as is_probe, coalesce(b.running, 0) as running, one.position, one.priority, one.kind, one.transfer, one.nth
    from remote_servers s left join busy b on b.server_id = s.id
    cross join lateral (
      select position, priority, kind, transfer,
        row_number() over (order by priority, turn, due nulls first, position) as nth
      from (
        (select position, priority, 'fresh' as kind, position as turn, null::timestamptz as due, null::uuid as transfer
         from transfers where server_id = s.id and ${FRESH} order by priority, position ${AS_SPARE})
        union all
        select position, priority, 'delayed', max(position) over (partition by priority order by due, position), due, null
        from (values (0), (1), (2)) class (number) cross join lateral (
          select position, priority, next_attempt_at as due
          from transfers where server_id = s.id and priority = class.number and ${DELAYED} order by next_attempt_at ${AS_SPARE}
        ) delayed
        union all
        (select position, priority, 'ordered', position, null, id
         from heads where server_id = s.id and status = 'PENDING' and (next_attempt_at is null or next_attempt_at <= now())
           and ${IN_TIME}
         order by priority, position ${AS_SPARE})
      ) either
      order by nth ${AS_SPARE}
    ) one
    where s.enabled
  ), ranked as (
    select *, row_number() over (order by running + nth, priority, position) as rank from candidates
  ), first as (
    select ranked.* from ranked cross join counted
    where rank <= :slots
      and (rank <= :freely or (running = 0 and nth = 1) or counted.queued - rank + 1 >= :minQueued)
  ), probes as (
    update remote_servers s set circuit_probe_until = now() + make_interval(secs => :leaseSeconds)
    from first f where f.is_probe and s.id = f.id and s.circuit_until <= now() and coalesce(s.circuit_probe_until <= now(), true)
    returning s.id
  ), winners as (
    select * from first where not is_probe or id in (select id from probes)
  ), chosen as (
    select id, priority, count(*) filter (where kind = 'fresh') as fresh, count(*) filter (where kind = 'delayed') as delayed
    from winners group by id, priority
  ), fresh as (
    select one.id, one.position, one.due from chosen c cross join lateral (
      select id, position, case when attempts = 0 then created_time end as due
      from transfers where server_id = c.id and priority = c.priority and ${FRESH}
      order by position limit c.fresh for update skip locked
    ) one
  ), delayed as (
    select one.id, one.position, one.due from chosen c cross join lateral (
      select id, position, next_attempt_at as due
      from transfers where server_id = c.id and priority = c.priority and ${DELAYED}
      order by next_attempt_at limit c.delayed for update skip locked
    ) one
  ), ordered as (
    select one.id, one.position, one.due from winners w cross join lateral (
      select id, position, coalesce(next_attempt_at, case when attempts = 0 then created_time end) as due
      from transfers where id = w.transfer and status = 'PENDING' for update skip locked
    ) one
  ), next as materialized (
    select * from fresh union all select * from delayed union all select * from ordered
  ), taken as (
    update transfers t set status = 'IN_PROGRESS', start_time = coalesce(t.start_time, now()), attempts = t.attempts + 1,
      attempt_time = now(), attempt_place = null,
      next_attempt_at = null, node = :node, fence = t.fence + 1, lease_until = now() + make_interval(secs => :leaseSeconds),
      pesit_transfer_id = case when t.direction = 'SEND' and t.pesit_transfer_id is null
        then nextval('pesit_transfer_id') else t.pesit_transfer_id end
    from next, remote_servers s where t.id = next.id and next.position = abs(next.position) and s.id = t.server_id
    returning ${columnsOf('t')}, to_jsonb(s) as server, t.position,
      (extract(epoch from now() - next.due) * 1000)::float8 as waited_ms
  )
  select taken.*, counted.backlog, counted.queued, exists (select from winners) as chosen
  from counted left join taken on true
  order by taken.priority, taken.position`;

/** A row of the answer; without a transfer every column of one is null. */
export type TakeAnswer = Job & Omit<Taken, 'jobs'> & { readonly chosen: boolean };

export const takeNext = hotStatement<TakeAnswer>('client_take', TAKE);
