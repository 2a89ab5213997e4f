import { notBuiltYet } from '../errors.js';

/**
 * Refuses fields of the specification that this version does not act on: a value that asks for nothing is taken, any other
 * is answered 422 rather than silently ignored.
 * @param harmless field → the values that ask for nothing, besides null
 */
export const refuseUnbuilt = (
  body: Readonly<Record<string, unknown>>,
  harmless: Readonly<Record<string, readonly unknown[]>>,
): void => {
  const asked = Object.entries(harmless)
    .filter(([field, values]) => ![undefined, null, ...values].includes(body[field] as never))
    .map(([field]) => field);
  if (asked.length > 0) throw notBuiltYet(...asked);
};
