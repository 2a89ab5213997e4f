import { createHash } from 'node:crypto';

import { validation } from '@pesit-node/service';

import type { NewTransfer } from './row.js';

const KEY = /^[\x21-\x7e]{1,200}$/;

/** The header `Idempotency-Key`. @throws {ApiError} 400 */
export const idempotencyKeyOf = (header: string | undefined): string | undefined => {
  if (header === undefined || KEY.test(header)) return header;
  throw validation([{ field: 'Idempotency-Key', message: 'expected 1 to 200 printable ASCII characters' }]);
};

/** JSON whatever the order of the fields; what is undefined is left out. */
const canonical = (value: unknown): string => {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((one) => canonical(one ?? null)).join(',')}]`;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{${fields
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`)
    .join(',')}}`;
};

/**
 * Two requests are the same when these are: all that was asked for, and the content that came with it.
 * @param content its checksum
 */
export const requestHash = (transfer: NewTransfer, content: string | undefined): string => {
  const { type, direction, server, partnerId, filename, remoteFilename, virtualFile, settings } = transfer;
  const asked = { type, direction, server, partnerId, filename, remoteFilename, virtualFile, settings, content };
  return createHash('sha256').update(canonical(asked)).digest('base64url');
};
