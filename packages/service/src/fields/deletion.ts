import type { Knex } from 'knex';
import { z } from 'zod';

import { capital, conflict } from '../errors.js';
import { flagFilter } from '../history/conditions.js';

/** When a thing is in use, and what becomes of that when it is deleted nevertheless. */
export interface Uses<Row> {
  /** By what it is in use, each in words: `2 transfers that run: 17, 18`. Read in the transaction of the deletion, its row locked. */
  readonly of: (knex: Knex, row: Row) => Promise<readonly string[]>;
  /** The effect of `force=true`, as a sentence. */
  readonly forced: string;
}

export const IN_USE = 'It is in use; `message` says by what.';

/** @param forced see `Uses` */
export const deletionQuery = (forced: string) =>
  z.strictObject({ force: flagFilter().meta({ description: `Deletes it though it is in use. ${forced}` }) });

/** @throws {ApiError} 409 that says by what it is in use */
export const refuseUsed = (noun: string, id: string | number, uses: readonly string[], forced: string): void => {
  if (uses.length === 0) return;
  const named = `${capital(noun)} ${JSON.stringify(id)}`;
  throw conflict(`${named} is in use: ${uses.join('; ')}. Let that end first, or ask with force=true: ${forced}`);
};

/** How many names a sentence shows. */
const SHOWN = 5;

/** `2 transfers that run: 17, 18`; nothing where there are none. */
export const useOf = (what: (count: number) => string, names: readonly (string | number)[]): readonly string[] => {
  if (names.length === 0) return [];
  const more = names.length > SHOWN ? ` and ${names.length - SHOWN} more` : '';
  return [`${what(names.length)}: ${names.slice(0, SHOWN).join(', ')}${more}`];
};
