import { afterAll, describe, expect, test } from '@jest/globals';
import { auditVerify, verifyAudit } from '@pesit-node/service';
import { freePort, selfSigned, usersOfRoles, withDatabase } from '@pesit-node/service/testing';
import request from 'supertest';

import { ADMIN, secret, useRest } from './support/rest.js';

const PARTNERS = '/api/v1/config/partners';

interface Entry {
  readonly id: number;
  readonly actor: string;
  readonly address: string | null;
  readonly action: string;
  readonly objectType: string;
  readonly object: string | null;
  readonly details: string | null;
}

const users = await usersOfRoles();
afterAll(() => users.remove());

withDatabase((harness) => {
  const rest = useRest(harness, { 'admin.users': users.path });
  /** The page, newest first. */
  const read = async (query = '') => {
    const { body, status } = await rest.get(`/api/v1/audit${query}`);
    expect(status).toBe(200);
    return body as { readonly content: readonly Entry[]; readonly totalElements: number; readonly next: string | null };
  };
  const said = async (query = '') =>
    (await read(query)).content.map(({ actor, action, objectType, object, details }) => [
      ...[actor, action, objectType, object],
      details === null ? null : (JSON.parse(details) as unknown),
    ]);
  const actor = ADMIN.username;

  test('a partner is created, changed and deleted: who, from where, before and after, and no secret', async () => {
    const password = secret('Zq!7xUp0');
    await rest.post(PARTNERS, { partnerId: 'ACME', name: 'Acme', password, enabled: true });
    await rest.put(`${PARTNERS}/ACME`, { name: 'Acme SA', password: secret('Yq!7xUp1'), enabled: true });
    await rest.put(`${PARTNERS}/ACME`, { name: 'Acme SA' });
    await rest.delete(`${PARTNERS}/ACME`);
    const { content } = await read();
    expect(content.map(({ address }) => address)).toEqual(Array(3).fill('127.0.0.1'));
    const [deleted, changed, created] = await said();
    expect(changed).toEqual([
      ...[actor, 'changed', 'partner', 'ACME'],
      { changes: { name: { before: 'Acme', after: 'Acme SA' }, password: { before: 'set', after: 'changed' } } },
    ]);
    expect(created).toEqual([
      ...[actor, 'created', 'partner', 'ACME'],
      { changes: expect.objectContaining({ name: { after: 'Acme' }, password: { after: 'set' } }) as unknown },
    ]);
    expect(deleted).toEqual([
      ...[actor, 'deleted', 'partner', 'ACME'],
      { changes: expect.objectContaining({ name: { before: 'Acme SA' }, password: { before: 'set' } }) as unknown },
    ]);
    expect(JSON.stringify(content)).not.toContain('scrypt');
    expect(await verifyAudit(rest.database.knex)).toMatchObject({ entries: 3, problems: [] });
  });

  test('a change whose entry cannot be stored is not stored either', async () => {
    await rest.post(PARTNERS, { partnerId: 'ACME', name: 'Acme', password: secret('Wq!7xUp2') });
    await rest.database.knex.raw('alter table audit_entries rename to audit_away');
    try {
      expect((await rest.put(`${PARTNERS}/ACME`, { name: 'Other' })).status).toBe(500);
      expect((await rest.post(PARTNERS, { partnerId: 'BANK', password: secret('Wq!7xUp2') })).status).toBe(500);
      expect((await rest.delete(`${PARTNERS}/ACME`)).status).toBe(500);
    } finally {
      await rest.database.knex.raw('alter table audit_away rename to audit_entries');
    }
    const { body } = await rest.get(PARTNERS);
    expect((body as { name: string }[]).map(({ name }) => name)).toEqual(['Acme']);
    expect((await read()).content).toHaveLength(1);
  });

  test('listeners, certificates and the license: each is stored with its entry, or not at all', async () => {
    const { knex } = rest.database;
    const [identity, other] = [selfSigned('audited'), selfSigned('audited')];
    await rest.post('/api/v1/servers?start=false', { serverId: 'NODE1', port: await freePort() });
    const CERTIFICATES = '/api/v1/certificates';
    const serialOf = async (): Promise<string> => {
      const { body } = await rest.get(`${CERTIFICATES}/issued`);
      return (body as { content: { serial: string }[] }).content[0]?.serial ?? '';
    };
    type Operation = readonly [
      ...[method: 'post' | 'put' | 'delete', path: string, body: object | (() => Promise<object>)],
      ...[action: string, objectType: string, object: string | null],
    ];
    const OPERATIONS: readonly Operation[] = [
      ['post', '/api/v1/servers/NODE1/start', {}, 'started', 'listener', 'NODE1'],
      ['post', '/api/v1/servers/NODE1/restart', {}, 'restarted', 'listener', 'NODE1'],
      ['post', '/api/servers/NODE1/stop', {}, 'stopped', 'listener', 'NODE1'],
      ['post', `${CERTIFICATES}/keystores`, { name: 'k', ...identity }, 'created', 'keystore', 'k'],
      ['put', `${CERTIFICATES}/keystores/k`, other, 'changed', 'keystore', 'k'],
      ['delete', `${CERTIFICATES}/keystores/k`, {}, 'deleted', 'keystore', 'k'],
      [
        ...(['post', `${CERTIFICATES}/truststores`, { name: 't', certificates: identity.certificate }] as const),
        ...(['created', 'truststore', 't'] as const),
      ],
      ['put', `${CERTIFICATES}/truststores/t`, { certificates: other.certificate }, 'changed', 'truststore', 't'],
      ['delete', `${CERTIFICATES}/truststores/t`, {}, 'deleted', 'truststore', 't'],
      ['post', `${CERTIFICATES}/ca`, { commonName: 'CA' }, 'created', 'certificate authority', 'CN=CA'],
      ['post', `${CERTIFICATES}/issue`, { name: 'own', commonName: 'own.example' }, 'created', 'certificate', 'own'],
      ['post', `${CERTIFICATES}/keystores/own/rotate`, {}, 'changed', 'keystore', 'own'],
      [
        ...(['post', `${CERTIFICATES}/revoked`, async () => ({ serial: await serialOf() })] as const),
        ...(['changed', 'certificate', 'own'] as const),
      ],
      ['post', '/api/v1/license/extend-evaluation', { days: 3 }, 'evaluation extended', 'license', null],
    ];
    const TABLES = ['listeners', 'keystores', 'truststores', 'authorities', 'issued_certificates'];
    const state = async () => [
      ...(await Promise.all(TABLES.map((table) => knex(table).orderByRaw('1')))),
      await knex.withSchema('pesit_common').from('license_events').orderBy('id'),
    ];
    for (const [method, path, given, action, objectType, object] of OPERATIONS) {
      const body = typeof given === 'function' ? await given() : given;
      const before = await state();
      const { totalElements } = await read();
      await knex.raw('alter table audit_entries rename to audit_away');
      const failed = await rest[method](path, body).finally(() =>
        knex.raw('alter table audit_away rename to audit_entries'),
      );
      expect([path, failed.status]).toEqual([path, 500]);
      expect(await state()).toEqual(before);
      expect((await rest[method](path, body)).status).toBeLessThan(300);
      const { content, totalElements: after } = await read();
      // The one that failed may have an entry, too, which says so.
      const made = content.slice(0, after - totalElements).filter(({ details }) => !details?.includes('"failed"'));
      expect([path, made.map((entry) => [entry.actor, entry.action, entry.objectType, entry.object])]).toEqual([
        ...[path, [[actor, action, objectType, object]]],
      ]);
      expect(JSON.stringify(content)).not.toContain('PRIVATE KEY');
    }
    expect((await verifyAudit(knex)).problems).toEqual([]);
  });

  test('requests that change nothing leave no entry', async () => {
    await rest.post(PARTNERS, { partnerId: '' });
    await rest.delete(`${PARTNERS}/NOBODY`);
    await rest.post('/api/v1/servers/NOBODY/start');
    await rest.get(PARTNERS);
    expect((await read()).content).toEqual([]);
  });

  describe('failed logins', () => {
    const fail = (user: string) => request(rest.app).get(PARTNERS).auth(user, 'wrong');

    test('repeats are one entry; the password is in none', async () => {
      for (let time = 0; time < 12; time++) await fail('eve');
      expect(await said('?action=login%20failed')).toEqual([
        ['eve', 'login failed', 'login', null, { result: 'wrong' }],
      ]);
    });

    test('a flood of names makes no more than its share', async () => {
      for (let time = 0; time < 100; time++) await fail(`eve-${time}`);
      expect((await read('?objectType=login')).totalElements).toBe(60);
    });
  });

  test('lists: filters, order, pages by number and by key, and as a file', async () => {
    for (let index = 1; index <= 5; index++)
      await rest.post(PARTNERS, { partnerId: `P${index}`, name: `Name ${index}`, password: secret('Wq!7xUp2') });
    await rest.post('/api/v1/config/files', { fileId: 'P1' });
    const CASES: readonly (readonly [query: string, objects: readonly string[]])[] = [
      ['?objectType=partner&object=P1', ['P1']],
      ['?object=P1', ['P1', 'P1']],
      ['?actor=nobody', []],
      [`?actor=${actor}&objectType=virtual%20file`, ['P1']],
      ['?action=created&q=name%203', ['P3']],
      ['?from=2100-01-01', []],
      ['?to=2020-01-01', []],
      ['?size=2', ['P1', 'P5']],
      ['?size=2&page=2', ['P2', 'P1']],
      ['?sort=time,asc&size=1', ['P1']],
      ['?node=rest&objectType=partner', ['P5', 'P4', 'P3', 'P2', 'P1']],
    ];
    for (const [query, objects] of CASES)
      expect([query, (await read(query)).content.map(({ object }) => object)]).toEqual([query, objects]);
    expect((await rest.get('/api/v1/audit?who=x')).status).toBe(400);

    const { next, totalElements } = await read('?size=4');
    expect(totalElements).toBe(6);
    expect((await read(`?size=4&after=${String(next)}`)).content.map(({ object }) => object)).toEqual(['P2', 'P1']);

    const csv = await rest.get('/api/v1/audit/export.csv?objectType=partner');
    expect(csv.headers['content-disposition']).toContain('audit.csv');
    const lines = csv.text.trimEnd().split('\r\n');
    expect(lines[0]).toBe('id,time,actor,address,action,objectType,object,node,details,previousHash,hash');
    expect(lines).toHaveLength(6);
    const jsonLines = await rest.get('/api/v1/audit/export.jsonl?object=P3');
    expect(JSON.parse(jsonLines.text)).toMatchObject({ object: 'P3', actor, objectType: 'partner' });
  });

  test('a listener is created and started, a viewer is refused: each has its entry', async () => {
    await rest.post('/api/v1/servers', { serverId: 'NODE1', port: await freePort() });
    await rest.put('/api/v1/servers/NODE1', { maxConnections: 7 });
    await rest.post('/api/v1/servers/NODE1/start');
    await rest.post('/api/servers/NODE1/stop');
    await rest.delete('/api/v1/servers/NODE1');
    const refused = () => request(rest.app).delete(`${PARTNERS}/ACME`).auth('the-viewer', 'of-each-role').expect(403);
    await refused();
    await refused();
    const all = await said('?sort=time,asc');
    const entries = all.map(([who, action, objectType, object]) => [who, action, objectType, object]);
    expect(entries).toEqual([
      [actor, 'created', 'listener', 'NODE1'],
      [actor, 'changed', 'listener', 'NODE1'],
      [actor, 'started', 'listener', 'NODE1'],
      [actor, 'stopped', 'listener', 'NODE1'],
      [actor, 'deleted', 'listener', 'NODE1'],
      ['the-viewer', 'refused', 'operation', `DELETE ${PARTNERS}/:partnerId`],
    ]);
    expect(all[1]?.[4]).toMatchObject({ changes: { maxConnections: { before: 100, after: 7 } } });
  });

  test('the command finds what was changed, and says which entry', async () => {
    await rest.post(PARTNERS, { partnerId: 'ACME', name: 'Acme', password: secret('Wq!7xUp2') });
    const run = async (...argv: string[]) => {
      const lines: string[] = [];
      const options = { app: 'server', env: { DATABASE_URL: rest.database.url }, argv, cwd: rest.data } as const;
      return { code: await auditVerify(options, (line) => lines.push(line)), lines };
    };
    const whole = await run();
    expect(whole).toEqual({
      code: 0,
      lines: ['server app: 1 entries, 1 to 1; the chain is whole', expect.stringMatching(/^--known=1:[0-9a-f]{64}$/)],
    });
    expect(await run(String(whole.lines[1]))).toEqual(whole);
    await rest.database.knex('audit_entries').update({ actor: 'eve' });
    expect((await run()).lines.slice(0, 2)).toEqual([
      'entry 1 was changed',
      'server app: 1 entries, 1 to 1; THE CHAIN IS BROKEN',
    ]);
    expect(await run('--known=x')).toMatchObject({ code: 1, lines: [expect.stringContaining('--known=ID:HASH')] });
    expect(await run('--database.url=')).toMatchObject({ code: 1, lines: [expect.stringContaining('has never run')] });
  });

  test('nobody writes it through REST', async () => {
    for (const method of ['post', 'put', 'delete'] as const)
      expect((await rest[method]('/api/v1/audit', {})).status).toBe(405);
  });
});
