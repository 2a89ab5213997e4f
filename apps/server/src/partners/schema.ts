import { plainText, readOnly, timestamp } from '@pesit-node/service';
import { z } from 'zod';

import { agree, grants, identified, partnerId } from '../schemas.js';

export const ACCESS_TYPES = ['READ', 'WRITE', 'BOTH'] as const;
/** What a partner may do, seen by the partner: WRITE = it sends to us, READ = it fetches from us. */
export type AccessType = (typeof ACCESS_TYPES)[number];
export type Operation = 'READ' | 'WRITE';

/** What is sent in eight bytes, padded with blanks. */
const eight = (expected: string) =>
  z
    .string()
    .regex(/^[\x20-\x7e]{1,8}$/, `expected ${expected}`)
    .refine((value) => value.trim() === value, 'a blank at either end is not allowed');

/** PI 5 holds a password in 8 bytes; trailing blanks are not significant there (pesit-e.md §2). */
const password = () => eight('1 to 8 printable ASCII characters (PI 5)');

const fields = {
  partnerId: partnerId().optional(),
  id: partnerId().optional(),
  name: plainText(200).nullish(),
  description: plainText(2000).nullish(),
  enabled: z.boolean().optional(),
  allowedOperations: z
    .array(z.enum(['READ', 'WRITE']))
    .min(1, 'expected READ, WRITE or both; to refuse everything set enabled to false')
    .optional(),
  accessType: z
    .enum(ACCESS_TYPES)
    .optional()
    .meta({ description: 'Another view of allowedOperations, seen by the partner: WRITE = it sends to us.' }),
  allowedFiles: grants(
    'virtual files',
    'Virtual files that it may use, identifiers and globs; to every other one it is told what is said of an unknown one. Null: what `access.default` says, unless `allowedPartners` of the file does.',
  ),
  allowedListeners: grants(
    'listeners',
    'Listeners on which it is known, identifiers and globs. Null: what `access.default` says.',
  ),
  maxConnections: z.int().min(1).max(100_000).nullish(),
  preconnectId: eight('1 to 8 printable ASCII characters').nullish(),
  preconnectPassword: eight('1 to 8 printable ASCII characters').nullish(),
  multiArticle: z.boolean().nullish().meta({ description: 'Several short articles in one DTF; null: true.' }),
  concatenation: z.boolean().nullish().meta({ description: 'Several FPDUs of data in one entity; null: true.' }),
  lastConnection: readOnly(),
  transferCount: readOnly(),
  lastSeen: readOnly(),
  traceUntil: readOnly(),
};

export const accessOf = (operations: readonly Operation[]): AccessType => {
  const [first = 'READ'] = operations;
  return operations.includes('READ') && operations.includes('WRITE') ? 'BOTH' : first;
};

export const operationsOf = (access: AccessType): readonly Operation[] =>
  access === 'BOTH' ? ['READ', 'WRITE'] : [access];

interface Ambiguous {
  readonly partnerId?: string | undefined;
  readonly id?: string | undefined;
  readonly allowedOperations?: readonly Operation[] | undefined;
  readonly accessType?: AccessType | undefined;
}

const consistent = (body: Ambiguous, context: z.core.$RefinementCtx): void => {
  const { allowedOperations, accessType } = body;
  agree(body, context, 'partnerId', 'id');
  if (allowedOperations !== undefined && accessType !== undefined && accessOf(allowedOperations) !== accessType) {
    context.addIssue({
      code: 'custom',
      path: ['accessType'],
      message: 'expected the same rights as allowedOperations, or one of the two',
    });
  }
};

export const createPartner = z
  .strictObject({
    ...fields,
    // Nobody connects without one: an empty PI 5 is accepted only for a verified client certificate (pesit-e.md §10).
    password: z
      .string('expected 1 to 8 printable ASCII characters (PI 5): a partner cannot connect without')
      .pipe(password()),
  })
  .superRefine((body, context) => {
    consistent(body, context);
    identified(body, context, 'partnerId');
    if (typeof body.preconnectPassword === 'string' && typeof body.preconnectId !== 'string') {
      context.addIssue({ code: 'custom', path: ['preconnectId'], message: 'expected beside preconnectPassword' });
    }
  })
  .meta({ id: 'CreatePartner', description: '`partnerId`, or `id`, is required.' });

export const updatePartner = z
  .strictObject({ ...fields, password: password().optional() })
  .superRefine(consistent)
  .meta({ id: 'UpdatePartner', description: 'Absent fields stay as they are.' });

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
  product: z.string().nullable().meta({ description: 'The product that has these habits, where they tell.' }),
});

/** A partner in answers: everything but the passwords. */
export const partnerAnswer = z
  .object({
    partnerId: z.string(),
    id: z.string(),
    name: z.string().nullable(),
    description: z.string().nullable(),
    enabled: z.boolean(),
    allowedOperations: z.array(z.enum(['READ', 'WRITE'])).readonly(),
    accessType: z.enum(ACCESS_TYPES),
    allowedFiles: z.array(z.string()).readonly().nullable(),
    allowedListeners: z.array(z.string()).readonly().nullable(),
    maxConnections: z.int().nullable(),
    preconnectId: z.string().nullable(),
    multiArticle: z.boolean(),
    concatenation: z.boolean(),
    lastConnection: timestamp().nullable(),
    transferCount: z.int(),
    lastSeen: lastSeen.nullable().meta({ description: 'What its last sessions have shown.' }),
    traceUntil: timestamp().nullable().meta({ description: 'Until then its sessions are traced.' }),
  })
  .meta({ id: 'Partner' });

export type CreatePartner = z.output<typeof createPartner>;
export type UpdatePartner = z.output<typeof updatePartner>;
