/** Passwords of remote servers stay with the host that they were entered for. */
import { afterAll, expect, test } from '@jest/globals';
import { SecretBox } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';

import { remoteServerStore } from '../src/remote-servers/store.js';
import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const PASSWORD = 'pz#8kQ!v';
const PRECONNECT = 'Xy#zyXyz';
/** The key of the services of these tests. */
const box = new SecretBox([Buffer.alloc(32, 7)]);

withDatabase((harness) => {
  const world = useWorld(harness);

  const put = async (service: Service, fields: object) => {
    const { status, body } = await service.api.put('/servers/1', fields);
    return [status, body.details?.map((detail: { readonly field: string }) => detail.field)];
  };
  const stored = () => world.database().knex('remote_servers').where({ id: 1 }).first();

  test('another host, port or identifier wants the password again', async () => {
    const thief = await world.partner();
    const service = await world.service();
    await world.remote(service, 6502, { host: 'pesit.bank.example' });
    const before = await stored();
    for (const change of [
      { host: '127.0.0.1', port: thief.port },
      { host: '127.0.0.1' },
      { port: thief.port },
      { serverId: 'OTHER' },
      { clientId: 'OTHER' },
      { clientId: 'OTHER', password: undefined },
    ]) {
      expect(await put(service, change)).toEqual([400, ['password']]);
    }
    expect(await stored()).toEqual(before);
    // What is as it was, or leads nowhere, wants nothing.
    const same = { host: 'pesit.bank.example', port: 6502, serverId: 'BANKSRV', clientId: 'NODE1' };
    expect(await put(service, same)).toEqual([200, undefined]);
    expect(await put(service, { name: 'bank2', description: 'x', enabled: false, maxConnections: 3 })).toEqual([
      200,
      undefined,
    ]);
    expect((await stored()).password).toBe(before.password);
    // Who knows it, or gives it up, may lead it anywhere.
    const moved = { host: '127.0.0.1', port: thief.port, password: PASSWORD };
    expect(await put(service, moved)).toEqual([200, undefined]);
    expect((await service.api.post('/servers/1/test')).body).toMatchObject({ success: true });
    expect(await put(service, { port: 6502, password: null })).toEqual([200, undefined]);
    expect(await put(service, { port: thief.port })).toEqual([200, undefined]);
    expect((await service.api.post('/servers/1/test')).body).toMatchObject({ success: true });
    expect(thief.connects.map(({ accessControl }) => accessControl)).toEqual([PASSWORD, undefined]);
  });

  test('the refusal says which host the password is for, and how to go on', async () => {
    const service = await world.service();
    await world.remote(service, 6502, { host: 'pesit.bank.example' });
    const { body } = await service.api.put('/servers/1', { host: 'pesit.thief.example' });
    expect(body.details).toEqual([
      {
        field: 'password',
        message:
          'expected again beside another host, port, serverId or clientId: the one that is kept was given for pesit.bank.example:6502; null removes it',
      },
    ]);
  });

  test('so does the password of a pre-connection', async () => {
    const service = await world.service();
    await world.remote(service, 6502, { password: null, preconnectId: 'PRE', preconnectPassword: PRECONNECT });
    for (const change of [{ host: 'other.example' }, { port: 1 }, { preconnectId: 'PRE2' }]) {
      expect(await put(service, change)).toEqual([400, ['preconnectPassword']]);
    }
    expect(await put(service, { serverId: 'OTHER' })).toEqual([200, undefined]);
    expect(await put(service, { preconnectId: 'PRE2', preconnectPassword: PRECONNECT })).toEqual([200, undefined]);
    // Without its identifier it is of no use, and of no danger when another one comes.
    expect(await put(service, { preconnectId: null })).toEqual([200, undefined]);
    expect((await stored()).preconnect_password).toBeNull();
    await service.api.put('/servers/1', { password: PASSWORD, preconnectId: 'PRE', preconnectPassword: PRECONNECT });
    expect(await put(service, { port: 1 })).toEqual([400, ['password', 'preconnectPassword']]);
  });

  test('of two changes at once, none carries a password where the other leads', async () => {
    const service = await world.service();
    await world.remote(service, 6502, { host: 'pesit.bank.example' });
    const answers = await Promise.all([
      put(service, { host: 'pesit.thief.example', password: null }),
      put(service, { password: PASSWORD }),
      put(service, { host: 'pesit.thief.example' }),
    ]);
    expect(answers.filter(([status]) => status !== 200 && status !== 400)).toEqual([]);
    // Whatever their order was: the password that is kept, if any, was sealed for the host that is kept.
    expect(await service.servers.sealAnew({ rotate: false })).toEqual({ sealed: 0, unreadable: [] });
  });

  test('a host that was changed in the database gets no password', async () => {
    const thief = await world.partner();
    const service = await world.service();
    await world.remote(service, 6502, { host: 'pesit.bank.example' });
    await world.database().knex('remote_servers').update({ host: '127.0.0.1', port: thief.port });
    const { body } = await service.api.post('/servers/1/test');
    expect(body).toMatchObject({ success: false, errorCode: 'TRANSFER_FAILED', diagnostic: '2-215' });
    expect(body.message).toBe(
      `password of remote server "bank" cannot be used for 127.0.0.1:${thief.port} (A stored secret was changed, or belongs to another place): set it again`,
    );
    expect(await world.send(service)).toMatchObject({ status: 'FAILED', diagnostic: '2-215' });
    expect(thief.connects).toEqual([]);
  });

  test('passwords that were sealed without their host are sealed anew at the start, and nothing is lost', async () => {
    const partner = await world.partner();
    const first = await world.service();
    const preconnect = { preconnectId: 'PRE', preconnectPassword: PRECONNECT };
    await world.remote(first, partner.port);
    await world.remote(first, partner.port, { name: 'second', ...preconnect });
    await world.remote(first, partner.port, { name: 'foreign' });
    await world.remote(first, partner.port, { name: 'without', password: null });
    await first.stop();
    const { knex } = world.database();
    await knex('remote_servers')
      .where({ id: 1 })
      .update({ password: box.seal(PASSWORD, 'remote-server/1/password') });
    await knex('remote_servers')
      .where({ id: 2 })
      .update({
        password: box.seal(PASSWORD, 'remote-server/2/password'),
        preconnect_password: box.seal(PRECONNECT, 'remote-server/2/preconnect-password'),
      });
    const foreign = new SecretBox([Buffer.alloc(32, 9)]).seal(PASSWORD, 'remote-server/3/password');
    await knex('remote_servers').where({ id: 3 }).update({ password: foreign });
    const before = await knex('remote_servers').orderBy('id');

    const second = await world.service();
    await until(() =>
      Promise.resolve(
        second.log.lines.some(
          (line) =>
            line.includes('bound the stored passwords of remote servers to their hosts') && line.includes('"sealed":3'),
        ),
      ),
    );
    expect((await world.send(second)).status).toBe('COMPLETED');
    expect(partner.connects.at(-1)?.accessControl).toBe(PASSWORD);
    const after = await knex('remote_servers').orderBy('id');
    for (const [index, column] of [
      [0, 'password'],
      [1, 'password'],
      [1, 'preconnect_password'],
    ] as const) {
      expect(after[index][column]).toMatch(/^v1\./);
      expect(after[index][column]).not.toBe(before[index][column]);
    }
    // Its key may come back: it is kept, and said.
    expect(after[2].password).toBe(foreign);
    expect(
      second.log.lines.filter((line) => line.includes('could not decrypt a password') && line.includes('foreign')),
    ).toHaveLength(1);
    // From now on the old form opens nothing.
    const unbound = box.seal(PASSWORD, 'remote-server/1/password');
    await knex('remote_servers').where({ id: 1 }).update({ password: unbound });
    expect((await second.api.post('/servers/1/test')).body).toMatchObject({ success: false, diagnostic: '2-215' });
    expect(await second.servers.sealAnew({ rotate: false })).toEqual({ sealed: 1, unreadable: ['foreign'] });
    expect(await second.servers.sealAnew({ rotate: false })).toEqual({ sealed: 0, unreadable: ['foreign'] });
    expect((await second.api.post('/servers/1/test')).body).toMatchObject({ success: true });
  });

  test('what an older key has sealed is sealed with the first one when the keys are rotated', async () => {
    const service = await world.service();
    await world.remote(service, 6502, { preconnectId: 'PRE', preconnectPassword: PRECONNECT });
    await service.stop();
    const { knex } = world.database();
    const old = Buffer.alloc(32, 7);
    const both = new SecretBox([Buffer.alloc(32, 8), old]);
    const store = remoteServerStore(knex, both);
    expect(await store.sealAnew({ rotate: false })).toEqual({ sealed: 0, unreadable: [] });
    expect(await store.sealAnew({ rotate: true })).toEqual({ sealed: 2, unreadable: [] });
    expect(await store.sealAnew({ rotate: true })).toEqual({ sealed: 0, unreadable: [] });
    const { password, preconnect_password: preconnectPassword } = await stored();
    expect([both.isStale(password), both.isStale(preconnectPassword)]).toEqual([false, false]);
    const rotated = remoteServerStore(knex, new SecretBox([Buffer.alloc(32, 8)]));
    expect(await rotated.sealAnew({ rotate: true })).toEqual({ sealed: 0, unreadable: [] });
  });

  test('a rotation that is broken off goes on where it was, and two beside each other seal everything once', async () => {
    const service = await world.service();
    await service.stop();
    const { knex } = world.database();
    const [old, now] = [Buffer.alloc(32, 7), Buffer.alloc(32, 8)];
    const before = remoteServerStore(knex, new SecretBox([old]));
    const fields = { host: 'bank.example', port: 6502, serverId: 'S', clientId: 'C', password: PASSWORD };
    for (let i = 0; i < 150; i++) await before.create({ ...fields, name: `bank${i}` });
    const both = remoteServerStore(knex, new SecretBox([now, old]));
    const brokenOff = both.sealAnew({
      rotate: true,
      progress: (looked, of) => {
        expect([looked, of]).toEqual([100, 150]);
        throw new Error('interrupted');
      },
    });
    await expect(brokenOff).rejects.toThrow('interrupted');
    const rest = await Promise.all([both.sealAnew({ rotate: true }), both.sealAnew({ rotate: true })]);
    expect(rest.reduce((sum, { sealed }) => sum + sealed, 0)).toBe(50);
    const rows = await remoteServerStore(knex, new SecretBox([now])).list();
    expect(rows.filter(({ password }) => !password?.startsWith(`v1.${new SecretBox([now]).keyId}.`))).toEqual([]);
  });
});
