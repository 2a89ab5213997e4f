import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { useWorld } from './support/world.js';

const BANK = { name: 'bank', host: 'pesit.example', serverId: 'BANKSRV', clientId: 'NODE1' };

afterAll(expectNoSecrets);

withDatabase((harness) => {
  const world = useWorld(harness);
  let service: Service;
  beforeEach(async () => {
    service = await world.service();
  });

  describe('remote servers', () => {
    test('answer null for what is left to the configuration, and never show the password', async () => {
      const { status, headers, body } = await service.api.post('/servers', { ...BANK, password: 'zq8#Kp2!' });
      expect(status).toBe(201);
      expect(headers['location']).toBe('/api/v1/servers/1');
      expect(body).toEqual({
        id: 1,
        name: 'bank',
        host: 'pesit.example',
        port: 6502,
        tlsPort: null,
        tlsEnabled: false,
        ...{ keystoreName: null, truststoreName: null, tlsServerName: null, certificateFingerprint: null },
        revocation: 'off',
        serverId: 'BANKSRV',
        clientId: 'NODE1',
        enabled: true,
        description: null,
        maxConnections: null,
        maxBytesPerSecond: null,
        tcpipHeader: 'length-prefixed',
        maxEntitySize: null,
        syncInterval: null,
        syncWindow: null,
        compression: null,
        crc: null,
        resync: null,
        selectByName: null,
        ebcdic: null,
        codePage: null,
        multiArticle: null,
        concatenation: null,
        preconnectId: null,
        recordLength: null,
        recordFormat: null,
        text: null,
        status: 'UNKNOWN',
        statusReason: null,
        lastContact: null,
        negotiated: null,
        lastSeen: null,
        circuit: { state: 'CLOSED', failures: 0, since: null, nextTry: null, reason: null },
        traceUntil: null,
      });
      expect((await service.api.get('/servers/1')).body).toEqual(body);
      expect((await service.api.get('/servers')).body).toEqual([body]);
      const stored = await service.database.knex('remote_servers').first();
      expect(stored.password).toMatch(/^v1\./);
      expect(JSON.stringify(stored)).not.toContain('zq8#Kp2!');
    });

    test('PUT changes what it names, null clears what may be cleared, an absent password stays', async () => {
      await service.api.post('/servers', { ...BANK, password: 'zq8#Kp2!', syncWindow: 9, description: 'x' });
      const sealed = (await service.database.knex('remote_servers').first()).password;
      const put = await service.api.put('/servers/1', { maxConnections: 7, syncWindow: null, description: null });
      expect([put.status, put.body]).toMatchObject([
        200,
        { maxConnections: 7, syncWindow: null, description: null, name: 'bank' },
      ]);
      expect((await service.database.knex('remote_servers').first()).password).toBe(sealed);
      await service.api.put('/servers/1', { password: 'other-p1' });
      const changed = (await service.database.knex('remote_servers').first()).password;
      expect(changed).toMatch(/^v1\./);
      expect(changed).not.toBe(sealed);
      await service.api.put('/servers/1', { password: null });
      expect((await service.database.knex('remote_servers').first()).password).toBeNull();
      expect((await service.api.put('/servers/1', {})).status).toBe(200);
    });

    test('a name is used once', async () => {
      await service.api.post('/servers', BANK);
      const twice = await service.api.post('/servers', BANK);
      expect([twice.status, twice.body.error]).toEqual([409, 'CONFLICT']);
      await service.api.post('/servers', { ...BANK, name: 'second' });
      const renamed = await service.api.put('/servers/3', { name: 'bank' });
      expect([renamed.status, renamed.body.message]).toEqual([409, 'A remote server named "bank" exists already']);
    });

    test('what does not exist is 404 SERVER_NOT_FOUND', async () => {
      for (const answer of [
        await service.api.get('/servers/77'),
        await service.api.put('/servers/77', { port: 1 }),
        await service.api.delete('/servers/77'),
        await service.api.post('/servers/77/test'),
      ]) {
        expect([answer.status, answer.body.error]).toEqual([404, 'SERVER_NOT_FOUND']);
      }
      expect((await service.api.get('/servers/x')).status).toBe(400);
    });

    test('GET lists all, or those that are asked for, or page by page', async () => {
      for (const name of ['zeta', 'bank', 'other'])
        await service.api.post('/servers', { ...BANK, name, enabled: name !== 'other', description: `of ${name}` });
      const names = (content: unknown) => (content as { name: string }[]).map(({ name }) => name);
      for (const [query, expected] of [
        ['', ['zeta', 'bank', 'other']],
        ['?q=OF%20B', ['bank']],
        ['?enabled=false', ['other']],
        ['?status=UNKNOWN&enabled=true', ['zeta', 'bank']],
        ['?status=REFUSED', []],
      ] as const)
        expect([query, names((await service.api.get(`/servers${query}`)).body)]).toEqual([query, expected]);
      const { body } = await service.api.get('/servers?page=1&size=2');
      expect(names(body.content)).toEqual(['other']);
      expect(body).toMatchObject({ totalElements: 3, totalPages: 2, number: 1, size: 2 });
    });

    test('DELETE removes one; its history stays without it', async () => {
      await service.api.post('/servers', { ...BANK, enabled: false });
      await service.database.knex('transfers').insert({
        ...{ id: '00000000-0000-4000-8000-000000000001', status: 'PENDING', direction: 'SEND', server_id: 1 },
        ...{ server_name: 'bank', partner_id: 'NODE1', filename: 'a', settings: {} },
      });
      const busy = await service.api.delete('/servers/1');
      expect([busy.status, busy.body.message]).toEqual([
        409,
        expect.stringMatching(
          /^Remote server "bank" is in use: 1 transfer that waits: 00000000-0000-4000-8000-000000000001\. /,
        ),
      ]);
      await service.database
        .knex('transfers')
        .update({ status: 'CANCELLED', end_time: service.database.knex.fn.now() });
      expect((await service.api.delete('/servers/1')).status).toBe(204);
      expect((await service.api.get('/servers/1')).status).toBe(404);
      const { body } = await service.api.get('/transfers/00000000-0000-4000-8000-000000000001');
      expect(body).toMatchObject({ serverId: null, serverName: 'bank' });
    });

    test('DELETE by force cancels what waits, tells what runs to end, and removes it when nothing does', async () => {
      await service.api.post('/servers', { ...BANK, enabled: false });
      const { knex } = service.database;
      const ids = [1, 2, 3].map((number) => `00000000-0000-4000-8000-00000000000${number}`);
      await knex('transfers').insert(
        ids.map((id) => ({
          ...{ id, status: 'PENDING', direction: 'SEND', server_id: 1 },
          ...{ server_name: 'bank', partner_id: 'NODE1', filename: 'a', settings: {} },
        })),
      );
      const [first, ...others] = ids;
      const lease = { node: 'other', fence: 1, lease_until: new Date(Date.now() + 3_600_000) };
      await knex('transfers')
        .where({ id: first })
        .update({ status: 'IN_PROGRESS', ...lease });
      const running = await service.api.delete('/servers/1?force=true');
      expect([running.status, running.body.message]).toEqual([
        409,
        `Remote server "bank" is in use: 1 transfer that runs: ${first}. They were told to end: ask again in a moment`,
      ]);
      expect(await knex('transfers').orderBy('id').select('id', 'status', 'cancel_requested')).toEqual([
        { id: first, status: 'IN_PROGRESS', cancel_requested: true },
        ...others.map((id) => ({ id, status: 'CANCELLED', cancel_requested: true })),
      ]);
      await knex('transfers').where({ id: first }).update({ status: 'CANCELLED', end_time: knex.fn.now() });
      expect((await service.api.delete('/servers/1?force=true')).status).toBe(204);
      const audit = await service.api.get('/audit?objectType=remote%20server&action=deleted');
      expect(audit.body).toMatchObject({ totalElements: 1, content: [{ object: '1' }] });
    });

    test.each([
      ['true', true, 'length-prefixed'],
      ['false', false, 'raw'],
      ['raw', 'raw', 'raw'],
      ['length-prefixed', 'length-prefixed', 'length-prefixed'],
    ])('tcpipHeader %s', async (_name, tcpipHeader, shown) => {
      expect((await service.api.post('/servers', { ...BANK, tcpipHeader })).body.tcpipHeader).toBe(shown);
    });

    test.each(['10.0.0.1', '::1', 'fe80::1%eth0', 'localhost', 'pesit-server', 'my_host.bank.example'])(
      'the host %s',
      async (host) => {
        expect((await service.api.post('/servers', { ...BANK, host })).body.host).toBe(host);
      },
    );

    const LONG = 'x'.repeat(600);
    const WRONG: readonly (readonly [string, Record<string, unknown>])[] = [
      ['name', { name: '' }],
      ['name', { name: ' bank' }],
      ['name', { name: 'a\u0000b' }],
      ['name', { name: LONG }],
      ['keystoreName', { keystoreName: 'a\u0000b' }],
      ['truststoreName', { truststoreName: 'banks ' }],
      ['name', { name: null }],
      ['host', { host: '' }],
      ['host', { host: 'a b' }],
      ['host', { host: 'http://x/' }],
      ['host', { host: '..' }],
      ['host', { host: 'a..b' }],
      ['host', { host: ':::::' }],
      ['host', { host: '-a' }],
      ['host', { host: `${'x'.repeat(64)}.example` }],
      ['host', { host: 'a\u0000b' }],
      ['port', { port: 0 }],
      ['port', { port: 65_536 }],
      ['port', { port: '6502' }],
      ['port', { port: 1.5 }],
      ['port', { port: null }],
      ['serverId', { serverId: '../x' }],
      ['serverId', { serverId: 'x'.repeat(25) }],
      ['serverId', { serverId: 'a\u0000' }],
      ['clientId', { clientId: '' }],
      ['clientId', { clientId: 'é' }],
      ['password', { password: '' }],
      ['password', { password: 'ninechars' }],
      ['password', { password: 'pässword' }],
      ['password', { password: 'zq7#Lb ' }],
      ['enabled', { enabled: 'yes' }],
      ['description', { description: LONG }],
      ['maxConnections', { maxConnections: 0 }],
      ['tcpipHeader', { tcpipHeader: 'auto' }],
      ['maxEntitySize', { maxEntitySize: 100 }],
      ['maxEntitySize', { maxEntitySize: 65_536 }],
      ['syncInterval', { syncInterval: 65_535 }],
      ['syncWindow', { syncWindow: 256 }],
      ['recordLength', { recordLength: 0 }],
      ['recordFormat', { recordFormat: 1 }],
      ['text', { text: 1 }],
      ['compression', { compression: 'zip' }],
      ['crc', { crc: 1 }],
      ['resync', { resync: 'true' }],
      ['codePage', { codePage: '1252' }],
      ['multiArticle', { multiArticle: 1 }],
      ['concatenation', { concatenation: 'no' }],
      ['preconnectId', { preconnectId: 'NINECHARS' }],
      ['preconnectId', { preconnectId: '' }],
      ['preconnectPassword', { preconnectPassword: 'NINECHARS' }],
      ['colour', { colour: 'red' }],
      ['id', { id: 4 }],
    ];
    test('a wrong field is a 400 that names it, in POST and PUT', async () => {
      await service.api.post('/servers', BANK);
      for (const [field, wrong] of WRONG) {
        for (const { status, body } of [
          await service.api.post('/servers', { ...BANK, name: 'other', ...wrong }),
          await service.api.put('/servers/1', wrong),
        ]) {
          const fields = body.details?.map((detail: { readonly field: string }) => detail.field);
          expect([wrong, status, body.error, fields]).toEqual([wrong, 400, 'VALIDATION_ERROR', [field]]);
        }
      }
      expect((await service.api.get('/servers')).body).toHaveLength(1);
    });

    test('name, host, serverId and clientId are required', async () => {
      const { status, body } = await service.api.post('/servers', {});
      const fields = body.details.map((detail: { readonly field: string }) => detail.field);
      expect([status, fields]).toEqual([400, ['name', 'host', 'serverId', 'clientId']]);
    });

    test('facilities are kept, shown, and cleared by null; the password of the pre-connection is sealed', async () => {
      const wanted = {
        crc: true,
        resync: true,
        compression: 'both',
        ebcdic: true,
        codePage: '1147',
        multiArticle: false,
        concatenation: false,
        preconnectId: 'X',
      };
      const created = await service.api.post('/servers', { ...BANK, ...wanted, preconnectPassword: 'Xy#zyXyz' });
      expect([created.status, created.body]).toMatchObject([201, wanted]);
      expect(JSON.stringify(created.body)).not.toContain('Xy#zyXyz');
      const stored = await service.database.knex('remote_servers').first();
      expect(stored.preconnect_password).toMatch(/^v1\./);
      const cleared = Object.fromEntries(
        Object.keys({ ...wanted, preconnectPassword: '' }).map((name) => [name, null]),
      );
      expect((await service.api.put('/servers/1', cleared)).body).toMatchObject(
        Object.fromEntries(Object.keys(wanted).map((name) => [name, null])),
      );
      expect((await service.database.knex('remote_servers').first()).preconnect_password).toBeNull();
    });

    test('no password of a pre-connection is kept without its identifier', async () => {
      const preconnectPassword = 'Xy#zyXyz';
      for (const wrong of [{ preconnectPassword }, { preconnectId: null, preconnectPassword }]) {
        const { status, body } = await service.api.post('/servers', { ...BANK, ...wrong });
        expect([status, body.details]).toEqual([
          400,
          [{ field: 'preconnectId', message: 'expected beside preconnectPassword' }],
        ]);
      }
      await service.api.post('/servers', BANK);
      expect((await service.api.put('/servers/1', { preconnectPassword })).status).toBe(400);
      expect((await service.api.put('/servers/77', { preconnectPassword })).status).toBe(404);
      expect((await service.api.put('/servers/1', { preconnectId: 'X' })).status).toBe(200);
      expect((await service.api.put('/servers/1', { preconnectPassword })).status).toBe(200);
    });
  });
});
