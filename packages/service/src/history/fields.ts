import { z } from 'zod';

import { count, pageOf, pagingFields } from '../http/paging.js';
import type { Page, PagingOptions } from '../http/paging.js';
import { HISTORY_BOUNDS } from './table.js';
import type { HistoryTable } from './table.js';

/** Where a page ends: the time of its last record in microseconds since 1970, and its id. */
export interface HistoryKey {
  readonly time: string;
  readonly id: string;
}

const KEYS = {
  bigint: /^(\d{1,16})\.([1-9]\d{0,15})$/,
  uuid: /^(\d{1,16})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/,
};

/** Reads what `next` of a page said. */
export const keyField = (type: HistoryTable<object>['id']['type']) =>
  z
    .string()
    .transform((value, context): HistoryKey => {
      const [, time, id] = KEYS[type].exec(value) ?? [];
      if (time !== undefined && id !== undefined) return { time, id };
      context.addIssue({ code: 'custom', message: 'expected what `next` of the page before says' });
      return z.NEVER;
    })
    .optional()
    .meta({ description: '`next` of the page before: the records that follow it, however deep.' });

export const keyText = ({ time, id }: HistoryKey): string => `${time}.${id}`;

const MANY = HISTORY_BOUNDS.searched.toLocaleString('en');

/** The query fields of a page of a history: `page`, `size`, `sort` and `after`. */
export const historyPagingFields = <F extends string>(
  options: PagingOptions<F>,
  type: HistoryTable<object>['id']['type'],
) => {
  const fields = pagingFields(options);
  const [always] = options.defaultSort.split(',');
  return {
    ...fields,
    page: count(0, 100_000_000, 0).meta({
      description: `Index of the page, from 0; to the record ${HISTORY_BOUNDS.counted.toLocaleString('en')} alone: from there on with \`after\`.`,
    }),
    sort: fields.sort.meta({
      description: `\`field,asc\` or \`field,desc\`, with a field of: ${Object.keys(options.sortable).join(', ')}; default \`${options.defaultSort}\`. Among more than ${MANY} records by \`${always ?? ''}\` alone.`,
    }),
    after: keyField(type),
  };
};

/** A page of a history. */
export interface HistoryPage<T> extends Page<T> {
  /** False: there are at least `totalElements`. */
  readonly totalIsExact: boolean;
  /** `after` of the page that follows; null: there is none. */
  readonly next: string | null;
}

/** Its schema, for the document of the interface. */
export const historyPageOf = <T extends z.ZodRawShape>(record: z.ZodObject<T>) =>
  pageOf(record).extend({
    totalIsExact: z.boolean().meta({
      description: `False: there are \`totalElements\` or more. Records are counted up to ${HISTORY_BOUNDS.counted.toLocaleString('en')}, and looked at one by one up to ${MANY}.`,
    }),
    next: z.string().nullable().meta({
      description:
        '`after` of the page that follows; null: there is none. A page that is not full, and has a `next`, came to the end of what is searched at a time.',
    }),
  });
