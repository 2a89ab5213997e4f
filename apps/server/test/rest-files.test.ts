/** Files by REST: the content of a transfer, and the files that a partner would be sent. */
import { mkdir, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deferred } from '@pesit-node/ground';
import { withDatabase } from '@pesit-node/service/testing';
import { LocalFileStores, nodeFiles } from '@pesit-node/storage';
import type { FileOperations } from '@pesit-node/storage';

import { transferContent } from '../src/transfers/content.js';
import type { TransferContentDeps } from '../src/transfers/content.js';
import { bytes, useNode } from './support/node.js';

interface Held {
  readonly name: string;
  readonly asked: ReturnType<typeof deferred<undefined>>;
  readonly answered: ReturnType<typeof deferred<undefined>>;
}

/** The real file system; one file may be opened only when the test says so. */
let held: Held | undefined;
const files: FileOperations = {
  ...nodeFiles,
  open: async (path, flags, mode) => {
    if (held !== undefined && path.endsWith(held.name)) {
      held.asked.resolve(undefined);
      await held.answered.promise;
    }
    return nodeFiles.open(path, flags, mode);
  },
};

const names = (answered: Readonly<Record<string, unknown>>): readonly string[] =>
  (answered['content'] as { readonly name: string }[]).map(({ name }) => name);

withDatabase((harness) => {
  const node = useNode(harness, {
    stores: new LocalFileStores({ files }),
    settings: { 'transfer.content-download': true, 'storage.answer-timeout': 1 },
  });

  const ask = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
    fetch(`http://127.0.0.1:${node().restPort}/api/v1${path}`, {
      method,
      headers: { authorization: node().authorization, connection: 'close', ...headers },
    });
  const offer = async (name: string, content: Buffer | string, secondsOld = 0): Promise<string> => {
    const path = join(node().data, 'OUT/out', name);
    await writeFile(path, content);
    const time = Math.floor(Date.now() / 1000) - secondsOld;
    await utimes(path, time, time);
    return path;
  };

  afterEach(() => {
    held?.answered.resolve(undefined);
    held = undefined;
  });
  beforeEach(() => mkdir(join(node().data, 'OUT/out'), { recursive: true }));

  describe('the content of a transfer', () => {
    const content = bytes(700_000);
    const receivedBy = async (file = content): Promise<{ readonly id: number; readonly path: string }> => {
      await node().send(await node().connect(), 'IN', file);
      const { id, filename } = await node().ended();
      return { id, path: join(node().data, 'IN/in', String(filename)) };
    };
    const statusOf = async (id: number): Promise<readonly [number, string]> => {
      const answered = await ask(`/transfers/${id}/content`);
      const text = await answered.text();
      return [answered.status, answered.ok ? text : (JSON.parse(text) as { message: string }).message];
    };

    test('whole, in part, and its headers alone; each request is in the audit log', async () => {
      const { id, path } = await receivedBy();
      const whole = await ask(`/transfers/${id}/content`);
      expect([whole.status, whole.headers.get('content-type')]).toEqual([200, 'application/octet-stream']);
      expect(whole.headers.get('content-disposition')).toMatch(/^attachment; filename="?[0-9a-f-]{36}"?$/);
      expect(Buffer.from(await whole.arrayBuffer()).equals(content)).toBe(true);
      const etag = whole.headers.get('etag') ?? '';
      const part = await ask(`/transfers/${id}/content`, { range: 'bytes=300000-', 'if-range': etag });
      expect([part.status, part.headers.get('content-range')]).toEqual([206, 'bytes 300000-699999/700000']);
      expect(Buffer.from(await part.arrayBuffer()).equals(content.subarray(300_000))).toBe(true);
      const other = await ask(`/transfers/${id}/content`, { range: 'bytes=0-9', 'if-range': '"another"' });
      expect([other.status, (await other.arrayBuffer()).byteLength]).toEqual([200, 700_000]);
      const beyond = await ask(`/transfers/${id}/content`, { range: 'bytes=700000-' });
      expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */700000']);
      await beyond.text();
      const head = await ask(`/transfers/${id}/content`, {}, 'HEAD');
      expect([head.status, head.headers.get('content-length')]).toEqual([200, '700000']);
      const { content: entries } = await node().call('get', '/api/v1/audit?objectType=transfer&action=content%20read');
      const entry = { actor: 'operator', object: String(id), details: JSON.stringify({ path }) };
      // The refusal of the part is noted, too, in its own time.
      const stored = (entries as { readonly details: string }[]).filter(({ details }) => details === entry.details);
      expect(stored).toEqual([entry, entry, entry, entry, entry].map((one) => expect.objectContaining(one)));
    });

    test('a file that was sent, until it is another one', async () => {
      const path = await offer('data.bin', 'first', 10);
      await node().receive(await node().connect(), 'OUT');
      const { id } = await node().ended();
      expect(await statusOf(id)).toEqual([200, 'first']);
      await offer('data.bin', 'other', 5);
      expect(await statusOf(id)).toEqual([410, expect.stringContaining(`${path} is another file now`)]);
    });

    test('a delivered file that was touched is told by its checksum; another one, a link or none is a 410', async () => {
      const { id, path } = await receivedBy(Buffer.from('received'));
      const later = Date.now() / 1000 + 3600;
      await utimes(path, later, later);
      expect(await statusOf(id)).toEqual([200, 'received']);
      await writeFile(path, 'REPLACED');
      await utimes(path, later, later);
      expect(await statusOf(id)).toEqual([410, expect.stringContaining('was changed since')]);
      await writeFile(path, 'longer than it was');
      expect((await statusOf(id))[0]).toBe(410);
      await writeFile(`${path}.elsewhere`, 'received');
      await rm(path);
      await symlink(`${path}.elsewhere`, path);
      expect(await statusOf(id)).toEqual([410, expect.stringContaining('a link is on the way')]);
      await rm(path);
      expect(await statusOf(id)).toEqual([410, expect.stringContaining('fetched, moved or removed')]);
      await rename(join(node().data, 'IN/in'), join(node().data, 'IN/moved'));
      await symlink(join(node().data, 'IN/moved'), join(node().data, 'IN/in'));
      expect((await statusOf(id))[0]).toBe(410);
    });

    test('of what is no file, has failed, or does not exist, or without transfer.content-download', async () => {
      const session = await node().connect();
      await expect(node().receive(session, 'OUT')).rejects.toThrow();
      const failed = await node().ended();
      expect(await statusOf(failed.id)).toEqual([409, expect.stringContaining(`Transfer ${failed.id} is FAILED`)]);
      await session.sendMessage({
        request: { fileIdentifier: { fileType: 0, fileName: 'IN' }, transferId: 7, message: Buffer.from('m') },
      });
      const [message] = await node().history('&type=MESSAGE');
      expect(await statusOf(message!.id)).toEqual([409, expect.stringContaining('is a message')]);
      expect((await statusOf(999_999))[0]).toBe(404);
      const config = { 'transfer.content-download': false, 'storage.answer-timeout': 1 };
      // Nothing else is asked for.
      const open = transferContent({ config } as TransferContentDeps);
      await expect(open(failed.id, undefined)).rejects.toMatchObject({ status: 403, code: 'FORBIDDEN' });
    });

    test('a volume that does not answer is a 503 in time', async () => {
      await offer('silent', 'x');
      await node().receive(await node().connect(), 'OUT');
      const { id } = await node().ended();
      const [asked, answered] = [deferred<undefined>(), deferred<undefined>()];
      held = { name: 'silent', asked, answered };
      const status = statusOf(id);
      await asked.promise;
      expect(await status).toEqual([503, expect.stringContaining('did not answer in 1 s')]);
      answered.resolve(undefined);
    });
  });

  describe('the files that a partner would be sent', () => {
    const available = (query = 'partnerId=ACME', fileId = 'OUT') =>
      node().call('get', `/api/v1/config/files/${fileId}/available?${query}`);

    test('are those that it is sent, one SELECT after the other', async () => {
      expect(await available()).toEqual({ content: [], more: false });
      await offer('b', 'bb', 10);
      await offer('a', 'a', 5);
      await offer('c', 'ccc', 20);
      await offer('.hidden', 'x', 30);
      expect(await available('partnerId=ACME&size=2')).toEqual({
        content: [
          { name: 'c', size: 3, modified: expect.stringMatching(/^\d{4}-/), fault: null },
          expect.objectContaining({ name: 'b', size: 2 }),
        ],
        more: true,
      });
      const session = await node().connect();
      const sent: string[] = [];
      for (const expected of names(await available())) {
        expect(names(await available())[0]).toBe(expected);
        await node().receive(session, 'OUT');
        sent.push(String((await node().ended())['filename']));
      }
      expect(sent).toEqual(['c', 'b', 'a']);
      expect(await available()).toEqual({ content: [], more: false });
      await node().partner('OTHER');
      expect(names(await available('partnerId=OTHER'))).toEqual(['c', 'b', 'a']);
      await node().call('put', '/api/v1/config/files/OUT', { filenamePattern: 'a*' });
      expect(names(await available('partnerId=OTHER'))).toEqual(['a']);
      await offer('OUT', 'named');
      expect(names(await available())).toEqual(['OUT']);
    });

    test('of the directory of a listener, where the virtual file has none', async () => {
      await node().call('put', '/api/v1/config/files/OUT', { sendDirectory: null });
      await node().call('put', '/api/v1/servers/NODE1', { sendDirectory: 'OUT/out' });
      await offer('a', 'a');
      expect(names(await available())).toEqual([]);
      expect(names(await available('partnerId=ACME&serverId=NODE1'))).toEqual(['a']);
      await node().call('put', '/api/v1/config/partners/ACME', { allowedListeners: ['NODE2'] });
      await expect(available('partnerId=ACME&serverId=NODE1')).rejects.toThrow(/ 409 .*allowedListeners/);
    });

    test('are none that may not be given away, and say so', async () => {
      const path = await offer('a', 'a');
      await rm(join(node().data, 'OUT/out'), { recursive: true });
      await expect(available()).rejects.toThrow(/ 409 .*"diagnostic":"2-205"/);
      await node().call('put', '/api/v1/config/files/OUT', { direction: 'RECEIVE' });
      await expect(available()).rejects.toThrow(/ 409 .*direction RECEIVE.*"diagnostic":"2-226"/);
      await node().call('put', '/api/v1/config/files/OUT', { direction: 'SEND', enabled: false });
      await expect(available()).rejects.toThrow(/ 409 .*is disabled.*"diagnostic":"2-205"/);
      await expect(available('partnerId=NOBODY')).rejects.toThrow(/ 404 .*Partner/);
      await expect(available('partnerId=ACME', 'NOTHING')).rejects.toThrow(/ 404 .*Virtual file/);
      await expect(available('partnerId=ACME&serverId=X')).rejects.toThrow(/ 404 .*Listener/);
      await node().call('put', '/api/v1/config/partners/ACME', { enabled: false });
      await expect(available()).rejects.toThrow(/ 409 .*ACME is disabled/);
      await expect(available('')).rejects.toThrow(/ 400 .*partnerId/);
      await expect(readFile(path)).rejects.toThrow('ENOENT');
    });
  });
});
