/** Answers of a service as a person reads them. */
import { table } from '../frame/figures.js';
import type { Terminal } from '../frame/terminal.js';

type Row = Readonly<Record<string, unknown>>;

export const shown = (value: unknown): string => {
  if (value === null || value === undefined) return '-';
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.every((one) => typeof one !== 'object')) return value.join(', ') || '-';
  return JSON.stringify(value);
};

const rowsIn = (body: unknown): readonly Row[] => {
  if (Array.isArray(body)) return body as Row[];
  const { content } = (body ?? {}) as { readonly content?: unknown };
  return Array.isArray(content) ? (content as Row[]) : [];
};

/** @param columns fields to show; those that no row has are left out. Empty: all of the first row */
export const sayTable = (terminal: Terminal, body: unknown, columns: readonly string[]): void => {
  const rows = rowsIn(body);
  if (rows.length === 0) {
    terminal.note('nothing found');
    return;
  }
  const wanted = columns.length === 0 ? Object.keys(rows[0] ?? {}) : columns;
  const there = wanted.filter((name) => rows.some((row) => row[name] !== undefined));
  for (const line of table(
    there,
    rows.map((row) => there.map((name) => shown(row[name]))),
  ))
    terminal.say(line);
  const { totalElements, totalIsExact, number, totalPages } = (body ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof totalElements !== 'number' || totalElements <= rows.length) return;
  const exactly = totalIsExact === false ? 'more than ' : '';
  terminal.note(
    `${rows.length} of ${exactly}${totalElements} (page ${shown(number)} of ${shown(totalPages)}; --page, --size)`,
  );
};

export const sayObject = (terminal: Terminal, body: unknown): void => {
  if (typeof body !== 'object' || body === null) {
    terminal.say(shown(body));
    return;
  }
  const entries = Object.entries(body);
  const width = Math.max(0, ...entries.map(([name]) => name.length));
  const lists = entries.filter(([, value]) => isList(value));
  for (const [name, value] of entries) {
    if (!isList(value)) terminal.say(`${name.padEnd(width)}  ${shown(value)}`);
  }
  for (const [name, rows] of lists) sayList(terminal, name, rows as readonly Row[]);
};

/** Objects of one kind: the attempts of a transfer, the groups of a statistic. */
const isList = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'object' && one !== null);

/** `{ a: { b: 1 } }` as `{ 'a.b': 1 }`, one level deep; what is nested deeper is left to `--json`. */
const flat = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).flatMap(([name, value]): (readonly [string, unknown])[] => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[name, value]];
      const parts = Object.entries(value).filter(([, part]) => typeof part !== 'object');
      return parts.map(([part, one]) => [`${name}.${part}`, one]);
    }),
  );

/** A table with the columns that have a value in some row. */
const sayList = (terminal: Terminal, name: string, list: readonly Row[]): void => {
  const rows = list.map(flat);
  const columns = [...new Set(rows.flatMap(Object.keys))].filter((column) =>
    rows.some((row) => row[column] !== null && row[column] !== undefined),
  );
  terminal.say('');
  terminal.say(`${name}:`);
  const cells = rows.map((row) => columns.map((column) => shown(row[column])));
  for (const line of table(columns, cells)) terminal.say(`  ${line}`);
};
