import { FieldTable, identifier, plainText } from '@pesit-node/service';
import type { RowOf } from '@pesit-node/service';
import { DIRECTIONS } from '@pesit-node/transfers';
import { z } from 'zod';

/** Kinds of outcomes. `transfer.interrupted` (server app): FAILED, and the partner may still restart it. */
export const HOOK_EVENTS = [
  'transfer.completed',
  'transfer.failed',
  'transfer.cancelled',
  'transfer.interrupted',
] as const;

const MAX_TARGET = 2000;
const MAX_NAMES = 1000;
/** Bytes of an HMAC key, as the Standard Webhooks specification wants them. */
const KEY_BYTES = { least: 24, most: 64 };

const names = (of: string) =>
  z
    .array(
      z
        .string()
        .min(1, 'expected an identifier, got nothing')
        .max(255, 'expected at most 255 characters')
        .regex(/^[^\x00-\x1f\x7f]*$/, 'control characters are not allowed'),
      `expected a list of ${of}`,
    )
    .min(1, `expected at least one of the ${of}, or null for all`)
    .max(MAX_NAMES, `expected at most ${MAX_NAMES}`);

const isReceiver = (given: string): boolean => {
  if (!/^https?:\/\/[\x21-\x7e]+$/i.test(given) || !URL.canParse(given)) return false;
  const { username, password, hash } = new URL(given);
  return username === '' && password === '' && hash === '';
};

/** The name of the executable that is a target; undefined: it is a URL. */
export const executableOf = (target: string): string | undefined =>
  /^exec:([A-Za-z0-9_][A-Za-z0-9._-]{0,63})$/.exec(target)?.[1];

/** The key of a secret as it is given; undefined: it is none. */
export const keyOfSecret = (secret: string): Buffer | undefined => {
  const base64 = /^whsec_([A-Za-z0-9+/]+)={0,2}$/.exec(secret)?.[1];
  if (base64 === undefined) return undefined;
  const key = Buffer.from(base64, 'base64');
  const isWhole = key.toString('base64').replace(/=+$/, '') === base64;
  return isWhole && key.length >= KEY_BYTES.least && key.length <= KEY_BYTES.most ? key : undefined;
};

/** Hooks tell others of the outcome of a transfer: by a request to a URL, or by an executable. */
export const HOOK = new FieldTable(
  {
    ...{ id: 'Hook', noun: 'hook', table: 'hooks' },
    change: { events: ['transfer.completed'], peers: ['ACME'] },
  },
  {
    hookId: { column: 'hook_id', schema: identifier(64), key: true, searched: true, aliases: ['id'], example: 'batch' },
    description: { column: 'description', schema: plainText(2000), searched: true, unset: 'none' },
    enabled: {
      column: 'enabled',
      schema: z.boolean(),
      filter: true,
      default: true,
      words: 'While it is false nothing is ordered, and what was ordered before waits.',
    },
    disabledReason: {
      column: 'disabled_reason',
      schema: z.string(),
      readOnly: true,
      words: 'Why the node disabled it: its receiver answered 410.',
      unset: 'it did not',
    },
    events: {
      column: 'events',
      schema: z.array(z.enum(HOOK_EVENTS)).min(1, 'expected at least one event, or null').max(HOOK_EVENTS.length),
      words: 'Outcomes that it is for. `transfer.interrupted` is FAILED, and the partner may restart it (server app).',
      unset: 'COMPLETED, FAILED and CANCELLED ones',
    },
    direction: {
      column: 'direction',
      schema: z.enum(DIRECTIONS),
      words: 'Transfers that it is for, seen by this node.',
      unset: 'both directions',
    },
    peers: {
      column: 'peers',
      schema: names('identifiers of partners (server app) or names of remote servers (client app)'),
      words: 'Identifiers of partners (server app), names of remote servers (client app).',
      unset: 'all',
    },
    virtualFiles: { column: 'virtual_files', schema: names('virtual files'), words: 'PI 12.', unset: 'all' },
    target: {
      column: 'target',
      schema: z
        .string()
        .max(MAX_TARGET, `expected at most ${MAX_TARGET} characters`)
        .refine(
          (given) => isReceiver(given) || executableOf(given) !== undefined,
          'expected https://host/path, without user, password and fragment, or exec: and the name of a file in hooks.directory',
        ),
      example: 'https://batch.example/pesit',
      words:
        'Who gets the record: a URL that it is posted to (needs `secret`, and `hooks.webhooks`), or `exec:` and the name of an executable in `hooks.directory`, which has it on its standard input.',
    },
    secret: {
      column: 'secret',
      schema: z
        .string()
        .max(200)
        .refine(
          (given) => keyOfSecret(given) !== undefined,
          `expected whsec_ and ${KEY_BYTES.least} to ${KEY_BYTES.most} bytes in base64`,
        ),
      example: 'whsec_dGhlIGtleSBvZiBhbiBleGFtcGxlIG9ubHk=',
      secret: true,
      words: 'Key of the signatures: `whsec_` and 24 to 64 bytes in base64. A URL needs one.',
      unset: 'none',
    },
    truststoreName: {
      column: 'truststore_name',
      schema: identifier(64),
      words: 'Truststore of the CAs that may vouch for the receiver of a URL.',
      unset: '`ssl.truststore-name`, else the CAs that come with Node.js',
    },
  },
);

export type HookFields = typeof HOOK.rows;
export type HookRow = RowOf<HookFields>;
