import { types } from 'node:util';

/** `instanceof Error` misses errors of another realm: Node's own when seen from a test, those of a worker. */
export const isError = (thrown: unknown): thrown is Error => types.isNativeError(thrown);

/** The text of whatever was thrown. */
export const reasonOf = (thrown: unknown): string => (isError(thrown) ? thrown.message || thrown.name : String(thrown));

/** `error.code` (`ENOSPC`, `40001` …) of the errors of Node and of the drivers, by shape: those of another realm are no `Error` here. */
export const codeOf = (thrown: unknown): string | undefined => {
  const code = typeof thrown === 'object' && thrown !== null && 'code' in thrown ? thrown.code : undefined;
  return typeof code === 'string' ? code : undefined;
};
