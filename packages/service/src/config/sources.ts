import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';

import { parse } from 'yaml';

import { configRows, environmentName } from './keys.js';
import { reasonOf } from '@pesit-node/ground';

/** A raw value and where it came from, as an error names it. */
export interface Given {
  readonly name: string;
  readonly value: unknown;
  readonly source: string;
}

/** Yield of a source: values by key name, and problems that are already sentences. */
export interface SourceResult {
  readonly given: readonly Given[];
  readonly problems: readonly string[];
}

const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const flatten = (value: Readonly<Record<string, unknown>>, prefix: string, source: string): Given[] =>
  Object.entries(value).flatMap(([name, child]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    return isMapping(child) ? flatten(child, path, source) : [{ name: path, value: child, source }];
  });

/** As much as a ConfigMap of Kubernetes holds, bytes: parsing it keeps the process busy for a second. */
const MAX_FILE_BYTES = 1_048_576;

/** @throws when it cannot be read, or has more than `MAX_FILE_BYTES`: a pipe or a device too, whose size nobody knows */
const readFile = (path: string): string => {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(MAX_FILE_BYTES + 1);
    let length = 0;
    for (;;) {
      const got = readSync(file, bytes, length, bytes.length - length, null);
      length += got;
      if (length > MAX_FILE_BYTES) {
        const { size } = fstatSync(file);
        const came = size > MAX_FILE_BYTES ? String(size) : `more than ${MAX_FILE_BYTES}`;
        throw new Error(
          `it has ${came} bytes, at most ${MAX_FILE_BYTES} (1 MiB) are taken: make some of its partners, files and servers by REST instead`,
        );
      }
      if (got === 0) return bytes.toString('utf8', 0, length);
    }
  } finally {
    closeSync(file);
  }
};

/** Nested or dotted keys (`server: { port: 1 }` or `server.port: 1`) of the file that `PESIT_CONFIG` names. */
export const fromYaml = (file: string, cwd: string): SourceResult => {
  const path = resolve(cwd, file);
  let content: unknown;
  try {
    content = parse(readFile(path)) as unknown;
  } catch (error) {
    const reason = reasonOf(error);
    return { given: [], problems: [`PESIT_CONFIG: cannot read ${path}: ${reason}`] };
  }
  if (content === null || content === undefined) return { given: [], problems: [] };
  if (!isMapping(content)) {
    return {
      given: [],
      problems: [`PESIT_CONFIG: ${path} must hold a mapping of keys, for example "server.port: 8080"`],
    };
  }
  // A key with no value after it is "not set": YAML makes it null.
  const given = flatten(content, '', path).filter(({ value }) => value !== null);
  return { given, problems: [] };
};

/**
 * Known keys alone, the alias of a key before its name: the environment holds everything. An empty variable counts as not set, as
 * orchestrators leave them.
 */
export const fromEnvironment = (env: Readonly<Record<string, string | undefined>>): SourceResult => {
  const known = configRows()
    .filter(([, { notFromEnvironment }]) => notFromEnvironment !== true)
    .map(([name, { alias }]) => [name, alias, environmentName(name)] as const);
  return {
    given: known.flatMap(([name, ...variables]) =>
      variables.flatMap((variable) => {
        const value = variable === undefined ? undefined : env[variable];
        return value === undefined || value === '' ? [] : [{ name, value, source: `environment ${String(variable)}` }];
      }),
    ),
    problems: [],
  };
};

/** `--server.port=8081`, `--server.port 8081`, and a bare `--metrics.public` for true. */
export const fromFlags = (argv: readonly string[]): SourceResult => {
  const given: Given[] = [];
  const problems: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index] ?? '';
    if (!argument.startsWith('--') || argument.length === 2) {
      problems.push(`unexpected argument ${JSON.stringify(argument)}: flags have the form --server.port=8081`);
      continue;
    }
    const equals = argument.indexOf('=');
    const name = equals < 0 ? argument.slice(2) : argument.slice(2, equals);
    const source = `flag --${name}`;
    const next = argv[index + 1];
    if (equals >= 0) {
      given.push({ name, value: argument.slice(equals + 1), source });
    } else if (next === undefined || next.startsWith('--')) {
      given.push({ name, value: 'true', source });
    } else {
      given.push({ name, value: next, source });
      index++;
    }
  }
  return { given, problems };
};
