/** Passwords of partners: how long they are, and what is stored of them. */
import { scryptSync } from 'node:crypto';

import { describe, expect, test } from '@jest/globals';
import { summaryOf } from '@pesit-node/protocol/testing';
import { PasswordHasher, SecretBox } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';

import { PartnerStore } from '../src/partners/store.js';
import { bytes, PASSWORD, until, useNode } from './support/node.js';
import { passwords, secrets } from './support/passwords.js';
import { RawPeer } from './support/raw-peer.js';
import { connectAs } from './support/steps.js';

type Column = 'password_hash' | 'preconnect_password_hash';
type Row = Readonly<Record<string, unknown>> & Readonly<Record<Column, string | null>>;

const PRECONNECT = 'PR3C0N#1';

/** As the first versions made it: without a key. */
const oldHash = (password: string): string => {
  const hash = scryptSync(password, 'some salt', 32, { N: 2 ** 10, r: 8, p: 1 })
    .toString('base64')
    .replace('=', '');
  return `$scrypt$ln=10,r=8,p=1$${Buffer.from('some salt').toString('base64')}$${hash}`;
};

withDatabase((harness) => {
  const node = useNode(harness);
  const partners = () => node().database.knex('partners').where({ partner_id: 'ACME' });
  const row = async (): Promise<Row> => (await partners().first()) as Row;
  const store = async (hash: string, column: Column = 'password_hash') => {
    await partners().update({ [column]: hash });
  };
  const renewed = (column: Column, before: string) =>
    until(async () => {
      const { [column]: hash } = await row();
      return hash === before ? undefined : (hash ?? undefined);
    });

  describe('an old hash', () => {
    test('is renewed by the next right login, of which nothing else comes', async () => {
      const session = await node().connect();
      const old = oldHash(PASSWORD);
      await store(old);
      const before = await row();
      await node().connect();
      const hash = await renewed('password_hash', old);
      expect(hash).toContain(`,keyid=${secrets.keyId}$`);
      expect(await passwords.verify(PASSWORD, hash)).toBe(true);
      // When it was connected is written for itself.
      const ownTimes = ['password_hash', 'last_connection', 'seen'];
      const kept = (of: Row) => Object.entries(of).filter(([column]) => !ownTimes.includes(column));
      expect(kept(await row())).toEqual(kept(before));
      await node().send(session, 'IN', bytes(100));
      await node().connect();
      expect((await row()).password_hash).toBe(hash);
    });

    test('is renewed by a password that is remembered as well: nobody has to forget it first', async () => {
      const old = oldHash(PASSWORD);
      await store(old);
      await node().connect();
      await renewed('password_hash', old);
      // As when the database could not be written.
      await store(old);
      await node().connect();
      expect(await renewed('password_hash', old)).toContain('keyid=');
    });

    test('of a pre-connection is renewed too', async () => {
      const preconnect = { preconnectId: 'XPRE', preconnectPassword: PRECONNECT };
      await node().call('put', '/api/v1/config/partners/ACME', preconnect);
      const old = oldHash(PRECONNECT);
      await store(old, 'preconnect_password_hash');
      await node().connect({ preconnection: { identifier: 'XPRE', password: PRECONNECT } });
      const hash = await renewed('preconnect_password_hash', old);
      expect(await passwords.verify(PRECONNECT, hash)).toBe(true);
    });

    test('stays when the password is wrong', async () => {
      const old = oldHash(PASSWORD);
      await store(old);
      await expect(node().connect({ password: 'bad-bad1' })).rejects.toMatchObject({ diagnostic: '3-304' });
      expect((await row()).password_hash).toBe(old);
    });

    test('gives way to a password that was given meanwhile', async () => {
      const [old, given] = [oldHash(PASSWORD), await passwords.hash('g1v3n~pw')];
      await store(given);
      const partnerStore = new PartnerStore(node().database.knex);
      expect(await partnerStore.renewHash('ACME', 'password_hash', old, oldHash('other')).catch(String)).toBe(false);
      expect((await row()).password_hash).toBe(given);
    });
  });

  describe('a hash that cannot be checked', () => {
    test.each([
      ['asks for too much', oldHash(PASSWORD).replace('ln=10', 'ln=30'), 'N = 2^30, and 2^10 to 2^20 is allowed'],
      ['is none', 'PASSWORD IN CLEAR', 'the stored hash has an unknown form'],
    ])('because it %s: the partner is told to come again, and the log says what to do', async (_case, hash, words) => {
      await store(hash);
      const peer = await RawPeer.from('127.0.0.1', node().port);
      expect(summaryOf(await peer.send(connectAs()))).toBe('RCONNECT 3-322');
      peer.socket.destroy();
      const reasons = node()
        .log.entries()
        .map(({ reason }) => String(reason));
      const [reason = ''] = reasons.filter((text) => text.includes(words));
      expect(reason).toContain('give ACME its password anew, or the node the key');
      expect(reasons.join()).not.toContain('IN CLEAR');
    });

    test('because its key is not there: likewise', async () => {
      const other = new SecretBox([Buffer.alloc(32, 9)]);
      await store(await new PasswordHasher(other, { logN: 10, r: 8, p: 1 }).hash(PASSWORD));
      await expect(node().connect()).rejects.toMatchObject({ diagnostic: '3-322' });
      const reasons = node()
        .log.entries()
        .map(({ reason }) => String(reason));
      expect(reasons.join()).toContain(`needs the key ${other.keyId}, secrets.key holds ${secrets.keyId}`);
    });
  });

  describe('a short password that the partner dictates', () => {
    const at = useNode(harness);

    test('is taken unless the configuration wants another', async () => {
      await at().call('post', '/api/v1/config/partners', { partnerId: 'NEW', password: 'a' });
    });
  });

  describe.each([
    ['eight, as many as PI 5 holds', { 'password.min-length': 8 }, 8],
    ['as configured', { 'password.min-length': 5 }, 5],
  ])('the least length of a new password: %s', (_case, settings, least) => {
    const at = useNode(harness, { settings });
    const [short, enough] = ['Zq!7xUp0'.slice(0, least - 1), 'Zq!7xUp0'.slice(0, least)];
    const words = `expected at least ${least} characters: password.min-length of the configuration`;

    test.each(['password', 'preconnectPassword'])('of %s', async (field) => {
      const given = { password: enough, preconnectId: 'XPRE' };
      const created = at().call('post', '/api/v1/config/partners', { partnerId: 'NEW', ...given, [field]: short });
      await expect(created).rejects.toThrow(new RegExp(`400.*"field":"${field}","message":"${words}`));
      const changed = at().call('put', '/api/v1/config/partners/ACME', { preconnectId: 'XPRE', [field]: short });
      await expect(changed).rejects.toThrow(words);
      await at().call('post', '/api/v1/config/partners', { partnerId: 'NEW', ...given, [field]: enough });
      await at().call('put', '/api/v1/config/partners/ACME', { preconnectId: 'XPRE', [field]: enough });
    });

    test('does not concern those that are there', async () => {
      await at()
        .database.knex('partners')
        .update({ password_hash: await passwords.hash('a') });
      await at().call('put', '/api/v1/config/partners/ACME', { name: 'Acme' });
      await at().connect({ password: 'a' });
    });
  });
});
