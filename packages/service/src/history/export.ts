import type { Role } from '../auth/roles.js';
import { answerText } from '../http/answer-text.js';
import type { Answer, Endpoint, Routes } from '../http/routes.js';
import { endpoint } from '../http/validate.js';
import type { z } from 'zod';

type Value = string | number | boolean | Date | null | undefined;
/** A record without records in it. */
export type FlatRecord = Readonly<Record<string, Value>>;

/** Beginnings of a text that a spreadsheet takes for a formula (OWASP, CSV Injection). */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

const csvValue = (value: Value): string => {
  if (value === null || value === undefined) return '';
  if (value instanceof Date) return value.toISOString();
  if (typeof value !== 'string') return String(value);
  const harmless = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]|^'|^\s|\s$/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
};

const csvLine = (values: readonly Value[]): string => `${values.map(csvValue).join(',')}\r\n`;

/** RFC 4180, with a line of names. A text that a spreadsheet would take for a formula gets a `'` in front. */
export async function* asCsv(
  fields: readonly string[],
  batches: AsyncIterable<readonly FlatRecord[]>,
): AsyncGenerator<string> {
  let heading = csvLine(fields);
  for await (const records of batches) {
    const lines = records.map((record) => csvLine(fields.map((field) => record[field])));
    const piece = heading + lines.join('');
    heading = '';
    yield piece;
  }
  if (heading !== '') yield heading;
}

/** A record a line, as a page has it. */
export async function* asJsonLines(batches: AsyncIterable<readonly FlatRecord[]>): AsyncGenerator<string> {
  for await (const records of batches) yield records.map((record) => `${JSON.stringify(record)}\n`).join('');
}

export interface ExportOptions<Q extends z.ZodType> {
  /** Path of the collection: `/api/v1/transfers`. */
  readonly path: string;
  /** Least role of who may have it. Default: `viewer`. */
  readonly role?: Role;
  /** The filters. */
  readonly query: Q;
  /** Fields of a record, in order. */
  readonly fields: readonly string[];
  readonly batches: (filter: z.output<Q>) => AsyncIterable<readonly FlatRecord[]>;
}

/** A history as a file: `<path>/export.csv` and `<path>/export.jsonl`. To be mounted before `<path>/:id`. */
export const exportRoutes = <Q extends z.ZodType>(
  routes: Routes,
  { path, role = 'viewer', query, fields, batches }: ExportOptions<Q>,
): void => {
  const formats = [
    {
      ...{ extension: 'csv', contentType: 'text/csv', text: (filter: z.output<Q>) => asCsv(fields, batches(filter)) },
      description: "CSV (RFC 4180), newest first. A text that a spreadsheet would take for a formula begins with `'`.",
    },
    {
      ...{ extension: 'jsonl', contentType: 'application/x-ndjson' },
      text: (filter: z.output<Q>) => asJsonLines(batches(filter)),
      description: 'A JSON object a line, newest first.',
    },
  ] as const;
  for (const { extension, contentType, text, description } of formats) {
    const answers: Readonly<Record<number, Answer>> = { 200: { contentType, description } };
    const get: Endpoint = endpoint(
      {
        summary: `The records that the filters leave, as ${extension === 'csv' ? 'CSV' : 'JSON lines'}`,
        role,
        query,
        answers,
      },
      async ({ query: filter, res }) => {
        const file = { type: contentType, filename: `${path.split('/').at(-1) ?? ''}.${extension}` };
        await answerText(res, file, text(filter as z.output<Q>));
      },
    );
    routes.resource(`${path}/export.${extension}`, { get });
  }
};
