import { CODE_PAGES } from '@pesit-node/protocol';
import { plainText } from '@pesit-node/service';
import { validatePattern } from '@pesit-node/storage';
import { z } from 'zod';

import { agree, fileId, grants, identified } from '../schemas.js';
import { COMPRESSIONS } from './format.js';

export const DIRECTIONS = ['RECEIVE', 'SEND', 'BOTH'] as const;
/** Seen by this node: RECEIVE = a partner may write it, SEND = a partner may read it. */
export type FileDirection = (typeof DIRECTIONS)[number];

/** A path of this machine; whether it may be used is a matter of `Directories`. */
export const path = () => plainText(1024).min(1, 'expected a path, or null for the default');

const recordFormat = () =>
  z
    .union([z.literal(0), z.literal(128)], 'expected 0 (fixed) or 128 (variable)')
    .meta({ description: '0 fixed, 128 variable.' });
const durability = () => z.enum(['checkpoint', 'end', 'none']);

const fields = {
  fileId: fileId().optional(),
  id: fileId().optional(),
  name: plainText(200).nullish(),
  description: plainText(2000).nullish(),
  direction: z
    .enum(DIRECTIONS)
    .optional()
    .meta({ description: 'Seen by this node: RECEIVE = a partner may write it.' }),
  enabled: z.boolean().optional(),
  allowedPartners: grants(
    'partners',
    'Partners that may use it, identifiers and globs; every other one is told what is said of an unknown file. Null: what `access.default` says, unless `allowedFiles` of the partner does.',
  ),
  receiveDirectory: path().nullish(),
  sendDirectory: path().nullish(),
  sendFile: path().nullish(),
  filenamePattern: plainText(255).min(1, 'expected a pattern such as *.csv, or null for every name').nullish(),
  receiveFilenamePattern: z
    .string()
    .superRefine((pattern, context) => {
      const message = validatePattern(pattern);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    })
    .nullish(),
  overwrite: z.boolean().optional(),
  recordLength: z.int().min(1).max(65_535).nullish(),
  recordFormat: recordFormat().nullish(),
  text: z.boolean().optional(),
  durability: durability().nullish(),
  ebcdic: z
    .boolean()
    .nullish()
    .transform((value) => (value === null ? false : value)),
  maxRetries: z.int().min(0).nullish(),
  codePage: z.enum(CODE_PAGES).nullish(),
  compression: z
    .enum(COMPRESSIONS)
    .nullish()
    .transform((value) => (value === null ? 'none' : value)),
};

interface Ambiguous {
  readonly fileId?: string | undefined;
  readonly id?: string | undefined;
  readonly sendDirectory?: string | null | undefined;
  readonly sendFile?: string | null | undefined;
}

const consistent = (body: Ambiguous, context: z.core.$RefinementCtx): void => {
  agree(body, context, 'fileId', 'id');
  agree(body, context, 'sendDirectory', 'sendFile');
};

export const createVirtualFile = z
  .strictObject({ ...fields, direction: z.enum(DIRECTIONS).default('BOTH') })
  .superRefine((body, context) => {
    consistent(body, context);
    identified(body, context, 'fileId');
  })
  .meta({ id: 'CreateVirtualFile', description: '`fileId`, or `id`, is required.' });

export const updateVirtualFile = z
  .strictObject(fields)
  .superRefine(consistent)
  .meta({ id: 'UpdateVirtualFile', description: 'Absent fields stay as they are; null is the default.' });

/** A virtual file in answers, defaults filled in where one value is the default for all. */
export const virtualFileAnswer = z
  .object({
    fileId: z.string(),
    id: z.string(),
    name: z.string().nullable(),
    description: z.string().nullable(),
    direction: z.enum(DIRECTIONS),
    enabled: z.boolean(),
    allowedPartners: z.array(z.string()).readonly().nullable(),
    receiveDirectory: z.string().nullable(),
    sendDirectory: z.string().nullable(),
    sendFile: z.string().nullable(),
    filenamePattern: z.string().nullable(),
    receiveFilenamePattern: z.string(),
    overwrite: z.boolean(),
    recordLength: z.int(),
    recordFormat: recordFormat().nullable(),
    text: z.boolean(),
    durability: durability().nullable(),
    ebcdic: z.boolean(),
    codePage: z.string(),
    compression: z.enum(COMPRESSIONS),
    maxRetries: z.int(),
  })
  .meta({ id: 'VirtualFile' });

export type UpdateVirtualFile = z.output<typeof updateVirtualFile>;
