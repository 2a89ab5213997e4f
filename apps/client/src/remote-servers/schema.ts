import { CODE_PAGES } from '@pesit-node/protocol';
import { identifier, notBuiltYet, plainText } from '@pesit-node/service';
import { z } from 'zod';

/** Names are compared exactly: a blank at either end would make two that look the same. */
const name = plainText(100)
  .min(1, 'expected 1 or more characters, got none')
  .refine((value) => value.trim() === value, 'a blank at either end is not allowed');

const host = z
  .string()
  .regex(
    /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9])?$|^[0-9A-Fa-f:.]{2,45}$/,
    'expected a host name or an address',
  );

/** PI 5 carries 8 characters, and blanks at its end are not significant (pesit-e.md §2). */
const password = z
  .string()
  .regex(
    /^[\x21-\x7e](?:[\x20-\x7e]{0,6}[\x21-\x7e])?$/,
    'expected 1 to 8 printable ASCII characters, no blank at either end',
  );

/** Eight characters of EBCDIC, blank padded (pesit-e.md §1). */
const preconnection = z.string().regex(/^[A-Za-z0-9$#@_.-]{1,8}$/, 'expected 1 to 8 letters, digits, or $ # @ _ . -');

const TCPIP_HEADER = {
  true: 'length-prefixed',
  false: 'raw',
  'length-prefixed': 'length-prefixed',
  raw: 'raw',
} as const;

const tcpipHeader = z
  .union([z.boolean(), z.enum(['length-prefixed', 'raw'])], 'expected length-prefixed, raw, true or false')
  .transform((value) => TCPIP_HEADER[`${value}`]);

/** The settings that a remote server has and a single transfer may change (specification, Send payload; design §4). */
export const transferSettings = {
  recordLength: z.int().min(1).max(65_535),
  recordFormat: z.union([z.literal(0), z.literal(128)], 'expected 0 (fixed) or 128 (variable)'),
  text: z.boolean(),
  maxEntitySize: z.int().min(256).max(65_535),
  /** KB; 0 = no sync points. */
  syncInterval: z.int().min(0).max(65_534),
  syncWindow: z.int().min(0).max(255),
  /** PI 21. */
  compression: z.enum(['none', 'horizontal', 'vertical', 'both']),
  /** PI 1. */
  crc: z.boolean(),
  /** PI 23. */
  resync: z.boolean(),
  /** PI 16: the lines of a text file are EBCDIC on the wire, of a code page. */
  ebcdic: z.boolean(),
  codePage: z.enum(CODE_PAGES),
};

/** Fields of the interface whose behaviour is not built: what they may say is that it is not wanted. */
const unbuiltFields = {
  tlsPort: z.int().min(1).max(65_535).nullish(),
  tlsEnabled: z.boolean().optional(),
};

const NOT_WANTED: ReadonlySet<unknown> = new Set([undefined, null, false]);

/** @throws {ApiError} 422 naming the fields that ask for what is not built yet. */
export const refuseUnbuilt = (body: Readonly<Record<string, unknown>>): void => {
  const asked = Object.keys(unbuiltFields).filter((field) => !NOT_WANTED.has(body[field]));
  if (asked.length > 0) throw notBuiltYet(...asked);
};

const optionalFields = {
  port: z.int().min(1).max(65_535),
  enabled: z.boolean(),
  tcpipHeader,
};

/** Cleared by `null`: the password, the description, and every setting, which is then the default of the configuration. */
const clearableFields = {
  password: password.nullable(),
  description: plainText(500).nullable(),
  maxConnections: z.int().min(1).max(1000).nullable(),
  recordLength: transferSettings.recordLength.nullable(),
  recordFormat: transferSettings.recordFormat.nullable(),
  text: transferSettings.text.nullable(),
  maxEntitySize: transferSettings.maxEntitySize.nullable(),
  syncInterval: transferSettings.syncInterval.nullable(),
  syncWindow: transferSettings.syncWindow.nullable(),
  compression: transferSettings.compression.nullable(),
  crc: transferSettings.crc.nullable(),
  resync: transferSettings.resync.nullable(),
  ebcdic: transferSettings.ebcdic.nullable(),
  codePage: transferSettings.codePage.nullable(),
  /** Several short articles in one DTF. */
  multiArticle: z.boolean().nullable(),
  preconnectId: preconnection.nullable(),
  preconnectPassword: password.nullable(),
};

const requiredFields = { name, host, serverId: identifier(24), clientId: identifier(24) };
const changeable = z.strictObject({ ...requiredFields, ...optionalFields, ...clearableFields }).partial();

export const createRemoteServer = changeable.extend({ ...requiredFields, ...unbuiltFields });
export const updateRemoteServer = changeable.extend(unbuiltFields);

export type RemoteServerFields = z.output<typeof changeable>;
export type CreateRemoteServer = z.output<typeof createRemoteServer>;
