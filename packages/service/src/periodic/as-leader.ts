import type { Knex } from 'knex';

/**
 * Writes as the leader: in a transaction that is refused to a leader that was late, and that ends before another one leads. A
 * leader-only job makes every write this way: the runner asks who leads before a run begins, and a run may stand still within.
 */
export type AsLeader = <T>(work: (knex: Knex) => Promise<T>) => Promise<T>;
