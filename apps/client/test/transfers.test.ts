import { createHash, randomUUID } from 'node:crypto';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { once } from 'node:events';
import { dirname, join } from 'node:path';

import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { CONTENT, deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const OCTET_STREAM = 'application/octet-stream';

withDatabase((harness) => {
  const world = useWorld(harness);
  let service: Service;

  /** A service with the server `bank`, which is enabled but never reached: the queue does not start. */
  const idle = async (options: Parameters<typeof world.service>[0] = {}): Promise<void> => {
    service = await world.service(options);
    await world.remote(service, 1);
    await service.exchange.queue.stop(0);
  };

  describe('a request for a transfer', () => {
    beforeEach(() => idle());

    const fieldsOf = (body: { readonly details?: readonly { readonly field: string }[] }): string[] =>
      (body.details ?? []).map(({ field }) => field);

    type Wrong = readonly (readonly [string, Record<string, unknown>])[];
    const WRONG_IN_BOTH: Wrong = [
      ['server', { server: undefined }],
      ['server', { serverId: 1 }],
      ['serverId', { server: undefined, serverId: '1' }],
      ['serverId', { server: undefined, serverId: 1.5 }],
      ['server', { server: 7 }],
      ['server', { server: 'a\u0000' }],
      ['virtualFile', { virtualFile: undefined, remoteFilename: undefined }],
      ['virtualFile', { virtualFile: '../x' }],
      ['virtualFile', { virtualFile: 'a\u0000b' }],
      ['virtualFile', { virtualFile: 'x'.repeat(77) }],
      ['remoteFilename', { remoteFilename: 'é' }],
      ['remoteFilename', { remoteFilename: 'a\u0000' }],
      ['remoteFilename', { remoteFilename: 'x'.repeat(81) }],
      ['remoteFilename', { virtualFile: undefined, remoteFilename: 'x'.repeat(77) }],
      ['remoteFilename', { remoteFilename: ' x' }],
      ['partnerId', { partnerId: '' }],
      ['partnerId', { partnerId: 'a/b' }],
      ['maxEntitySize', { maxEntitySize: 10 }],
      ['syncInterval', { syncInterval: -1 }],
      ['syncWindow', { syncWindow: 300 }],
      ['syncPointsEnabled', { syncPointsEnabled: 'no' }],
      ['text', { text: 'true' }],
      ['compression', { compression: 'gzip' }],
      ['crc', { crc: 'yes' }],
      ['codePage', { codePage: '850' }],
      ['colour', { colour: 1 }],
    ];
    test('a wrong field is a 400 that names it, in sending and receiving', async () => {
      for (const [field, wrong] of WRONG_IN_BOTH) {
        const request = { server: 'bank', virtualFile: 'V', remoteFilename: 'r', ...wrong };
        for (const { status, body } of [
          await service.api.post('/transfers/send', { ...request, fileContent: CONTENT }),
          await service.api.post('/transfers/receive', request),
        ]) {
          expect([wrong, status, body.error, fieldsOf(body)]).toEqual([wrong, 400, 'VALIDATION_ERROR', [field]]);
        }
      }
      expect((await service.api.get('/transfers')).body.totalElements).toBe(0);
    });

    const WRONG_IN_SENDING: Wrong = [
      ['filename', {}],
      ['filename', { filename: 'a', fileContent: CONTENT }],
      ['filename', { filename: '' }],
      ['filename', { filename: 'a\u0000b' }],
      ['filename', { filename: '../a' }],
      ['filename', { filename: '/etc/passwd' }],
      ['filename', { filename: 'dir' }],
      ['filename', { filename: 'out-link' }],
      ['filename', { filename: 'dangling' }],
      ['filename', { filename: '.pesit/x.part' }],
      ['filename', { filename: 'x'.repeat(300) }],
      ['fileContent', { fileContent: 'AAA' }],
      ['fileContent', { fileContent: 'AAAA\n' }],
      ['fileContent', { fileContent: 'AA-_' }],
      ['fileContent', { fileContent: 'AAB=' }],
      ['fileContent', { fileContent: '%%%%' }],
      ['fileContent', { fileContent: 12 }],
      ['recordLength', { fileContent: CONTENT, recordLength: 65_536 }],
      ['recordFormat', { fileContent: CONTENT, recordFormat: 1 }],
      ['label', { fileContent: CONTENT, label: 'ü' }],
      ['freeMessage', { fileContent: CONTENT, freeMessage: 'x'.repeat(255) }],
      ['freeMessage', { fileContent: CONTENT, freeMessage: 'base64:AAB=' }],
      ['freeMessage', { fileContent: CONTENT, freeMessage: 'a\u0000' }],
      ['originalSender', { fileContent: CONTENT, originalSender: 'x'.repeat(25) }],
      ['finalReceiver', { fileContent: CONTENT, finalReceiver: '' }],
      ['creationDate', { fileContent: CONTENT, creationDate: '2026-02-30T00:00:00' }],
      ['creationDate', { fileContent: CONTENT, creationDate: '2026-11-21T09:30:15Z' }],
      ['creationDate', { fileContent: CONTENT, creationDate: '2070-01-01T00:00:00' }],
      ['localName', { fileContent: CONTENT, localName: 'x' }],
    ];
    test('a wrong field is a 400 that names it, in sending', async () => {
      const send = join(service.data, 'send');
      await mkdir(join(send, 'dir'));
      await mkdir(join(send, '.pesit'));
      await writeFile(join(send, '.pesit/x.part'), '');
      await symlink('/etc/passwd', join(send, 'out-link'));
      await symlink('/nowhere/at/all', join(send, 'dangling'));
      for (const [field, wrong] of WRONG_IN_SENDING) {
        const { status, body } = await service.api.post('/transfers/send', {
          server: 'bank',
          virtualFile: 'V',
          ...wrong,
        });
        expect([wrong, status, body.error, fieldsOf(body)]).toEqual([wrong, 400, 'VALIDATION_ERROR', [field]]);
      }
      expect(await world.filesIn(service, 'send')).toEqual(['x.part']);
    });

    test('a path out of the send tree, into what is hidden or came with other requests, names the tree to stay in', async () => {
      const send = join(service.data, 'send');
      for (const name of ['spool/of-another', 'bank/.pesit/x.part', '.own/key']) {
        await mkdir(join(send, dirname(name)), { recursive: true });
        await writeFile(join(send, name), 'x');
      }
      await symlink('.own/key', join(send, 'hidden-link'));
      await symlink('spool', join(send, 'spool-link'));
      const names = ['spool/of-another', join(send, 'spool/of-another'), 'spool-link/of-another'];
      for (const filename of [...names, 'bank/.pesit/x.part', '.own/key', 'hidden-link', '../a', '/etc/passwd']) {
        const { status, body } = await service.api.post('/transfers/send', {
          server: 'bank',
          virtualFile: 'V',
          filename,
        });
        expect([filename, status, fieldsOf(body)]).toEqual([filename, 400, ['filename']]);
        expect([filename, body.details[0].message]).toEqual([filename, expect.stringContaining(send)]);
      }
    });

    test('what is both or neither of filename and fileContent says which', async () => {
      const neither = await service.api.post('/transfers/send', { server: 'bank', virtualFile: 'V' });
      expect(neither.body.details[0].message).toContain('got neither');
      const both = await service.api.post('/transfers/send', {
        ...{ server: 'bank', virtualFile: 'V', filename: 'a', fileContent: CONTENT },
      });
      expect(both.body.details[0].message).toContain('got both');
    });

    test('a wrong localName is a 400', async () => {
      for (const localName of ['../x', 'a/b', '.hidden', 'a\u0000', '', 'x'.repeat(201), 7]) {
        const { status, body } = await service.api.post('/transfers/receive', {
          server: 'bank',
          virtualFile: 'V',
          localName,
        });
        expect([localName, status, fieldsOf(body)]).toEqual([localName, 400, ['localName']]);
      }
    });

    test('a file of the tree is found by its relative and its absolute name, and through a link that stays inside', async () => {
      const send = join(service.data, 'send');
      await mkdir(join(send, 'dir'));
      await writeFile(join(send, 'dir/a'), 'abc');
      await symlink('dir/a', join(send, 'link'));
      for (const filename of ['dir/a', './dir/a', join(send, 'dir/a'), 'link']) {
        const { status, body, headers } = await service.api.post('/transfers/send', {
          ...{ server: 'bank', virtualFile: 'V', filename },
        });
        expect([status, headers['location']]).toEqual([202, `/api/v1/transfers/${body.id}`]);
        expect(body).toMatchObject({
          status: 'PENDING',
          filename,
          size: 3,
          startTime: null,
          attempts: 0,
          duration: null,
        });
        expect((await service.transfers.find(body.id as string))?.source_path).toMatch(/send\/dir\/a$/);
      }
    });

    test('a data directory behind a link', async () => {
      const data = `${service.data}-link`;
      await symlink(service.data, data);
      await world.remote(service, 3, { name: 'other' });
      const linked = await world.service({ data, node: 'linked' });
      await linked.exchange.queue.stop(0);
      await writeFile(join(service.data, 'send/a'), 'abc');
      for (const filename of ['a', join(data, 'send/a'), join(service.data, 'send/a')]) {
        const { status } = await linked.api.post('/transfers/send', { server: 'bank', virtualFile: 'V', filename });
        expect([filename, status]).toEqual([filename, 202]);
      }
      await rm(data);
    });

    test('what is missing has its own code', async () => {
      const request = { virtualFile: 'V', fileContent: CONTENT };
      const file = await service.api.post('/transfers/send', { server: 'bank', virtualFile: 'V', filename: 'none' });
      expect([file.status, file.body.error]).toEqual([404, 'FILE_NOT_FOUND']);
      for (const unknown of [{ server: 'none' }, { serverId: 99 }]) {
        const sent = await service.api.post('/transfers/send', { ...request, ...unknown });
        expect([sent.status, sent.body.error]).toEqual([404, 'SERVER_NOT_FOUND']);
        const received = await service.api.post('/transfers/receive', { virtualFile: 'V', ...unknown });
        expect([received.status, received.body.error]).toEqual([404, 'SERVER_NOT_FOUND']);
      }
      expect(await world.filesIn(service, 'send')).toEqual([]);
    });

    test('a disabled server is a 409, and what was sent with the request is not kept', async () => {
      await service.api.put('/servers/1', { enabled: false });
      const sent = await service.api.post('/transfers/send', {
        server: 'bank',
        virtualFile: 'V',
        fileContent: CONTENT,
      });
      expect([sent.status, sent.body.error]).toEqual([409, 'CONFLICT']);
      expect(await world.filesIn(service, 'send')).toEqual([]);
    });

    test('bodies that are no JSON object', async () => {
      const post = (type: string, content: string) =>
        service.api.raw('post', '/transfers/send').set('Content-Type', type).send(content);
      expect((await post('application/json', '{')).status).toBe(400);
      expect((await post('application/json', '[]')).status).toBe(400);
      expect((await post('text/plain', 'x')).status).toBe(415);
    });

    test('a form that is not as it should be names the field, and nothing is kept', async () => {
      const part = (name: string, value: string) =>
        `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
      const post = (form: string, query = '') =>
        service.api
          .raw('post', `/transfers/send${query}`)
          .set('Content-Type', 'multipart/form-data; boundary=x')
          .send(form);
      const names = part('server', 'bank') + part('virtualFile', 'V');
      const file = part('file', 'x'.repeat(100_000));
      for (const [form, field, query] of [
        [`${names}--x--`, 'file'],
        [`${names}${file}${part('label', 'late')}--x--`, 'label'],
        [`${names}${file}${file}--x--`, 'file'],
        // As curl sends it when the file is named first.
        [`${file}${names}--x--`, 'file'],
        [`${part('server', 'bank')}${file}--x--`, 'virtualFile'],
        [`${names}${part('server', 'bank')}${file}--x--`, 'server'],
        [`${names}${file}--x--`, 'server', '?server=bank'],
        [`${names}${part('syncInterval', 'x')}${file}--x--`, 'syncInterval'],
        [`${names}${part('__proto__', 'x')}${file}--x--`, '__proto__'],
        [`${names}${part('label', 'x'.repeat(5000))}${file}--x--`, 'label'],
        [`${names}${part('fileContent', CONTENT)}${file}--x--`, 'fileContent'],
      ] as const) {
        const { status, body } = await post(form, query);
        expect([form.slice(-40), status, fieldsOf(body)]).toEqual([form.slice(-40), 400, [field]]);
      }
      const cut = await post(`${names}${file}`);
      expect([cut.status, cut.body.message]).toEqual([400, expect.stringContaining('ends before its last delimiter')]);
      const gone = await post(`${part('server', 'none')}${part('virtualFile', 'V')}${file}--x--`);
      expect([gone.status, gone.body.error]).toEqual([404, 'SERVER_NOT_FOUND']);
      expect(await world.filesIn(service, 'send')).toEqual([]);
    });

    test('methods', async () => {
      const { status, headers } = await service.api.get('/transfers/send');
      expect([status, headers['allow']]).toEqual([405, 'POST']);
      expect((await service.api.delete(`/transfers/${randomUUID()}`)).status).toBe(405);
    });
  });

  describe('the queue', () => {
    test('full: 503 with Retry-After, and nothing is kept', async () => {
      await idle({ settings: { corePoolSize: 1, maxPoolSize: 1, queueCapacity: 1 } });
      const post = () =>
        service.api.post('/transfers/send', { server: 'bank', virtualFile: 'V', fileContent: CONTENT });
      expect((await post()).status).toBe(202);
      expect((await post()).status).toBe(202);
      const full = await post();
      expect([full.status, full.body.error, full.headers['retry-after']]).toEqual([503, 'SERVICE_UNAVAILABLE', '5']);
      expect(full.body.message).toContain('2 transfers wait');
      expect(await world.filesIn(service, 'send')).toHaveLength(2);
      const upload = await service.api
        .raw('post', '/transfers/send?server=bank&virtualFile=V')
        .set('Content-Type', OCTET_STREAM)
        .send(Buffer.alloc(10));
      expect(upload.status).toBe(503);
      expect(await world.filesIn(service, 'send')).toHaveLength(2);
    });
  });

  describe('waiting for the end', () => {
    test.each(['abc', '-1', '301', '1.5', ''])('?wait=%s is a 400', async (wait) => {
      await idle();
      const { status } = await service.api.post(`/transfers/receive?wait=${wait}`, {
        server: 'bank',
        virtualFile: 'V',
      });
      expect(status).toBe(400);
    });

    test('202 while it goes on, 200 when it has ended, by wait or by Prefer', async () => {
      const held = deferred();
      const partner = await world.partner({ before: { create: () => held.promise } });
      service = await world.service();
      await world.remote(service, partner.port);
      const request = { server: 'bank', virtualFile: 'V', fileContent: CONTENT };
      const early = await service.api.post('/transfers/send?wait=1', request);
      expect(early.status).toBe(202);
      // A busy machine may need more than that second to take it from the queue.
      expect(['PENDING', 'IN_PROGRESS']).toContain(early.body.status);
      held.resolve();
      const late = await service.api
        .raw('post', '/transfers/send')
        .set('Prefer', 'respond-async, wait=90')
        .send(request);
      expect([late.status, late.body.status, late.headers['preference-applied']]).toEqual([
        200,
        'COMPLETED',
        'wait=90',
      ]);
      const failed = await service.api.post('/transfers/receive?wait=90', { server: 'bank', virtualFile: 'NONE' });
      expect([failed.status, failed.body.status]).toEqual([200, 'FAILED']);
    });
  });

  describe('uploads', () => {
    const upload = (query: string, content: Buffer | string = '') =>
      service.api.raw('post', `/transfers/send?${query}`).set('Content-Type', OCTET_STREAM).send(content);

    test('Content-Digest: what came is what was sent, or a 400 and nothing is kept', async () => {
      await idle();
      const content = 'x'.repeat(100_000);
      const form = `--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n${content}\r\n--x--\r\nepilogue`;
      const json = JSON.stringify({ server: 'bank', virtualFile: 'V', fileContent: CONTENT });
      const digestOf = (body: string, hash = 'sha256') => createHash(hash).update(body).digest('base64');
      const query = '?server=bank&virtualFile=V';
      for (const [type, body, behind] of [
        [OCTET_STREAM, content, query],
        ['multipart/form-data; boundary=x', form, query],
        ['application/json', json, ''],
      ] as const) {
        const post = (digest: string) =>
          service.api
            .raw('post', `/transfers/send${behind}`)
            .set('Content-Type', type)
            .set('Content-Digest', digest)
            .send(body);
        for (const wrong of [
          `sha-256=:${digestOf(`${body}y`)}:`,
          `sha-256=:${digestOf(body)}:, sha-512=:${digestOf('', 'sha512')}:`,
          'sha-256=:AAAA:',
          `sha-256=${digestOf(body)}`,
          'unixsum=:AAAA:',
        ]) {
          const { status, body: answer } = await post(wrong);
          expect([type, wrong, status, answer.details?.[0].field]).toEqual([type, wrong, 400, 'Content-Digest']);
        }
        expect([await world.filesIn(service, 'temp'), await world.filesIn(service, 'send')]).toEqual([[], []]);
        expect((await service.api.get('/transfers')).body.totalElements).toBe(0);
        const right = await post(`md5=:AAAA:, sha-512=:${digestOf(body, 'sha512')}:, sha-256=:${digestOf(body)}:`);
        expect(right.status).toBe(202);
        await service.api.post(`/transfers/${right.body.id as string}/cancel`);
        await world.database().knex('transfers').delete();
        await rm(join(service.data, 'send/spool', right.body.id as string), { force: true });
      }
    });

    test('a wrong field in the query is a 400 that names it', async () => {
      await idle();
      for (const [field, query] of [
        ['server', 'virtualFile=V'],
        ['server', 'server=bank&serverId=1&virtualFile=V'],
        ['server', 'server=bank&server=bank&virtualFile=V'],
        ['serverId', 'serverId=x&virtualFile=V'],
        ['virtualFile', 'server=bank'],
        ['recordLength', 'server=bank&virtualFile=V&recordLength=0'],
        ['recordFormat', 'server=bank&virtualFile=V&recordFormat=7'],
        ['text', 'server=bank&virtualFile=V&text=yes'],
        ['filename', 'server=bank&virtualFile=V&filename=x'],
        ['wait', 'server=bank&virtualFile=V&wait=x'],
      ] as const) {
        const { status, body } = await upload(query, 'x');
        expect([query, status, body.details?.[0].field]).toEqual([query, 400, field]);
      }
    });

    test('an unknown server, and a disabled one: nothing is kept', async () => {
      await idle();
      expect((await upload('server=none&virtualFile=V', 'x')).status).toBe(404);
      await service.api.put('/servers/1', { enabled: false });
      expect((await upload('server=bank&virtualFile=V', 'x')).status).toBe(409);
      expect(await world.filesIn(service, 'send')).toEqual([]);
    });

    test('empty, with settings as text', async () => {
      const partner = await world.partner();
      service = await world.service();
      await world.remote(service, partner.port);
      const query = 'serverId=1&virtualFile=V&recordLength=10&recordFormat=0&text=true&syncPointsEnabled=false&wait=90';
      const { status, body } = await upload(query);
      expect([status, body.status, body.size]).toEqual([200, 'COMPLETED', 0]);
      expect(partner.creates[0]).toMatchObject({
        logicalAttributes: { recordFormat: 0, recordLength: 10 },
        dataCode: 0,
      });
    });

    test('one that breaks off leaves neither a file nor a transfer', async () => {
      await idle();
      const call = httpRequest({
        ...{ port: service.http.port, method: 'POST', path: '/api/v1/transfers/send?server=bank&virtualFile=V' },
        headers: {
          ...{ 'content-type': OCTET_STREAM, 'content-length': 1_000_000 },
          authorization: `Basic ${Buffer.from('admin:rest-secret-1').toString('base64')}`,
        },
      });
      call.on('error', () => undefined);
      call.write(Buffer.alloc(100_000));
      const [incoming] = (await once(service.http.server, 'request')) as [NodeJS.EventEmitter];
      call.destroy();
      await new Promise((resolve) => incoming.once('close', resolve));
      await until(async () => (await world.filesIn(service, 'send')).length === 0);
      expect((await service.api.get('/transfers')).body.totalElements).toBe(0);
    });
  });

  describe('the database', () => {
    test('allows no status change that the design does not know', async () => {
      await idle();
      const { knex } = world.database();
      const statuses = ['PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED'] as const;
      const allowed = [
        ...[
          'PENDING>IN_PROGRESS',
          'PENDING>CANCELLED',
          'PENDING>FAILED',
          'IN_PROGRESS>PENDING',
          'IN_PROGRESS>COMPLETED',
        ],
        ...['IN_PROGRESS>FAILED', 'IN_PROGRESS>CANCELLED', 'FAILED>PENDING'],
      ];
      const columns = (status: string) => ({
        status,
        end_time: ['PENDING', 'IN_PROGRESS'].includes(status) ? null : new Date(),
        node: 'n',
        lease_until: new Date(),
        error_code: 'TRANSFER_FAILED',
      });
      const moved = (status: string) => ({
        ...columns(status),
        ...(status === 'IN_PROGRESS' ? { fence: knex.raw('fence + 1') } : {}),
      });
      const pathTo = {
        PENDING: [],
        IN_PROGRESS: ['IN_PROGRESS'],
        COMPLETED: ['IN_PROGRESS', 'COMPLETED'],
        FAILED: ['IN_PROGRESS', 'FAILED'],
        CANCELLED: ['CANCELLED'],
      };
      const possible: string[] = [];
      for (const from of statuses) {
        for (const to of statuses.filter((status) => status !== from)) {
          const row = randomUUID();
          await knex('transfers').insert({
            ...{ id: row, status: 'PENDING', direction: 'SEND', server_id: 1, server_name: 'bank' },
            ...{ partner_id: 'NODE1', filename: 'f', settings: {} },
          });
          for (const step of pathTo[from]) await knex('transfers').where({ id: row }).update(moved(step));
          const changed = await knex('transfers')
            .where({ id: row })
            .update(moved(to))
            .catch((error: unknown) => (error as Error).message);
          if (changed === 1) possible.push(`${from}>${to}`);
          else expect(changed).toContain(`a transfer cannot go from ${from} to ${to}`);
        }
      }
      expect(possible.sort()).toEqual([...allowed].sort());
      // Left PENDING by the loop: a lease without a new fence is none.
      await expect(
        knex('transfers').where({ status: 'PENDING', fence: 1 }).update(columns('IN_PROGRESS')),
      ).rejects.toThrow('a lease needs a fence above 1');
      const born = {
        direction: 'SEND',
        server_id: 1,
        server_name: 'bank',
        partner_id: 'N',
        filename: 'f',
        settings: {},
      };
      await expect(knex('transfers').insert({ id: randomUUID(), ...born, ...columns('COMPLETED') })).rejects.toThrow(
        'a transfer begins as PENDING, not as COMPLETED',
      );
      await expect(knex('transfers').insert({ id: randomUUID(), ...born, status: 'DONE' })).rejects.toThrow();
    });
  });
});
