import { open } from 'node:fs/promises';
import { resolve } from 'node:path';

import { codeOf } from '@pesit-node/ground';

import type { Caller } from '../audit/entry.js';
import { validation } from '../errors.js';
import { secretFileOf } from '../fields/schemas.js';
import type { AppliedSecrets, Marks } from './applied-secrets.js';
import type { DeclaredItem, DeclaredSecret } from './declared-list.js';
import type { DeclaredResource } from './resource.js';

type Body = Readonly<Record<string, unknown>>;

export type Applied = 'created' | 'changed' | 'unchanged';

export interface ApplyItem {
  readonly resource: DeclaredResource;
  readonly item: DeclaredItem;
  /** Undefined: there is none. */
  readonly row: object | undefined;
  readonly marks: Marks;
  readonly applied: AppliedSecrets;
  readonly by: Caller;
  /** Relative paths of files start here. */
  readonly cwd: string;
}

/** Bytes of a file that holds one secret. */
const MOST_BYTES = 4096;

/** @throws {ApiError} 400 that names the file, and nothing of what it holds */
const readSecret = async (field: string, path: string): Promise<string> => {
  const refuse = (why: string): never => {
    throw validation([{ field: secretFileOf(field), message: why }]);
  };
  try {
    const file = await open(path);
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(MOST_BYTES + 1), 0, MOST_BYTES + 1, 0);
      if (bytesRead > MOST_BYTES) return refuse(`expected at most ${MOST_BYTES} bytes in ${path}`);
      // Editors and `echo` end a line; no password has line feeds.
      return buffer.toString('utf8', 0, bytesRead).replace(/\r?\n$/, '');
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined) throw error;
    return refuse(`${path} cannot be read (${code}): mount it, or put ${field} in its place`);
  }
};

const valueOf = async (
  { list }: DeclaredResource,
  { field, given }: DeclaredSecret,
  cwd: string,
): Promise<string | null> => {
  if ('value' in given) return given.value;
  const value = await readSecret(field, resolve(cwd, given.path));
  const fault = list.faultOf(field, value);
  if (fault !== undefined) throw validation([{ field: secretFileOf(field), message: `${fault}, in ${given.path}` }]);
  return value;
};

/**
 * Creates what an item says, or changes it to that; what is so already is not touched. A secret counts when none is stored, or when it is
 * another one in the file than was applied last: what somebody else has set since stays, the partner itself for one.
 * @throws {ApiError} when it is refused
 */
export const applyItem = async ({ resource, item, row, marks, applied, by, cwd }: ApplyItem): Promise<Applied> => {
  const { fields } = resource.list;
  const { id, body, secrets } = item;
  const values = await Promise.all(
    secrets.map(async (secret) => ({ ...secret, value: await valueOf(resource, secret, cwd) })),
  );
  const placeOf = (field: string) => ({ table: fields.table, id, field });
  const remember = async (isNew: (field: string) => boolean): Promise<void> => {
    for (const { field, value } of values)
      if (value !== null && isNew(field)) await applied.remember(placeOf(field), value);
  };
  if (row === undefined) {
    const lacking = resource.list.lacking(item);
    if (lacking.length > 0) throw validation(lacking);
    const whole = { ...body, ...Object.fromEntries(values.map(({ field, value }) => [field, value])) };
    await resource.create(whole, by);
    await remember(() => true);
    return 'created';
  }
  const changes = fields.changes(body, row);
  const given: Record<string, unknown> = {};
  const fresh = new Set<string>();
  for (const { field, column, value } of values) {
    if (value === null) {
      if ((row as Body)[column] !== null) given[field] = null;
      continue;
    }
    const known = applied.compare(marks, placeOf(field), value);
    if (known !== 'same') fresh.add(field);
    const isStored = (row as Body)[column] !== null;
    const mayBeNew = known === 'other' || known === 'unknown';
    const isNew = !isStored || (mayBeNew && !(await resource.matches(row, column, value)));
    if (isNew || resource.goesWith?.(row, column, changes) === true) given[field] = value;
  }
  const isChanged = Object.keys(changes).length + Object.keys(given).length > 0;
  if (isChanged) await resource.change(row, { ...body, ...given }, by);
  await remember((field) => fresh.has(field));
  return isChanged ? 'changed' : 'unchanged';
};
