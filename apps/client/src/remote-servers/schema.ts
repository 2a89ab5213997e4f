import { isIP } from 'node:net';

import { CODE_PAGES } from '@pesit-node/protocol';
import { identifier, plainText, readOnly, timestamp } from '@pesit-node/service';
import { z } from 'zod';

/** Names are compared exactly: a blank at either end would make two that look the same. */
const name = plainText(100)
  .min(1, 'expected 1 or more characters, got none')
  .refine((value) => value.trim() === value, 'a blank at either end is not allowed');

const LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?';
const HOST_NAME = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`);

const host = z
  .string()
  .refine((value) => isIP(value) !== 0 || HOST_NAME.test(value), 'expected a host name or an address')
  .meta({ description: 'A host name, or an address of IPv4 or IPv6.' });

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
  recordFormat: z
    .union([z.literal(0), z.literal(128)], 'expected 0 (fixed) or 128 (variable)')
    .meta({ description: '0 fixed, 128 variable.' }),
  text: z.boolean(),
  maxEntitySize: z.int().min(256).max(65_535),
  syncInterval: z.int().min(0).max(65_534).meta({ description: 'KB; 0 = no sync points.' }),
  syncWindow: z.int().min(0).max(255).meta({ description: '0 = sync points are not acknowledged.' }),
  compression: z.enum(['none', 'horizontal', 'vertical', 'both']).meta({ description: 'PI 21.' }),
  crc: z.boolean().meta({ description: 'PI 1.' }),
  resync: z.boolean().meta({ description: 'PI 23.' }),
  ebcdic: z.boolean().meta({ description: 'PI 16: the lines of a text file are EBCDIC on the wire.' }),
  codePage: z.enum(CODE_PAGES),
  selectByName: z.boolean().meta({
    description:
      'Of a RECEIVE with virtualFile and remoteFilename: PI 12 is `<virtualFile>/<remoteFilename>`, which nodes of this product answer with exactly that file.',
  }),
};

/** Fields of the interface whose behaviour is not built: what they may say is that it is not wanted. */
const unbuiltFields = {
  tlsPort: z.int().min(1).max(65_535).nullish(),
  tlsEnabled: z.boolean().optional(),
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
  selectByName: transferSettings.selectByName.nullable(),
  multiArticle: z.boolean().nullable().meta({ description: 'Several short articles in one DTF.' }),
  concatenation: z.boolean().nullable().meta({ description: 'Several FPDUs of data in one entity.' }),
  preconnectId: preconnection.nullable(),
  preconnectPassword: password.nullable(),
};

/** What an answer has beside them. */
const readOnlyFields = {
  id: readOnly(),
  status: readOnly(),
  statusReason: readOnly(),
  lastContact: readOnly(),
  negotiated: readOnly(),
  lastSeen: readOnly(),
  traceUntil: readOnly(),
};

const requiredFields = { name, host, serverId: identifier(24), clientId: identifier(24) };
const changeable = z.strictObject({ ...requiredFields, ...optionalFields, ...clearableFields }).partial();

export const createRemoteServer = changeable
  .extend({ ...requiredFields, ...unbuiltFields, ...readOnlyFields })
  .meta({ id: 'CreateRemoteServer' });
export const updateRemoteServer = changeable
  .extend({ ...unbuiltFields, ...readOnlyFields })
  .meta({ id: 'UpdateRemoteServer', description: 'Absent fields stay as they are; null is the default.' });

const negotiated = z
  .object({
    dialect: z.enum(['length-prefixed', 'raw']),
    version: z.int().meta({ description: 'PI 6: 1 = D, 2 = E.' }),
    syncInterval: z.int().meta({ description: 'KB; 0 = no sync points.' }),
    syncWindow: z.int(),
    accessType: z.int().meta({ description: 'PI 22: 0 write, 1 read, 2 both.' }),
    crc: z.boolean(),
    resync: z.boolean(),
  })
  .meta({ id: 'Negotiated' });

const lastSeen = z
  .object({
    version: z.int().meta({ description: 'PI 6 as it came: Axway products set bits beside the version.' }),
    maxEntitySize: z.int().nullable().meta({ description: 'PI 25 as it answered to the last file.' }),
    freeMessage: z.string().nullable().meta({ description: 'PI 99 of its last ACONNECT.' }),
    singleArticle: z.enum(['plain', 'prefixed']).nullable().meta({ description: 'How it writes ID.SRC = 1.' }),
    product: z.string().nullable().meta({ description: 'The product that these habits are known of.' }),
  })
  .meta({ id: 'ServerSeen' });

/** A remote server in answers: without its passwords, defaults filled in. */
export const remoteServerAnswer = z
  .object({
    id: z.int(),
    name: z.string(),
    host: z.string(),
    port: z.int(),
    tlsPort: z.int().nullable(),
    tlsEnabled: z.boolean(),
    serverId: z.string(),
    clientId: z.string(),
    enabled: z.boolean(),
    description: z.string().nullable(),
    maxConnections: z.int(),
    tcpipHeader: z.enum(['length-prefixed', 'raw']),
    maxEntitySize: z.int(),
    syncInterval: z.int().meta({ description: 'KB; 0 = no sync points.' }),
    syncWindow: z.int(),
    compression: transferSettings.compression,
    crc: z.boolean(),
    resync: z.boolean(),
    ebcdic: z.boolean(),
    codePage: z.string(),
    selectByName: transferSettings.selectByName,
    multiArticle: z.boolean(),
    concatenation: z.boolean(),
    preconnectId: z.string().nullable(),
    recordLength: z.int().nullable(),
    recordFormat: transferSettings.recordFormat.nullable(),
    text: z.boolean().nullable(),
    status: z
      .enum(['UNKNOWN', 'CONNECTED', 'UNREACHABLE', 'REFUSED'])
      .meta({ description: 'What the last contact came to.' }),
    statusReason: z.string().nullable(),
    lastContact: timestamp().nullable(),
    negotiated: negotiated.nullable().meta({ description: 'Of the last session.' }),
    lastSeen: lastSeen.nullable().meta({ description: 'What its last sessions have shown of it.' }),
    traceUntil: timestamp().nullable().meta({ description: 'Until then sessions with it are traced.' }),
  })
  .meta({ id: 'RemoteServer' });

const milliseconds = () => z.number().meta({ description: 'Milliseconds.' });

/** What a test of a connection came to. */
export const testAnswer = z
  .union([
    z.object({
      success: z.literal(true),
      latency: milliseconds(),
      serverVersion: z.int().meta({ description: 'PI 6 of the answer: 1 = D, 2 = E.' }),
      message: z.string(),
      negotiated,
      roundTrip: milliseconds(),
      advice: z.string().nullable().meta({ description: 'Which sync points to ask the partner for.' }),
    }),
    z.object({
      success: z.literal(false),
      latency: milliseconds(),
      errorCode: z.string(),
      diagnostic: z.string(),
      message: z.string(),
    }),
  ])
  .meta({ id: 'ConnectionTest' });

export type RemoteServerFields = z.output<typeof changeable>;
export type CreateRemoteServer = z.output<typeof createRemoteServer>;
