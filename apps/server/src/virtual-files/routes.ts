import { DEFAULT_CODE_PAGE } from '@pesit-node/protocol';
import { refuseUnbuilt } from '@pesit-node/service';
import type { Logger, Routes } from '@pesit-node/service';
import { DEFAULT_RECEIVE_PATTERN, DEFAULT_RECORD_LENGTH } from '@pesit-node/storage';
import type { z } from 'zod';

import { configuredRoutes } from '../configured-routes.js';
import { columnsOf } from '../configured-store.js';
import type { Directories } from '../directories.js';
import { fileId } from '../schemas.js';
import { createVirtualFile, updateVirtualFile, virtualFileAnswer } from './schema.js';
import type { UpdateVirtualFile } from './schema.js';
import type { VirtualFileRow, VirtualFileStore, VirtualFileValues } from './store.js';

/** A virtual file as the interface shows it, defaults filled in where one value is the default for all. */
const toVirtualFile = (row: VirtualFileRow): z.output<typeof virtualFileAnswer> => ({
  fileId: row.file_id,
  id: row.file_id,
  name: row.name,
  description: row.description,
  direction: row.direction,
  enabled: row.enabled,
  allowedPartners: row.allowed_partners,
  receiveDirectory: row.receive_directory,
  sendDirectory: row.send_directory,
  sendFile: row.send_directory,
  filenamePattern: row.filename_pattern,
  receiveFilenamePattern: row.receive_filename_pattern ?? DEFAULT_RECEIVE_PATTERN,
  overwrite: row.overwrite,
  recordLength: row.record_length ?? DEFAULT_RECORD_LENGTH,
  recordFormat: row.record_format,
  text: row.text,
  durability: row.durability,
  ebcdic: row.ebcdic,
  codePage: row.code_page ?? DEFAULT_CODE_PAGE,
  compression: row.compression,
  maxRetries: 0,
});

const COLUMNS = {
  name: 'name',
  description: 'description',
  direction: 'direction',
  enabled: 'enabled',
  allowedPartners: 'allowed_partners',
  receiveDirectory: 'receive_directory',
  sendDirectory: 'send_directory',
  sendFile: 'send_directory',
  filenamePattern: 'filename_pattern',
  receiveFilenamePattern: 'receive_filename_pattern',
  overwrite: 'overwrite',
  recordLength: 'record_length',
  recordFormat: 'record_format',
  text: 'text',
  durability: 'durability',
  ebcdic: 'ebcdic',
  codePage: 'code_page',
  compression: 'compression',
} as const satisfies Partial<Record<keyof UpdateVirtualFile, keyof VirtualFileValues>>;

const DEFAULTS: Omit<VirtualFileValues, 'direction'> = {
  name: null,
  description: null,
  enabled: true,
  allowed_partners: null,
  receive_directory: null,
  send_directory: null,
  filename_pattern: null,
  receive_filename_pattern: null,
  overwrite: false,
  record_length: null,
  record_format: null,
  text: false,
  durability: null,
  ebcdic: false,
  code_page: null,
  compression: 'none',
};

export const virtualFileRoutes = (
  routes: Routes,
  store: VirtualFileStore,
  directories: Directories,
  logger: Logger,
): void => {
  const admit = async (body: UpdateVirtualFile): Promise<void> => {
    refuseUnbuilt(body, { maxRetries: [0] });
    await directories.admit([
      { field: 'receiveDirectory', path: body.receiveDirectory, create: true },
      { field: 'sendDirectory', path: body.sendDirectory, create: body.sendFile === undefined },
      // It may name one file, which need not be there yet.
      { field: 'sendFile', path: body.sendFile, create: false },
    ]);
  };

  configuredRoutes<'fileId', VirtualFileRow, VirtualFileValues, UpdateVirtualFile>(routes, {
    path: '/api/v1/config/files',
    field: 'fileId',
    identifier: fileId(),
    noun: 'virtual file',
    create: createVirtualFile,
    update: updateVirtualFile,
    answer: virtualFileAnswer,
    answers: { 422: 'A field whose behaviour this version does not have.' },
    store,
    view: toVirtualFile,
    valuesOf: async (body) => {
      await admit(body);
      return columnsOf(body, COLUMNS);
    },
    defaults: DEFAULTS,
    logger,
  });
};
