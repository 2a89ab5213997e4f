/** The body of a request, from the command line and a file. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';

import type { Argument, Environment, Flag, Given } from '../frame/command.js';
import { CliError } from '../frame/exit-codes.js';
import { bodyFields, bodyFrom } from './fields.js';
import type { RestClient } from './rest-client.js';

export const FROM_FLAG: Flag = {
  name: 'from',
  type: 'path',
  help: 'JSON file with the fields; those on the command line win.',
};

export const pairs = (help: string): Argument => ({ name: 'FIELD=VALUE', help, required: false, rest: true });

/** @throws CliError */
export const bodyOf = async (
  given: Given,
  { directory }: Environment,
  client: RestClient,
  method: string,
  path: string,
): Promise<Readonly<Record<string, unknown>>> => {
  const list = given.list('FIELD=VALUE');
  const document = list.length === 0 ? {} : await client.get('/openapi.json');
  const fields = bodyFields(document as object, method, path);
  return { ...(await fileBody(given.text('from'), directory)), ...bodyFrom(list, fields) };
};

const fileBody = async (path: string | undefined, directory: string): Promise<object> => {
  if (path === undefined) return {};
  try {
    const parsed: unknown = JSON.parse(await readFile(resolve(directory, path), 'utf8'));
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed;
    throw new Error('it is no JSON object');
  } catch (error) {
    throw new CliError('local', `--from ${path} cannot be used: ${(error as Error).message}`, { cause: error });
  }
};
