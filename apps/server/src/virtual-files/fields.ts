import { CODE_PAGES, DEFAULT_CODE_PAGE } from '@pesit-node/protocol';
import { FieldTable, orDefault, plainText } from '@pesit-node/service';
import type { GivenOf, RowOf } from '@pesit-node/service';
import { DEFAULT_RECEIVE_PATTERN, DEFAULT_RECORD_LENGTH, validatePattern } from '@pesit-node/storage';
import { COMPRESSIONS } from '@pesit-node/transfers';
import { z } from 'zod';

import { fileId, grants, path } from '../schemas.js';

export const DIRECTIONS = ['RECEIVE', 'SEND', 'BOTH'] as const;
/** Seen by this node: RECEIVE = a partner may write it, SEND = a partner may read it. */
export type FileDirection = (typeof DIRECTIONS)[number];

const receivePattern = () =>
  z.string().superRefine((pattern, refinement) => {
    const message = validatePattern(pattern);
    if (message !== undefined) refinement.addIssue({ code: 'custom', message });
  });

/** Virtual files that partners may write and read. */
export const VIRTUAL_FILE = new FieldTable(
  {
    ...{ id: 'VirtualFile', noun: 'virtual file', table: 'virtual_files' },
    change: { direction: 'BOTH', sendDirectory: 'to-partners/invoices' },
  },
  {
    fileId: {
      column: 'file_id',
      schema: fileId(),
      key: true,
      searched: true,
      aliases: ['id'],
      words: 'PI 12.',
      example: 'INVOICES',
    },
    name: { column: 'name', schema: plainText(200), searched: true, unset: 'none', example: 'Invoices' },
    description: { column: 'description', schema: plainText(2000), searched: true, unset: 'none' },
    direction: {
      column: 'direction',
      schema: z.enum(DIRECTIONS),
      filter: true,
      default: 'BOTH',
      example: 'RECEIVE',
      words: 'Seen by this node: RECEIVE = a partner may write it.',
    },
    enabled: { column: 'enabled', schema: z.boolean(), filter: true, default: true },
    allowedPartners: {
      column: 'allowed_partners',
      schema: grants('partners'),
      words: 'Partners that may use it, identifiers and globs; every other one is told that the file is unknown.',
      unset: 'what `access.default` says, unless `allowedFiles` of the partner does',
    },
    receiveDirectory: {
      column: 'receive_directory',
      schema: path(),
      unset: 'that of the listener, else `from-partners` in `data.directory`',
      example: 'from-partners/invoices',
    },
    sendDirectory: {
      column: 'send_directory',
      schema: path(),
      aliases: ['sendFile'],
      words: 'May name one file.',
      unset: 'that of the listener, else `to-partners` in `data.directory`',
    },
    filenamePattern: {
      column: 'filename_pattern',
      schema: plainText(255).min(1, 'expected a pattern such as *.csv, or null for every name'),
      unset: 'every name',
      example: '*.csv',
    },
    receiveFilenamePattern: {
      column: 'receive_filename_pattern',
      schema: receivePattern(),
      unset: `\`${DEFAULT_RECEIVE_PATTERN}\``,
      example: '${partner}/${date}_${time}_${transferId}.csv',
    },
    overwrite: { column: 'overwrite', schema: z.boolean(), default: false },
    maxFileSize: {
      column: 'max_file_size',
      schema: z.int().min(1),
      words: 'Bytes that a file may have that is received, as it lies on the disk.',
      unset: 'no limit',
    },
    recordLength: {
      column: 'record_length',
      schema: z.int().min(1).max(65_535),
      words: 'The longest record that is received, and what is sent as PI 32.',
      unset: `no limit, and ${DEFAULT_RECORD_LENGTH} is sent`,
    },
    recordFormat: {
      column: 'record_format',
      schema: z.union([z.literal(0), z.literal(128)], 'expected 0 (fixed) or 128 (variable)'),
      words: '0 fixed, 128 variable.',
      unset: 'as the partner says',
    },
    text: { column: 'text', schema: z.boolean(), default: false },
    durability: {
      column: 'durability',
      schema: z.enum(['checkpoint', 'end', 'none']),
      unset: '`transfer.durability`',
    },
    ebcdic: {
      column: 'ebcdic',
      schema: orDefault(z.boolean(), false),
      default: false,
      words: 'For a text file: its articles are EBCDIC.',
    },
    codePage: { column: 'code_page', schema: z.enum(CODE_PAGES), unset: DEFAULT_CODE_PAGE },
    compression: { column: 'compression', schema: orDefault(z.enum(COMPRESSIONS), 'none'), default: 'none' },
    maxRetries: { schema: z.int().min(0), notBuilt: 0 },
  },
);

export type VirtualFileRow = RowOf<typeof VIRTUAL_FILE.rows>;
export type VirtualFileChange = GivenOf<typeof VIRTUAL_FILE.rows>;
