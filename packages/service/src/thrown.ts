import { types } from 'node:util';

/** `instanceof Error` misses errors of another realm: Node's own when seen from a test, those of a worker. */
export const isError = (thrown: unknown): thrown is Error => types.isNativeError(thrown);

/** The text of whatever was thrown. */
export const reasonOf = (thrown: unknown): string => (isError(thrown) ? thrown.message || thrown.name : String(thrown));

/** `error.code` of Node's and the drivers' errors. */
export const codeOf = (thrown: unknown): string | undefined =>
  isError(thrown) && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
