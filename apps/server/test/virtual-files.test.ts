import { mkdir, realpath, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { faultyFields, useRest } from './support/rest.js';

const FILES = '/api/v1/config/files';

withDatabase((harness) => {
  const rest = useRest(harness);

  describe('a virtual file', () => {
    test('is created with defaults', async () => {
      const created = await rest.post(FILES, { fileId: 'INBOX', direction: 'RECEIVE' });
      expect([created.status, created.headers['location']]).toEqual([201, `${FILES}/INBOX`]);
      expect(created.body).toEqual({
        fileId: 'INBOX',
        id: 'INBOX',
        durability: null,
        maxFileSize: null,
        codePage: null,
        name: null,
        description: null,
        direction: 'RECEIVE',
        enabled: true,
        allowedPartners: null,
        receiveDirectory: null,
        sendDirectory: null,
        sendFile: null,
        filenamePattern: null,
        receiveFilenamePattern: null,
        overwrite: false,
        recordLength: null,
        recordFormat: null,
        text: false,
        ebcdic: false,
        maxRetries: 0,
        compression: 'none',
      });
      expect((await rest.get(`${FILES}/INBOX`)).body).toEqual(created.body);
      expect((await rest.get(FILES)).body).toEqual([created.body]);
      expect((await rest.put(`${FILES}/INBOX`, created.body)).body).toEqual(created.body);
    });

    test('keeps every field that is set, changes in part, and clears with null', async () => {
      const given = {
        fileId: 'X'.repeat(76),
        name: 'All',
        description: 'of them',
        direction: 'BOTH',
        enabled: false,
        receiveDirectory: 'in/box',
        sendDirectory: 'out',
        filenamePattern: '*.csv',
        receiveFilenamePattern: '${year}/${partner}-${uuid}.csv',
        overwrite: true,
        recordLength: 80,
        recordFormat: 0,
        text: true,
      };
      expect((await rest.post(FILES, given)).body).toMatchObject({ ...given, sendFile: 'out' });
      const path = `${FILES}/${given.fileId}`;
      const changed = await rest.put(path, {
        direction: 'SEND',
        recordLength: null,
        recordFormat: null,
        filenamePattern: null,
        sendFile: 'out/one.txt',
      });
      expect(changed.body).toMatchObject({
        direction: 'SEND',
        recordLength: null,
        recordFormat: null,
        filenamePattern: null,
        sendDirectory: 'out/one.txt',
        sendFile: 'out/one.txt',
        text: true,
      });
    });

    test('are created by the name of the cluster, too; 404 for another cluster', async () => {
      const given = { fileId: 'F', direction: 'RECEIVE', receiveDirectory: 'in' };
      const created = await rest.post('/api/v1/clusters/pesit/virtual-files', given);
      expect([created.status, created.headers['location']]).toEqual([201, `${FILES}/F`]);
      expect((await rest.get(`${FILES}/F`)).body).toEqual(created.body);
      expect((await rest.post('/api/v1/clusters/pesit/virtual-files', given)).status).toBe(409);
      const other = await rest.post('/api/v1/clusters/lyon/virtual-files', { ...given, fileId: 'G' });
      expect([other.status, other.body.message]).toEqual([
        404,
        'Cluster "lyon" does not exist: see GET /api/v1/cluster/status',
      ]);
      expect((await rest.get(`${FILES}/G`)).status).toBe(404);
    });

    test('409, 404 and 204', async () => {
      await rest.post(FILES, { id: 'F' });
      expect((await rest.post(FILES, { fileId: 'F' })).status).toBe(409);
      expect((await rest.get(`${FILES}/G`)).status).toBe(404);
      expect((await rest.put(`${FILES}/G`, {})).status).toBe(404);
      expect((await rest.delete(`${FILES}/F`)).status).toBe(204);
      expect((await rest.delete(`${FILES}/F`)).status).toBe(404);
    });
  });

  describe('directories', () => {
    test('are created when they are configured, except for one file to send', async () => {
      const outside = join(await realpath(rest.data), 'absolute');
      await rest.post(FILES, { fileId: 'A', receiveDirectory: 'in/deep', sendDirectory: outside });
      await rest.post(FILES, { fileId: 'B', sendFile: 'later/file.txt' });
      expect((await stat(join(rest.data, 'in/deep'))).isDirectory()).toBe(true);
      expect((await stat(outside)).isDirectory()).toBe(true);
      await expect(stat(join(rest.data, 'later'))).rejects.toMatchObject({ code: 'ENOENT' });
    });

    test('are not created for a request that is refused', async () => {
      await rest.post(FILES, { fileId: 'F' });
      expect((await rest.post(FILES, { fileId: 'F', receiveDirectory: 'unwanted' })).status).toBe(409);
      expect((await rest.put(`${FILES}/G`, { receiveDirectory: 'unwanted' })).status).toBe(404);
      await expect(stat(join(rest.data, 'unwanted'))).rejects.toMatchObject({ code: 'ENOENT' });
    });

    test.each([
      ['outside storage.roots', '/etc'],
      ['outside by ..', '../elsewhere'],
      ['outside by a link', 'link/x'],
      ['data.directory itself', '.'],
      ['the embedded database', 'database'],
      ['that of an earlier version', 'database-server'],
      ['the keys', 'secrets.key'],
      ['staged files', '.pesit'],
      ['below a regular file', 'plain/x'],
    ])('%s: 400', async (_, path) => {
      await symlink('/tmp', join(rest.data, 'link'));
      await writeFile(join(rest.data, 'plain'), '');
      const response = await rest.post(FILES, { fileId: 'F', receiveDirectory: path, sendFile: path });
      expect(response.status).toBe(400);
      expect(faultyFields(response)).toContain('receiveDirectory');
      if (!path.startsWith('plain')) expect(faultyFields(response)).toContain('sendFile');
    });

    test('a link inside the roots may be used, one to the keys may not', async () => {
      await mkdir(join(rest.data, 'real'));
      await symlink(join(rest.data, 'real'), join(rest.data, 'inside'));
      await symlink(rest.data, join(rest.data, 'home'));
      expect((await rest.post(FILES, { fileId: 'A', receiveDirectory: 'inside' })).status).toBe(201);
      expect((await rest.post(FILES, { fileId: 'B', sendDirectory: 'home' })).status).toBe(400);
    });
  });

  describe('bad input is named', () => {
    test.each<[string, Record<string, unknown>, string]>([
      ['no identifier', { fileId: undefined }, 'fileId'],
      ['a long identifier', { fileId: 'x'.repeat(77) }, 'fileId'],
      ['a path as identifier', { fileId: '../../x' }, 'fileId'],
      ['two identifiers', { id: 'G' }, 'id'],
      ['an unknown direction', { direction: 'UP' }, 'direction'],
      ['a pattern with an unknown placeholder', { receiveFilenamePattern: '${basename}' }, 'receiveFilenamePattern'],
      ['a pattern that climbs', { receiveFilenamePattern: '../${uuid}' }, 'receiveFilenamePattern'],
      ['an absolute pattern', { receiveFilenamePattern: '/x' }, 'receiveFilenamePattern'],
      ['an empty pattern', { receiveFilenamePattern: '' }, 'receiveFilenamePattern'],
      ['an empty glob', { filenamePattern: '' }, 'filenamePattern'],
      ['a largest size of 0', { maxFileSize: 0 }, 'maxFileSize'],
      ['a largest size of text', { maxFileSize: '1MB' }, 'maxFileSize'],
      ['record length 0', { recordLength: 0 }, 'recordLength'],
      ['record length 65536', { recordLength: 65536 }, 'recordLength'],
      ['an unknown record format', { recordFormat: 64 }, 'recordFormat'],
      ['two send directories', { sendFile: 'a', sendDirectory: 'b' }, 'sendFile'],
      ['NUL in a directory', { receiveDirectory: 'a\0b' }, 'receiveDirectory'],
      ['an empty directory', { sendDirectory: '' }, 'sendDirectory'],
      ['text that is no flag', { text: 'yes' }, 'text'],
      ['ebcdic that is no flag', { ebcdic: 1 }, 'ebcdic'],
      ['an unknown code page', { codePage: '273' }, 'codePage'],
      ['an unknown compression', { compression: 'GZIP' }, 'compression'],
      ['an unknown durability', { durability: 'always' }, 'durability'],
      ['an unknown field', { file: 'x' }, 'file'],
    ])('%s', async (_, change, field) => {
      const response = await rest.post(FILES, { fileId: 'F', direction: 'BOTH', ...change });
      expect(response.status).toBe(400);
      expect(faultyFields(response)).toContain(field);
      expect((await rest.get(FILES)).body).toEqual([]);
    });

    test.each([[{ maxRetries: 3 }, ['maxRetries']]])('%j is not built: 422', async (change, fields) => {
      const response = await rest.post(FILES, { fileId: 'F', ...change });
      expect([response.status, faultyFields(response)]).toEqual([422, fields]);
      await rest.post(FILES, { fileId: 'F' });
      expect((await rest.put(`${FILES}/F`, change)).status).toBe(422);
    });
  });
});
