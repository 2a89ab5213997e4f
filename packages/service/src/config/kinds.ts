import { z } from 'zod';

import { isNetwork } from '../networks.js';

/**
 * Kinds of configuration values. Environment and flags bring text, YAML brings typed values: each kind takes both.
 * `description` of the schema is the "expected …" of its error and the type column of docs/configuration.md.
 */

export const integer = (min: number, max: number) =>
  z
    .union([
      z.number(),
      z
        .string()
        .regex(/^-?\d{1,15}$/)
        .transform(Number),
    ])
    .pipe(z.int().min(min).max(max))
    .describe(`an integer from ${min} to ${max}`);

const UNITS = ['', 'KB', 'MB', 'GB', 'TB'] as const;

/** Bytes. */
export const size = () =>
  z
    .union([
      z.number(),
      z
        .string()
        .regex(/^\d{1,15} ?(?:[KMGT]B)?$/i)
        .transform((text) => {
          const [, number = '', unit = ''] = /^(\d+) ?(\w*)$/.exec(text.toUpperCase()) ?? [];
          return Number(number) * 1024 ** UNITS.indexOf(unit as (typeof UNITS)[number]);
        }),
    ])
    .pipe(z.int().min(0))
    .describe('bytes, or a number with KB, MB, GB or TB behind it (of 1,024): 256MB');

export const decimal = (min: number, max: number) =>
  z
    .union([
      z.number(),
      z
        .string()
        .regex(/^\d{1,9}(?:\.\d{1,6})?$/)
        .transform(Number),
    ])
    .pipe(z.number().min(min).max(max))
    .describe(`a number from ${min} to ${max}`);

export const flag = () =>
  z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')]).describe('true or false');

export const text = (expected = 'a text (quote it in YAML)') => z.string().describe(expected);

export const requiredText = (expected = 'a text that is not empty') => z.string().min(1).describe(expected);

/** A name of the operator's in other systems: keys of Redis, for example. */
export const label = () =>
  z
    .string()
    .regex(/^[\w.-]{1,64}$/)
    .describe('1 to 64 letters, digits, `.`, `_` or `-`');

export const oneOf = <const T extends readonly [string, ...string[]]>(
  values: T,
  expected = `one of ${values.join(', ')}`,
) => z.enum(values).describe(expected);

/** A name that Kubernetes gives a pod or a namespace. @param min 0 where it need not be told */
export const podLabel = (min: 0 | 1) =>
  z
    .string()
    .regex(new RegExp(`^[\\w.-]{${min},253}$`))
    .describe(`${min} to 253 letters, digits, \`.\`, \`_\` or \`-\``);

/** Comma-separated in the environment and in flags, a list in YAML. */
export const list = () =>
  z
    .union([
      z.array(z.string().min(1)),
      z.string().transform((value) =>
        value
          .split(',')
          .map((part) => part.trim())
          .filter((part) => part !== ''),
      ),
    ])
    .transform((values): readonly string[] => values)
    .describe('a list (comma-separated in the environment and in flags)');

/** Things with fields of their own, which the app that has them checks: the file alone can hold them. */
export const objects = () =>
  z
    .array(z.unknown())
    .transform((items): readonly unknown[] => items)
    .describe('a list of objects (in the file alone)');

/** Who is meant by where it connects from. */
export const networks = () =>
  list()
    .refine((values) => values.every(isNetwork))
    .describe('a list of addresses and CIDR ranges, for example 10.0.0.0/8, 192.0.2.7, fd00::/8');

const ADDRESS = /^(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/i;

/** Hosts with their ports. @param port of those that name none */
export const addresses = (port: number) =>
  list()
    .refine((values) => values.every((value) => Number(ADDRESS.exec(value)?.[1] ?? (ADDRESS.test(value) ? 1 : 0)) >= 1))
    .describe(`a list of host:port, for example 192.0.2.7:${port}, [2001:db8::7]:${port}; without a port: ${port}`);
