import { describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { passwords } from './support/passwords.js';
import { faultyFields, secret, useRest } from './support/rest.js';

const PARTNERS = '/api/v1/config/partners';
const PASSWORD = secret('zQ7 !x#9');
const OTHER = secret('Wv3~Kk$1');

withDatabase((harness) => {
  const rest = useRest(harness);

  describe('a partner', () => {
    test('is created with defaults, and its password is nowhere to be read', async () => {
      const created = await rest.post(PARTNERS, { partnerId: 'ACME', password: PASSWORD });
      expect(created.status).toBe(201);
      expect(created.headers['location']).toBe(`${PARTNERS}/ACME`);
      expect(created.body).toEqual({
        partnerId: 'ACME',
        id: 'ACME',
        lastSeen: null,
        traceUntil: null,
        preconnectId: null,
        allowedFiles: null,
        allowedListeners: null,
        allowedAddresses: null,
        mayChangePassword: false,
        maxBytesPerSecond: null,
        multiArticle: null,
        ...{ tlsRequired: false, certificateFingerprint: null, certificateSubject: null, certificateSan: null },
        concatenation: null,
        name: null,
        description: null,
        enabled: true,
        allowedOperations: ['READ', 'WRITE'],
        accessType: 'BOTH',
        maxConnections: null,
        quotaBytes: null,
        quotaFiles: null,
        lastConnection: null,
        transferCount: 0,
      });
      expect((await rest.get(`${PARTNERS}/ACME`)).body).toEqual(created.body);
      expect((await rest.get(PARTNERS)).body).toEqual([created.body]);
      const row = await rest.database.knex('partners').first<{ password_hash: string }>('password_hash');
      expect(row.password_hash).toMatch(/^\$scrypt\$/);
      await expect(passwords.verify(PASSWORD, row.password_hash)).resolves.toBe(true);
    });

    test('may be called id as well as partnerId', async () => {
      expect((await rest.post(PARTNERS, { id: 'B B', password: PASSWORD })).headers['location']).toBe(
        `${PARTNERS}/B%20B`,
      );
      expect((await rest.get(`${PARTNERS}/B%20B`)).body).toMatchObject({ partnerId: 'B B', id: 'B B' });
    });

    test('exists once: 409', async () => {
      await rest.post(PARTNERS, { partnerId: 'ACME', password: PASSWORD });
      const again = await rest.post(PARTNERS, { partnerId: 'ACME', password: OTHER });
      expect([again.status, again.body.error]).toEqual([409, 'CONFLICT']);
      expect(again.body.message).toBe('Partner "ACME" exists already');
    });

    test('that does not exist: 404 for every verb', async () => {
      const answers = [
        await rest.get(`${PARTNERS}/NOBODY`),
        await rest.put(`${PARTNERS}/NOBODY`, { name: 'x' }),
        await rest.delete(`${PARTNERS}/NOBODY`),
      ];
      expect(answers.map(({ status, body }) => [status, body.error])).toEqual(Array(3).fill([404, 'NOT_FOUND']));
    });

    test('is changed in part: absent fields stay, null clears, an absent password stays', async () => {
      await rest.post(PARTNERS, {
        partnerId: 'ACME',
        password: PASSWORD,
        name: 'Acme',
        description: 'd',
        maxConnections: 3,
        accessType: 'READ',
      });
      const { body } = await rest.put(`${PARTNERS}/ACME`, { description: null, maxConnections: null, enabled: false });
      expect(body).toMatchObject({ name: 'Acme', description: null, maxConnections: null, enabled: false });
      expect(body).toMatchObject({ accessType: 'READ', allowedOperations: ['READ'] });
      const hash = async () =>
        (await rest.database.knex('partners').first<{ password_hash: string }>('password_hash')).password_hash;
      await expect(passwords.verify(PASSWORD, await hash())).resolves.toBe(true);
      await rest.put(`${PARTNERS}/ACME`, { password: OTHER });
      await expect(passwords.verify(OTHER, await hash())).resolves.toBe(true);
    });

    test('as it was answered can be put back', async () => {
      const { body } = await rest.post(PARTNERS, { partnerId: 'ACME', password: PASSWORD });
      const put = await rest.put(`${PARTNERS}/ACME`, body);
      expect([put.status, put.body]).toEqual([200, body]);
    });

    test('keeps the password of a pre-connection as a hash, and none without an identifier', async () => {
      const preconnectPassword = secret('preC0nn8');
      const { body } = await rest.post(PARTNERS, {
        partnerId: 'ACME',
        password: PASSWORD,
        preconnectId: 'XPRE',
        preconnectPassword,
      });
      expect(body).toMatchObject({ preconnectId: 'XPRE' });
      expect(body).not.toHaveProperty('preconnectPassword');
      const hash = async () =>
        (await rest.database.knex('partners').first<{ hash: string }>('preconnect_password_hash as hash')).hash;
      await expect(passwords.verify(preconnectPassword, await hash())).resolves.toBe(true);
      await rest.put(`${PARTNERS}/ACME`, { name: 'x' });
      await expect(passwords.verify(preconnectPassword, await hash())).resolves.toBe(true);
      await rest.put(`${PARTNERS}/ACME`, { preconnectId: null });
      expect(await hash()).toBeNull();
    });

    test('keeps no password of a pre-connection that it does not have', async () => {
      await rest.post(PARTNERS, { partnerId: 'ACME', password: PASSWORD });
      const preconnectPassword = secret('preC0nn8');
      for (const body of [{ preconnectPassword }, { preconnectId: null, preconnectPassword }]) {
        const refused = await rest.put(`${PARTNERS}/ACME`, body);
        expect([refused.status, faultyFields(refused)]).toEqual([400, ['preconnectId']]);
      }
      expect((await rest.put(`${PARTNERS}/NOBODY`, { preconnectPassword })).status).toBe(404);
      expect((await rest.put(`${PARTNERS}/ACME`, { preconnectId: 'XPRE' })).status).toBe(200);
      expect((await rest.put(`${PARTNERS}/ACME`, { preconnectPassword })).status).toBe(200);
    });

    test('is sent one article in each DTF, and one FPDU in each entity, where that is set', async () => {
      const layout = { multiArticle: false, concatenation: false };
      const { body } = await rest.post(PARTNERS, { partnerId: 'ACME', password: PASSWORD, ...layout });
      expect(body).toMatchObject(layout);
      const { body: cleared } = await rest.put(`${PARTNERS}/ACME`, { multiArticle: null, concatenation: null });
      expect(cleared).toMatchObject({ multiArticle: null, concatenation: null });
    });

    test('is deleted: 204, then 404', async () => {
      await rest.post(PARTNERS, { partnerId: 'ACME', password: PASSWORD });
      expect((await rest.delete(`${PARTNERS}/ACME`)).status).toBe(204);
      expect((await rest.get(`${PARTNERS}/ACME`)).status).toBe(404);
    });

    test('partners are listed by identifier, whatever the locale', async () => {
      for (const partnerId of ['b', 'A', 'a', 'B']) await rest.post(PARTNERS, { partnerId, password: PASSWORD });
      expect((await rest.get(PARTNERS)).body.map(({ id }: { id: string }) => id)).toEqual(['A', 'B', 'a', 'b']);
    });
  });

  describe('rights', () => {
    test.each([
      [{ allowedOperations: ['READ'] }, 'READ', ['READ']],
      [{ allowedOperations: ['WRITE'] }, 'WRITE', ['WRITE']],
      [{ allowedOperations: ['WRITE', 'READ'] }, 'BOTH', ['READ', 'WRITE']],
      [{ accessType: 'READ' }, 'READ', ['READ']],
      [{ accessType: 'WRITE' }, 'WRITE', ['WRITE']],
      [{ accessType: 'BOTH' }, 'BOTH', ['READ', 'WRITE']],
      [{ accessType: 'BOTH', allowedOperations: ['READ', 'WRITE'] }, 'BOTH', ['READ', 'WRITE']],
    ])('%j is %s', async (given, accessType, allowedOperations) => {
      const { body } = await rest.post(PARTNERS, { partnerId: 'P', password: PASSWORD, ...given });
      expect(body).toMatchObject({ accessType, allowedOperations });
    });
  });

  describe('bad input is named', () => {
    test.each<[string, Record<string, unknown>, string]>([
      ['no identifier', { partnerId: undefined }, 'partnerId'],
      ['an empty identifier', { partnerId: '' }, 'partnerId'],
      ['a long identifier', { partnerId: 'x'.repeat(25) }, 'partnerId'],
      ['a path as identifier', { partnerId: '../etc' }, 'partnerId'],
      ['NUL in the identifier', { partnerId: 'a\0b' }, 'partnerId'],
      ['a blank at the end', { partnerId: 'ACME ' }, 'partnerId'],
      ['not ASCII', { partnerId: 'AÉ' }, 'partnerId'],
      ['two identifiers', { id: 'OTHER' }, 'id'],
      ['no password', { password: undefined }, 'password'],
      ['a null password', { password: null }, 'password'],
      ['an empty password', { password: '' }, 'password'],
      ['nine characters', { password: '123456789' }, 'password'],
      ['a password that is not ASCII', { password: 'pässwörd' }, 'password'],
      ['a password that ends with a blank', { password: 'abc ' }, 'password'],
      ['a number as password', { password: 1234 }, 'password'],
      ['a wrong type', { enabled: 'yes' }, 'enabled'],
      ['no operation', { allowedOperations: [] }, 'allowedOperations'],
      ['an unknown operation', { allowedOperations: ['DELETE'] }, 'allowedOperations[0]'],
      ['an unknown access type', { accessType: 'NONE' }, 'accessType'],
      ['contradicting rights', { accessType: 'READ', allowedOperations: ['WRITE'] }, 'accessType'],
      ['a quota of nothing', { quotaBytes: 0 }, 'quotaBytes'],
      ['half a file', { quotaFiles: 1.5 }, 'quotaFiles'],
      ['no connection at all', { maxConnections: 0 }, 'maxConnections'],
      ['half a connection', { maxConnections: 1.5 }, 'maxConnections'],
      ['NUL in the name', { name: 'a\0b' }, 'name'],
      ['an unknown field', { colour: 'red' }, 'colour'],
      ['a figure that is read-only', { transferCount: 5 }, 'transferCount'],
      ['a time that is read-only', { lastConnection: null }, 'lastConnection'],
      ['what was seen of it', { lastSeen: null }, 'lastSeen'],
      ['the switch of its trace', { traceUntil: null }, 'traceUntil'],
      ['a word for a switch', { multiArticle: 'no' }, 'multiArticle'],
      ['a number for a switch', { concatenation: 1 }, 'concatenation'],
      ['an identifier that is too long', { preconnectId: 'NINECHARS' }, 'preconnectId'],
      ['a password without its identifier', { preconnectPassword: 'preC0nn8' }, 'preconnectId'],
    ])('%s', async (_, change, field) => {
      const response = await rest.post(PARTNERS, { partnerId: 'ACME', password: PASSWORD, ...change });
      expect([response.status, response.body.error]).toEqual([400, 'VALIDATION_ERROR']);
      expect(faultyFields(response)).toContain(field);
      expect((await rest.get(PARTNERS)).body).toEqual([]);
    });

    test('an identifier cannot be changed, nor be impossible in the path', async () => {
      await rest.post(PARTNERS, { partnerId: 'ACME', password: PASSWORD });
      expect((await rest.put(`${PARTNERS}/ACME`, { partnerId: 'OTHER' })).status).toBe(400);
      expect((await rest.put(`${PARTNERS}/ACME`, { id: 'ACME' })).status).toBe(200);
      for (const id of ['..%2f..%2fetc', 'a%00b', 'x'.repeat(300)]) {
        expect((await rest.get(`${PARTNERS}/${id}`)).status).toBe(400);
      }
    });
  });
});
