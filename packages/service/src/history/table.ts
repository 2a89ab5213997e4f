import type { Knex } from 'knex';

/** SQL with a `?` for each value, about one row of the table. */
export interface Condition {
  readonly sql: string;
  readonly values?: readonly Knex.Value[];
  /** Columns that it reads. */
  readonly columns: readonly string[];
}

/** A way to the records: filters that an index serves, with the records in order of time. */
export interface Way<F> {
  /** Filters that need not be looked at again. */
  readonly serves: readonly (keyof F & string)[];
  /** Values for which an index is there. Default: all. */
  readonly when?: (filter: F) => boolean;
  /**
   * Disjoint conditions, each with an index of its own that has the order: what lies in several is merged. Default: one, what it
   * serves.
   */
  readonly arms?: readonly string[];
}

/** A table of records that are listed by time, and its indexes as far as lists use them. */
export interface HistoryTable<F extends Period> {
  readonly table: string;
  /** A timestamptz that never changes, as the interface names it and as the table does. */
  readonly time: { readonly field: string; readonly column: string };
  readonly id: { readonly column: string; readonly type: 'bigint' | 'uuid' };
  /** The conditions of those filters that are given, the period aside. */
  readonly conditions: (filter: F) => Partial<Record<keyof F & string, Condition>>;
  /** The most selective first; the last serves nothing, and has all records. */
  readonly ways: readonly Way<F>[];
}

export interface Period {
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
}

/** How far lists look, so that each answer comes soon, however many records there are. */
export interface HistoryBounds {
  /** Records of an index that are counted, and how far pages are found by number. */
  readonly counted: number;
  /** Records that are looked at one by one for what no index serves, and that are sorted. */
  readonly searched: number;
}

export const HISTORY_BOUNDS: HistoryBounds = { counted: 10_000, searched: 5_000 };
