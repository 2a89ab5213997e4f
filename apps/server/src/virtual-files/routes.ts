import { DEFAULT_CODE_PAGE } from '@pesit-node/protocol';
import { conflict, endpoint, notFound, validation } from '@pesit-node/service';
import type { Logger, Routes } from '@pesit-node/service';
import { DEFAULT_RECEIVE_PATTERN, DEFAULT_RECORD_LENGTH } from '@pesit-node/storage';
import { z } from 'zod';

import type { Directories } from '../directories.js';
import { fileId, renames } from '../schemas.js';
import { refuseUnbuilt } from '../unbuilt.js';
import { createVirtualFile, updateVirtualFile, virtualFileAnswer } from './schema.js';
import type { UpdateVirtualFile } from './schema.js';
import type { VirtualFileRow, VirtualFileStore, VirtualFileValues } from './store.js';

const PATH = '/api/v1/config/files';

const NOT_FOUND = { 404: 'There is no such virtual file.' };
const UNBUILT = { 422: 'A field whose behaviour this version does not have, or a directory that may not be used.' };

/** A virtual file as the interface shows it, defaults filled in where one value is the default for all. */
const toVirtualFile = (row: VirtualFileRow): z.output<typeof virtualFileAnswer> => ({
  fileId: row.file_id,
  id: row.file_id,
  name: row.name,
  description: row.description,
  direction: row.direction,
  enabled: row.enabled,
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

/** Columns of the fields that are there. */
const valuesOf = (body: UpdateVirtualFile): Partial<VirtualFileValues> =>
  Object.fromEntries(
    (Object.keys(COLUMNS) as (keyof typeof COLUMNS)[])
      .filter((field) => body[field] !== undefined)
      .map((field) => [COLUMNS[field], body[field]]),
  );

const DEFAULTS: Omit<VirtualFileValues, 'direction'> = {
  name: null,
  description: null,
  enabled: true,
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
  const params = z.strictObject({ fileId: fileId() });

  const admit = async (body: UpdateVirtualFile): Promise<void> => {
    refuseUnbuilt(body, { maxRetries: [0] });
    await directories.admit([
      { field: 'receiveDirectory', path: body.receiveDirectory, create: true },
      { field: 'sendDirectory', path: body.sendDirectory, create: body.sendFile === undefined },
      // It may name one file, which need not be there yet.
      { field: 'sendFile', path: body.sendFile, create: false },
    ]);
  };

  routes.resource(PATH, {
    get: endpoint({ summary: 'All virtual files', answers: { 200: z.array(virtualFileAnswer) } }, async ({ res }) => {
      res.json((await store.list()).map(toVirtualFile));
    }),
    post: endpoint(
      {
        summary: 'Creates a virtual file',
        body: createVirtualFile,
        answers: { 201: virtualFileAnswer, 409: 'It exists already.', ...UNBUILT },
      },
      async ({ body, res }) => {
        await admit(body);
        const id = (body.fileId ?? body.id) as string;
        const created = await store.create(id, { ...DEFAULTS, direction: body.direction, ...valuesOf(body) });
        if (created === undefined) throw conflict(`Virtual file ${JSON.stringify(id)} exists already`);
        logger.info({ virtualFile: id }, 'virtual file created');
        res
          .status(201)
          .location(`${PATH}/${encodeURIComponent(id)}`)
          .json(toVirtualFile(created));
      },
    ),
  });

  routes.resource(`${PATH}/:fileId`, {
    get: endpoint(
      { summary: 'A virtual file', params, answers: { 200: virtualFileAnswer, ...NOT_FOUND } },
      async ({ params: { fileId: id }, res }) => {
        const row = await store.get(id);
        if (row === undefined) throw notFound('Virtual file', id);
        res.json(toVirtualFile(row));
      },
    ),
    put: endpoint(
      {
        summary: 'Changes a virtual file',
        params,
        body: updateVirtualFile,
        answers: { 200: virtualFileAnswer, ...NOT_FOUND, ...UNBUILT },
      },
      async ({ params: { fileId: id }, body, res }) => {
        if (renames([body.fileId, body.id], id)) {
          throw validation([{ field: 'fileId', message: `cannot be changed from ${id}: create another virtual file` }]);
        }
        await admit(body);
        const row = await store.update(id, valuesOf(body));
        if (row === undefined) throw notFound('Virtual file', id);
        logger.info({ virtualFile: id, fields: Object.keys(body) }, 'virtual file changed');
        res.json(toVirtualFile(row));
      },
    ),
    delete: endpoint(
      { summary: 'Deletes a virtual file', params, answers: { 204: 'Deleted.', ...NOT_FOUND } },
      async ({ params: { fileId: id }, res }) => {
        if (!(await store.delete(id))) throw notFound('Virtual file', id);
        logger.info({ virtualFile: id }, 'virtual file deleted');
        res.status(204).end();
      },
    ),
  });
};
