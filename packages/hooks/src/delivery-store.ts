import type { AsLeader } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { Attempted } from './attempt.js';

/** An attempt that this process has taken. */
export interface TakenDelivery {
  readonly id: string;
  readonly hook_id: string;
  readonly event: string;
  readonly transfer: string;
  readonly created_at: Date;
  /** Number of this attempt; nobody else has it. */
  readonly attempts: number;
  readonly target: string;
  readonly secret: string | null;
  readonly truststore_name: string | null;
}

export type GivenUp = Pick<TakenDelivery, 'id' | 'hook_id' | 'event' | 'transfer' | 'attempts'> & {
  readonly error: string;
};

/** The room for deliveries on this pod, and for how long it takes them. */
export interface TakeTerms {
  readonly node: string;
  readonly webhooks: boolean;
  readonly executables: boolean;
  /** Deliveries at most, and of one hook. */
  readonly most: number;
  readonly each: number;
  /** How many of each hook run here already. */
  readonly running: Readonly<Record<string, number>>;
  readonly webhookLeaseMs: number;
  readonly executableLeaseMs: number;
}

/**
 * In an order of chance, so that many hooks come to their turn. Each takes its share alone: one that hangs delays no other.
 * A delivery that another pod has taken and not ended in time is due again.
 */
const TAKE = `
  with chosen as (
    select d.id, h.hook_id, h.target, h.secret, h.truststore_name
    from (
      select * from hooks where enabled and case when target like 'exec:%' then cast(:executables as boolean) else cast(:webhooks as boolean) end
      order by random()
    ) h cross join lateral (
      select d.id from hook_deliveries d where d.hook_id = h.hook_id and d.due_at <= now() order by d.due_at
      limit greatest(0, :each - coalesce(cast(cast(:running as jsonb) ->> h.hook_id as integer), 0)) for update skip locked
    ) d
    limit :most
  )
  update hook_deliveries d set state = 'RUNNING', attempts = d.attempts + 1, node = :node, started_at = now(),
    due_at = now() + interval '1 millisecond' * case when c.target like 'exec:%' then cast(:executableLeaseMs as integer) else :webhookLeaseMs end
  from chosen c where d.id = c.id
  returning d.id, d.hook_id, d.event, d.transfer, d.created_at, d.attempts, c.target, c.secret, c.truststore_name`;

/** Under a later number nothing is written. */
const UNDER_LEASE = `id = :id and attempts = :attempts and state = 'RUNNING'`;

const DELIVERED = `
  update hook_deliveries set state = 'DELIVERED', due_at = null, ended_at = now(), error = null,
    status_code = :statusCode, exit_code = :exitCode, output = :output
  where ${UNDER_LEASE} returning state`;

const IS_OVER = `cast(:gone as boolean) or now() + :delayMs * interval '1 millisecond' > tried_since + make_interval(hours => :giveUpHours)`;

const FAILED = `
  update hook_deliveries set state = case when ${IS_OVER} then 'GIVEN_UP' else 'WAITING' end,
    due_at = case when ${IS_OVER} then null else now() + :delayMs * interval '1 millisecond' end,
    ended_at = case when ${IS_OVER} then now() end,
    error = :reason, status_code = :statusCode, exit_code = :exitCode, output = :output
  where ${UNDER_LEASE} returning state`;

/**
 * Nobody tries them: their hook is gone, or disabled, or its way is switched off, and their time is over. As every statement does,
 * it comes to `hooks` before it comes to `hook_deliveries`.
 */
const GIVE_UP = `
  with over as (
    select d.id, case when h.hook_id is null then 'the hook was deleted'
        when not h.enabled then 'the hook is disabled, and hooks.give-up-after is over'
        else 'hooks of this kind are switched off (hooks.webhooks, hooks.directory), and hooks.give-up-after is over' end as reason
    from hooks h right join hook_deliveries d on h.hook_id = d.hook_id
    where d.due_at <= now() and (h.hook_id is null
      or (d.tried_since < now() - make_interval(hours => :giveUpHours)
        and not (h.enabled and case when h.target like 'exec:%' then cast(:executables as boolean) else cast(:webhooks as boolean) end)))
    limit :most for update of d skip locked
  )
  update hook_deliveries d set state = 'GIVEN_UP', due_at = null, ended_at = now(),
    error = left(o.reason || coalesce('; the last attempt ended with: ' || d.error, ''), 2000)
  from over o where d.id = o.id
  returning d.id, d.hook_id, d.event, d.transfer, d.attempts, d.error`;

const PRUNE = `
  delete from hook_deliveries where id in (
    select id from hook_deliveries where ended_at < now() - make_interval(days => :days) order by ended_at limit :most for update skip locked
  )`;

/** The oldest of those that wait; one whose attempt runs stays. */
const GIVE_UP_OLDEST = `
  with over as (
    select id from hook_deliveries where due_at is not null and state = 'WAITING' order by position limit :most for update skip locked
  )
  update hook_deliveries d set state = 'GIVEN_UP', due_at = null, ended_at = now(),
    error = left('more than hooks.max-deliveries wait' || coalesce('; the last attempt ended with: ' || d.error, ''), 2000)
  from over o where d.id = o.id
  returning d.id, d.hook_id, d.event, d.transfer, d.attempts, d.error`;

const PRUNE_OLDEST = `
  delete from hook_deliveries where id in (
    select id from hook_deliveries where ended_at is not null order by ended_at, position limit :most for update skip locked
  )`;

const EXCESS = `
  select greatest(0, (select count(*) from hook_deliveries where due_at is not null) - :kept)::int as waiting,
    greatest(0, (select count(*) from hook_deliveries where ended_at is not null) - :kept)::int as over`;

const REASON = 2000;

/** The deliveries as the pods work on them. One statement each. */
export const deliveryStore = (knex: Knex) => ({
  /** Whether there is a hook that something is ordered for. */
  isWanted: async (): Promise<boolean> => {
    const { rows } = await knex.raw<{ rows: [{ wanted: boolean }] }>(
      `select exists (select from hooks where enabled) as wanted`,
    );
    return rows[0].wanted;
  },

  /** Those that are due are this process's now, for as long as their attempt may take. */
  take: async ({ running, ...terms }: TakeTerms): Promise<readonly TakenDelivery[]> => {
    const values = { ...terms, running: JSON.stringify(running) };
    return (await knex.raw<{ rows: TakenDelivery[] }>(TAKE, values)).rows;
  },

  /** The row of the transfer as it was when its outcome was written; undefined: the delivery is a test. */
  recordOf: async <Row>(id: string): Promise<Row | undefined> => {
    const { rows } = await knex.raw<{ rows: Row[] }>(
      `select r.* from hook_deliveries d cross join lateral jsonb_populate_record(null::transfers, d.record) r
       where d.id = ? and d.record is not null`,
      [id],
    );
    return rows[0];
  },

  /**
   * How an attempt ended.
   * @param delayMs before the next one
   * @returns what the delivery is now; undefined: another has it
   */
  settle: async (
    { id, attempts }: Pick<TakenDelivery, 'id' | 'attempts'>,
    how: Attempted,
    { delayMs, giveUpHours }: { readonly delayMs: number; readonly giveUpHours: number },
  ): Promise<'DELIVERED' | 'WAITING' | 'GIVEN_UP' | undefined> => {
    const { statusCode = null, exitCode = null, output = null } = how;
    const seen = { id, attempts, statusCode, exitCode, output };
    const statement =
      how.outcome === 'delivered'
        ? knex.raw<{ rows: { state: 'DELIVERED' }[] }>(DELIVERED, seen)
        : knex.raw<{ rows: { state: 'WAITING' | 'GIVEN_UP' }[] }>(FAILED, {
            ...seen,
            ...{ delayMs, giveUpHours, gone: how.outcome === 'failed' && how.gone === true },
            reason: how.reason.slice(0, REASON),
          });
    return (await statement).rows[0]?.state;
  },

  /** @returns whether this disabled it */
  disable: async (
    { hook_id: id, target }: Pick<TakenDelivery, 'hook_id' | 'target'>,
    reason: string,
  ): Promise<boolean> => {
    const changed = { enabled: false, disabled_reason: reason, updated_at: knex.fn.now() };
    return (await knex('hooks').where({ hook_id: id, target, enabled: true }).update(changed)) > 0;
  },

  /** @returns those that were given up now, at most `most` */
  giveUp: async (
    asLeader: AsLeader,
    terms: Pick<TakeTerms, 'webhooks' | 'executables' | 'most'> & { readonly giveUpHours: number },
  ): Promise<readonly GivenUp[]> =>
    asLeader(async (transaction) => (await transaction.raw<{ rows: GivenUp[] }>(GIVE_UP, { ...terms })).rows),

  /** @returns how many old ones were removed, at most `most` */
  prune: async (asLeader: AsLeader, days: number, most: number): Promise<number> =>
    asLeader(async (transaction) => (await transaction.raw<{ rowCount: number }>(PRUNE, { days, most })).rowCount),

  /** How many more than `kept` wait, and how many more than that are over. */
  excess: async (kept: number): Promise<{ readonly waiting: number; readonly over: number }> => {
    const { rows } = await knex.raw<{ rows: [{ waiting: number; over: number }] }>(EXCESS, { kept });
    return rows[0];
  },

  /** @returns those that were given up now, at most `most` */
  giveUpOldest: async (asLeader: AsLeader, most: number): Promise<readonly GivenUp[]> =>
    asLeader(async (transaction) => (await transaction.raw<{ rows: GivenUp[] }>(GIVE_UP_OLDEST, { most })).rows),

  /** @returns how many that are over were removed, at most `most` */
  pruneOldest: async (asLeader: AsLeader, most: number): Promise<number> =>
    asLeader(async (transaction) => (await transaction.raw<{ rowCount: number }>(PRUNE_OLDEST, { most })).rowCount),

  /** How many wait, and the oldest of them for how many seconds. */
  waiting: async (): Promise<{ readonly total: number; readonly oldest: number }> => {
    const { rows } = await knex.raw<{ rows: [{ total: number; oldest: number }] }>(
      `select count(*)::int as total, coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as oldest
       from hook_deliveries where due_at is not null`,
    );
    return rows[0];
  },
});

export type DeliveryStore = ReturnType<typeof deliveryStore>;
