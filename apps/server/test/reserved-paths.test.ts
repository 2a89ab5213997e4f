/**
 * Whatever is configured, no partner reaches the service's own files: refused when it is configured, and again for each file, for
 * links and older databases lead there, too.
 */
import { lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

import { beforeEach, describe, expect, test } from '@jest/globals';
import { diagnosticOf, summaryOf } from '@pesit-node/protocol/testing';
import { PesitError } from '@pesit-node/protocol';
import { withDatabase } from '@pesit-node/service/testing';

import { useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, create, DATA, DTF, DTF_END, ORF, read, select, syn, transEnd, WRITE } from './support/steps.js';

const FILES = '/api/v1/config/files';
const SERVERS = '/api/v1/servers';

/** Beside `data`, and inside the roots: the key, a database, a client app, and a directory above another client app. */
const settings = (data: string) => {
  const home = dirname(data);
  return {
    'storage.roots': [home],
    'secrets.key': join(home, 'keys/key'),
    'database.directory': join(home, 'pg'),
    'data.temp-directory': join(home, 'uploads'),
  };
};

/** Paths relative to `data`, and why no partner may reach them. */
const RESERVED: readonly (readonly [what: string, path: string, why: RegExp])[] = [
  ['what is outside the roots', '../..', /expected a path inside \S+ \(storage\.roots\)/],
  ['the root directory', '/', /expected a path inside \S+ \(storage\.roots\)/],
  ['the data directory', '.', /holds the data directory/],
  ['an ancestor of the data directory', '..', /holds the data directory/],
  ['the staging directory', 'from-partners/.pesit', /hidden part \.pesit/],
  ['.pesit at depth', 'bank/in/.pesit/more', /hidden part \.pesit/],
  ['another hidden directory', 'bank/.ssh', /hidden part \.ssh/],
  ['the spool of a client app on the same directory', 'send/spool', /is for the client app/],
  ['the send tree of a client app on the same directory', 'send', /is for the client app/],
  ['the received tree of a client app on the same directory', 'received/bank', /is for the client app/],
  ['the temporary tree', 'temp', /is for the client app/],
  ['the temporary tree elsewhere', '../uploads/of-a-process', /files of the service itself/],
  ['the database', 'database/base', /files of the service itself/],
  ['the database of an earlier version', 'database-server', /files of the service itself/],
  ['the database elsewhere', '../pg/base', /files of the service itself/],
  ['the key', 'secrets.key', /files of the service itself|holds the data directory/],
  ['the key elsewhere', '../keys/key', /files of the service itself/],
  ['the directory of the key elsewhere', '../keys', /files of the service itself/],
  ['the log', 'service.log', /files of the service itself/],
  ['the data of a client app elsewhere', '../client', /lies in \S+client, the data directory of another service/],
  ['the spool of a client app elsewhere', '../client/send/spool', /the data directory of another service/],
  ['a link to the spool elsewhere', 'bank/link', /link.* lies in \S+client, the data directory of another service/],
];

const FIELDS: readonly (readonly [path: string, body: object, field: string])[] = [
  [SERVERS, { serverId: 'NEW', port: 9 }, 'receiveDirectory'],
  [SERVERS, { serverId: 'NEW', port: 9 }, 'sendDirectory'],
  [FILES, { fileId: 'NEW' }, 'receiveDirectory'],
  [FILES, { fileId: 'NEW' }, 'sendDirectory'],
  [FILES, { fileId: 'NEW' }, 'sendFile'],
];

withDatabase((harness) => {
  const node = useNode(harness, { settings });

  beforeEach(async () => {
    const { data } = node();
    for (const path of ['../client/send/spool', '../pg/base', '../keys', 'bank', '../above/other', 'database/base']) {
      await mkdir(join(data, path), { recursive: true });
    }
    for (const path of ['../client/.pesit-node', '../above/other/.pesit-node', '../keys/key', 'secrets.key']) {
      await writeFile(join(data, path), 'k');
    }
    await symlink('../../client/send/spool', join(data, 'bank/link'));
  });

  /** The message of a 400 for this field alone. */
  const refused = async (method: 'post' | 'put', path: string, body: object, field: string): Promise<string> => {
    const error = await node()
      .call(method, path, { ...body })
      .then(
        () => new Error('it was taken'),
        (thrown: unknown) => thrown as Error,
      );
    const [, status, text = '{}'] = /: (\d{3}) (.*)$/s.exec(error.message) ?? ['', error.message];
    const { details } = JSON.parse(text) as { details?: { field: string; message: string }[] };
    expect([status, details?.map((one) => one.field)]).toEqual(['400', [field]]);
    return details![0]!.message;
  };

  describe('when it is configured', () => {
    test.each(FIELDS)('%s %j: %s', async (path, body, field) => {
      for (const [what, place, why] of RESERVED) {
        for (const given of [place, resolve(node().data, place)]) {
          const message = await refused('post', path, { ...body, [field]: given }, field);
          expect([what, message]).toEqual([what, expect.stringMatching(why)]);
          // It names the directory to stay in.
          expect(message).toContain(dirname(node().data));
        }
        const existing = path === FILES ? `${FILES}/IN` : `${SERVERS}/NODE1`;
        expect(await refused('put', existing, { [field]: place }, field)).toMatch(why);
      }
      const above = join(node().data, '../above');
      expect(await refused('post', path, { ...body, [field]: above }, field)).toMatch(
        /above \S+other, the data directory of another service/,
      );
      expect((await node().call('get', path)) as unknown).not.toContainEqual(expect.objectContaining(body));
    });

    test.each([
      ['receiveDirectory', { receiveDirectory: '.', receiveFilenamePattern: 'secrets.key', overwrite: true }],
      ['receiveDirectory', { receiveDirectory: '..', receiveFilenamePattern: 'data/secrets.key', overwrite: true }],
      ['receiveDirectory', { receiveDirectory: '..', receiveFilenamePattern: '${partner}/secrets.key' }],
      ['receiveDirectory', { receiveDirectory: '../keys', receiveFilenamePattern: '${virtualFile}', overwrite: true }],
      ['receiveFilenamePattern', { receiveDirectory: 'bank', receiveFilenamePattern: '../secrets.key' }],
      ['receiveFilenamePattern', { receiveDirectory: 'bank', receiveFilenamePattern: '.pesit/${uuid}' }],
      ['receiveFilenamePattern', { receiveDirectory: 'bank', receiveFilenamePattern: '/etc/passwd' }],
      ['sendDirectory', { sendDirectory: '.', filenamePattern: 'secrets.key' }],
      ['sendDirectory', { sendDirectory: '../keys', filenamePattern: 'k*' }],
      ['sendFile', { sendFile: 'secrets.key' }],
      ['sendFile', { sendFile: '../keys/key' }],
    ])('a pattern onto secrets.key: %s, %j', async (field, body) => {
      await refused('post', FILES, { fileId: 'NEW', ...body }, field);
      await refused('put', `${FILES}/BOTH`, body, field);
    });

    test('what lies beside is taken', async () => {
      for (const path of [
        'bank/in',
        'bank',
        '../files',
        'from-partners',
        'sender',
        'databases',
        join(node().data, 'x'),
      ]) {
        await node().call('put', `${FILES}/IN`, { receiveDirectory: path, sendDirectory: path });
        await node().call('put', `${SERVERS}/NODE1`, { receiveDirectory: path, sendDirectory: path });
      }
    });
  });

  /** As an older version, or another configuration, has left it. */
  const configured = async (path: string): Promise<void> => {
    await node()
      .database.knex('virtual_files')
      .where('file_id', 'BOTH')
      .update({ receive_directory: path, send_directory: path, receive_filename_pattern: 'received' });
  };

  describe('for each file', () => {
    test.each(RESERVED)('%s (%s)', async (_, place, why) => {
      const path = resolve(node().data, place);
      // A directory that is not there is refused for that.
      const isThere = await lstat(path).then(
        (facts) => !facts.isFile(),
        () => false,
      );
      if (!isThere && place !== 'secrets.key' && !place.endsWith('/key')) await mkdir(path, { recursive: true });
      const isDirectory = (await lstat(path)).isDirectory() || place.endsWith('link');
      const isWritable = isDirectory && place !== '/' && place !== '../..';
      if (isWritable) await writeFile(join(path, 'content'), 'not for partners');
      const before = isDirectory && place !== '/' ? await readdir(path) : [];
      await configured(path);
      const peer = await RawPeer.open(node().port, CONNECT);
      const answers = [await peer.send(create({ fileName: 'BOTH' }))];
      if (isWritable || !isDirectory) answers.push(await peer.send(select('BOTH')));
      peer.socket.destroy();
      for (const answer of answers) {
        expect(summaryOf(answer)).toMatch(/^ACK\((?:CREATE|SELECT)\) 2-211$/);
        expect(answer!.toString('latin1')).not.toContain(dirname(node().data));
      }
      for (const { errorMessage, direction } of await node().history()) {
        if (isDirectory || direction === 'SEND') expect(errorMessage).toMatch(why);
      }
      if (isWritable) expect(await readdir(path)).toEqual(before);
    });

    test('a link that comes into the way of a name leads nowhere, at the delivery neither', async () => {
      await node().virtualFile('SUB', { receiveFilenamePattern: '${partner}/${virtualFile}', overwrite: true });
      const directory = join(node().data, 'SUB/in');
      await mkdir(join(directory, '.own'));
      await writeFile(join(directory, '.own/SUB'), 'of the service');
      const peer = await RawPeer.open(
        node().port,
        CONNECT,
        create({ fileName: 'SUB' }),
        ORF,
        WRITE,
        DTF,
        syn(1),
        DTF_END,
      );
      await symlink('.own', join(directory, 'ACME'));
      expect(diagnosticOf(await peer.send(transEnd(DATA.length, 1)))).toBe('2-211');
      peer.socket.destroy();
      expect(await node().ended()).toMatchObject({
        diagnostic: '2-211',
        errorMessage: expect.stringMatching(/hidden part \.own.*stay in/),
      });
      expect(await readFile(join(directory, '.own/SUB'), 'utf8')).toBe('of the service');
      const again = await RawPeer.open(node().port, CONNECT);
      expect(summaryOf(await again.send(create({ fileName: 'SUB', transferId: 10 })))).toBe('ACK(CREATE) 2-211');
      again.socket.destroy();
    });

    test('nothing hidden is sent by a link, and the restart of a read goes nowhere else', async () => {
      const { data } = node();
      const out = join(data, 'OUT/out');
      await mkdir(join(out, '.own'));
      await writeFile(join(out, '.own/key'), 'of the service');
      await symlink('.own/key', join(out, 'a'));
      const peer = await RawPeer.open(node().port, CONNECT);
      expect(summaryOf(await peer.send(select('OUT')))).toBe('ACK(SELECT) 2-205');
      await writeFile(join(out, 'b'), 'for partners');
      const answer = await peer.sendAll(select('OUT'), ORF, read(0));
      expect(diagnosticOf(answer)).toBe('0-000');
      peer.socket.resetAndDestroy();
      const { transferId } = await node().ended();
      // The same file, its size and time, in another place.
      await rename(join(out, 'b'), join(data, '../client/send/b'));
      await rm(out, { recursive: true });
      await symlink('../../client/send', out);
      const session = await node().connect();
      const restart = node().receive(session, 'OUT', { transferId: transferId as number, restarted: true });
      await expect(restart).rejects.toEqual(expect.objectContaining({ diagnostic: '2-211' }));
      await expect(restart).rejects.toBeInstanceOf(PesitError);
      const [newest] = await node().history();
      expect(newest!.errorMessage).toMatch(/leads to \S+ by a link: .*data directory of another service/);
    });
  });
});
