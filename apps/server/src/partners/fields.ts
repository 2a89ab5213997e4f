import { fingerprints } from '@pesit-node/certificates';
import { LEAST_RATE } from '@pesit-node/net';
import { FieldTable, oneOrMore, plainText, storedTime } from '@pesit-node/service';
import type { RowOf } from '@pesit-node/service';
import { z } from 'zod';

import { grants, network, partnerId } from '../schemas.js';
import type { PartnerSeen } from './seen.js';

export const ACCESS_TYPES = ['READ', 'WRITE', 'BOTH'] as const;
/** Operations of a partner, seen by the partner: WRITE = it sends to us, READ = it fetches from us. */
export type AccessType = (typeof ACCESS_TYPES)[number];
export type Operation = 'READ' | 'WRITE';

const accessOf = (operations: readonly Operation[]): AccessType => {
  const [first = 'READ'] = operations;
  return operations.includes('READ') && operations.includes('WRITE') ? 'BOTH' : first;
};

export const operationsOf = (access: AccessType): Operation[] => (access === 'BOTH' ? ['READ', 'WRITE'] : [access]);

const accessType = () => z.enum(ACCESS_TYPES);

/** A text that is sent in eight bytes, padded with blanks. */
const eight = (expected: string) =>
  z
    .string(`expected ${expected}`)
    .regex(/^[\x20-\x7e]{1,8}$/, `expected ${expected}`)
    .refine((value) => value.trim() === value, 'a blank at either end is not allowed');

const subject = () => plainText(1000).min(1, 'expected a subject such as CN=partner,O=Bank,C=FR');

const san = () => plainText(500).min(1, 'expected a name such as DNS:partner.example');

const NEW_PASSWORD = 'A new one has at least `password.min-length` characters (1 unless configured; 8 is advised).';

const lastSeen = z.object({
  listener: z.string().optional(),
  remoteAddress: z.string().optional(),
  dialect: z.enum(['length-prefixed', 'raw']).optional(),
  preconnection: z.enum(['PESIT', 'CFTPSITX']).nullable().optional(),
  version: z.int().optional().meta({ description: 'PI 6 as it came.' }),
  syncPoints: z.object({ intervalKb: z.int(), window: z.int() }).nullable().optional(),
  resynchronisation: z.boolean().optional(),
  crc: z.boolean().optional(),
  accessType: z.int().optional().meta({ description: 'PI 22: 0 write, 1 read, 2 both.' }),
  freeMessage: z.string().nullable().optional().meta({ description: 'PI 99 of its last CONNECT.' }),
  maxEntitySize: z.int().optional(),
  singleArticle: z.enum(['unknown', 'plain', 'prefixed']).optional(),
  product: z.string().nullable().meta({ description: 'Product that is known for these habits, if they point to one.' }),
});

/** Who may connect. */
export const PARTNER = new FieldTable(
  {
    ...{ id: 'Partner', noun: 'partner', table: 'partners' },
    change: { name: 'Acme Bank, Paris', enabled: false },
  },
  {
    partnerId: {
      column: 'partner_id',
      schema: partnerId(),
      key: true,
      searched: true,
      aliases: ['id'],
      words: 'PI 3.',
      example: 'ACME',
    },
    name: { column: 'name', schema: plainText(200), searched: true, unset: 'none', example: 'Acme Bank' },
    description: { column: 'description', schema: plainText(2000), searched: true, unset: 'none' },
    // Nobody connects without one: an empty PI 5 is accepted only for a verified client certificate (pesit-e.md §10).
    // Trailing blanks are not significant in its 8 bytes (pesit-e.md §2).
    password: {
      column: 'password_hash',
      schema: eight('1 to 8 printable ASCII characters (PI 5): a partner cannot connect without'),
      secret: true,
      words: NEW_PASSWORD,
      example: 'pe5it-01',
    },
    mayChangePassword: {
      column: 'may_change_password',
      schema: z.boolean(),
      default: false,
      words:
        'It may give itself another password, in the second half of PI 5. Its other open sessions end then, as when the password is set here.',
    },
    enabled: {
      column: 'enabled',
      schema: z.boolean(),
      filter: true,
      default: true,
      words: 'False: it cannot connect (3-304), and its open sessions end after their file (3-322).',
    },
    allowedOperations: {
      column: 'access_type',
      schema: z.codec(
        z
          .array(z.enum(['READ', 'WRITE']))
          .min(1, 'expected READ, WRITE or both; to refuse everything set enabled to false'),
        accessType(),
        { decode: accessOf, encode: operationsOf },
      ),
      forms: { accessType: accessType() },
      default: 'BOTH',
      example: ['WRITE'],
      words:
        'Seen by the partner: WRITE = it sends to us. One that is taken away ends its open sessions after their file (3-304).',
    },
    allowedFiles: {
      column: 'allowed_files',
      schema: grants('virtual files'),
      words:
        'Virtual files that it may use, identifiers and globs; for every other one it is told that the file is unknown.',
      unset: 'what `access.default` says, unless `allowedPartners` of the file does',
      example: ['INVOICES*'],
    },
    allowedListeners: {
      column: 'allowed_listeners',
      schema: grants('listeners'),
      words:
        'Listeners on which it is known, identifiers and globs. Its open sessions on others end after their file (3-304).',
      unset: 'what `access.default` says',
    },
    allowedAddresses: {
      column: 'allowed_addresses',
      schema: z
        .array(network(), 'expected a list of addresses and CIDR ranges, or null for every address')
        .min(1, 'expected an address; to refuse everything set enabled to false')
        .max(100),
      words:
        'Addresses and CIDR ranges from which it may connect (3-304 from elsewhere), IPv4 and IPv6; behind a balancer with `proxyProtocol` the address that the PROXY header says. Its open sessions from elsewhere end after their file (3-304).',
      unset: 'every address',
      example: ['192.0.2.0/24', '2001:db8::7'],
    },
    maxConnections: {
      column: 'max_connections',
      schema: z.int().min(1).max(100_000),
      words: 'Sessions at a time, of all pods together.',
      unset: '`partner.max-connections` of the configuration',
    },
    maxBytesPerSecond: {
      column: 'max_bytes_per_second',
      schema: z.int().min(LEAST_RATE).max(1_000_000_000_000),
      words:
        'Bytes a second of its files together, sent and received, on each pod: they share it evenly. Counts from the next file on.',
      unset: 'no limit',
    },
    quotaBytes: {
      column: 'quota_bytes',
      schema: z.int().min(1),
      words:
        'Bytes of it that may lie here: received since it has a quota and not fetched yet, being received, or staged for a restart. A file beyond is told to come later (2-202).',
      unset: 'no quota',
    },
    quotaFiles: {
      column: 'quota_files',
      schema: z.int().min(1).max(10_000_000),
      words: 'The same in files.',
      unset: 'no quota',
    },
    preconnectId: {
      column: 'preconnect_id',
      schema: eight('1 to 8 printable ASCII characters'),
      unset: 'no pre-connection is asked of it',
    },
    preconnectPassword: {
      column: 'preconnect_password_hash',
      schema: eight('1 to 8 printable ASCII characters'),
      secret: true,
      words: NEW_PASSWORD,
      needs: 'preconnectId',
      unset: 'the identifier is enough',
    },
    tlsRequired: {
      column: 'tls_required',
      schema: z.boolean(),
      default: false,
      words: 'Without TLS it is refused (3-304).',
    },
    certificateFingerprint: {
      column: 'certificate_fingerprint',
      schema: fingerprints(),
      words:
        'SHA-256 fingerprints of its certificates, one of which it has to present (3-304 otherwise); several for a change-over. The listener has to ask for one (`sslClientAuth`). A partner that is bound so may leave PI 5 empty.',
      unset: 'any certificate that the listener lets in, or none',
    },
    certificateSubject: {
      column: 'certificate_subject',
      schema: oneOrMore(subject()),
      words: 'Subjects (RFC 4514) of its certificates, the same way.',
      unset: 'any',
    },
    certificateSan: {
      column: 'certificate_san',
      schema: oneOrMore(san()),
      words:
        'Alternative names of its certificates, the same way: `DNS:`, `IP:`, `URI:` or `email:` before the name, or the name alone.',
      unset: 'any',
    },
    multiArticle: {
      column: 'multi_article',
      schema: z.boolean(),
      words: 'It is sent several short articles in one DTF.',
      unset: 'true',
    },
    concatenation: {
      column: 'concatenation',
      schema: z.boolean(),
      words: 'It is sent several FPDUs of data in one entity.',
      unset: 'true',
    },
    lastConnection: { column: 'last_connection', schema: storedTime(), readOnly: true, unset: 'none yet' },
    transferCount: { column: 'transfer_count', schema: z.int(), readOnly: true, example: 1284 },
    lastSeen: {
      schema: lastSeen,
      readOnly: true,
      words: 'Properties of the partner that the last sessions have shown.',
      unset: 'none yet',
    },
    traceUntil: {
      column: 'trace_until',
      schema: storedTime(),
      readOnly: true,
      words: 'Its sessions are traced until then.',
      unset: 'they are not',
    },
  },
);

export interface PartnerRow extends RowOf<typeof PARTNER.rows> {
  readonly seen: PartnerSeen;
  /**
   * Another one whenever what proves the partner changes, or `allowedOperations` lose one, and with a partner that was
   * deleted and created anew. A hash that is made anew of the same password leaves it as it is.
   */
  readonly credentials: string;
}

/** Columns of its partner that an open session must know. */
export type PartnerStanding = Pick<
  PartnerRow,
  | 'partner_id'
  | 'credentials'
  | 'enabled'
  | 'access_type'
  | 'allowed_files'
  | 'allowed_listeners'
  | 'allowed_addresses'
  | 'max_bytes_per_second'
  | 'tls_required'
  | 'certificate_fingerprint'
  | 'certificate_subject'
  | 'certificate_san'
>;
