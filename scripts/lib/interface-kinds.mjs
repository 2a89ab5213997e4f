/** Where a row of the interface specification may be found. */

export const operation = (app, name) => ({ kind: 'operation', app, name });
export const field = (app, name, path) => ({ kind: 'field', app, name, path });
export const answer = (app, name, path) => ({ kind: 'answer', app, name, path });
export const query = (app, name, path) => ({ kind: 'query', app, name, path });
export const key = (name) => ({ kind: 'key', name });
export const metric = (name) => ({ kind: 'metric', name });
/** @param test file, and a part of the title of the test in it */
export const proven = (shown, test, title) => ({ kind: 'proven', name: shown, test, title });
export const absent = { kind: 'absent' };

/** Rows of fields that have the name of the specification. @param prefix of the name of the row */
export const fields = (make, variants, names, prefix = '') =>
  names.map((name) => [`${prefix}${name}`, variants, make(name)]);
