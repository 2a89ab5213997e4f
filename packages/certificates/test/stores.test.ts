/** Keystores and truststores through their endpoints, and as handshakes see them. */
import { once } from 'node:events';

import { expect, test } from '@jest/globals';
import { SecretBox } from '@pesit-node/service';
import type { PeriodicTask } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';

import { Certificates } from '../src/certificates.js';
import { KeystoreStore } from '../src/keystore-store.js';
import { sealKeystoresAnew } from '../src/rotation.js';
import { secrets, useStores } from './support/app.js';
import { OpenSsl } from './support/openssl.js';

const openssl = new OpenSsl();
const root = openssl.ca('root');
const stranger = openssl.ca('stranger');
const leaf = openssl.issue({ name: 'bank.example', issuer: root, extensions: ['basicConstraints = CA:FALSE'] });
const renewed = openssl.issue({ name: 'bank.example-2', issuer: root, extensions: ['basicConstraints = CA:FALSE'] });
const expired = openssl.issue({ name: 'expired', days: -1 });

withDatabase((harness) => {
  const stores = useStores(harness);
  const names = ({ body }: { readonly body: { readonly details?: readonly { readonly field: string }[] } }) =>
    body.details?.map(({ field }) => field);

  test('a keystore is created, shown, changed and deleted, and its key never comes out', async () => {
    const { get, post, put, ...rest } = stores.rest(stores.pod());
    const created = await post('/keystores', {
      name: 'NODE',
      certificate: leaf.pem + root.pem,
      privateKey: leaf.keyPem,
    });
    expect([created.status, created.headers['location']]).toEqual([201, '/api/v1/certificates/keystores/NODE']);
    expect(created.body).toMatchObject({
      ...{ name: 'NODE', certificate: leaf.pem + root.pem, managed: false, usedBy: [], warnings: [] },
      certificates: [{ subject: 'CN=bank.example,O=Test', pem: leaf.pem }, { subject: 'CN=root,O=Test' }],
    });
    expect((await post('/keystores', { name: 'NODE', certificate: leaf.pem, privateKey: leaf.keyPem })).status).toBe(
      409,
    );
    expect((await get('/keystores')).body).toEqual([created.body]);
    const changed = await put('/keystores/NODE', { certificate: root.pem + renewed.pem, privateKey: renewed.keyPem });
    expect(changed.body.warnings).toEqual(['the chain was out of order: it was put in order, leaf first']);
    expect((await get('/keystores/NODE')).body).toMatchObject({ certificate: renewed.pem + root.pem, warnings: [] });
    // The key stays when the certificate alone is another one, and it must fit.
    expect(names(await put('/keystores/NODE', { certificate: leaf.pem }))).toEqual(['privateKey']);
    expect((await put('/keystores/NODE', { certificate: renewed.pem })).body.certificate).toBe(renewed.pem);
    const row = await stores.database().knex('keystores').first();
    expect(row.private_key).toMatch(/^v1\.[0-9a-f]{8}\./);
    expect((await rest.delete('/keystores/NODE')).status).toBe(204);
    expect((await get('/keystores/NODE')).status).toBe(404);
  });

  test('a PKCS#12 comes as base64 or as a file, and PEM as a file', async () => {
    const { post, form, put } = stores.rest(stores.pod());
    const password = stores.hide('p12-Pa55w0rd');
    const p12 = openssl.pkcs12(leaf, [root], password);
    const made = await post('/keystores', { name: 'JSON', pkcs12: p12.toString('base64'), password });
    const sent = await form('post', '/keystores', { name: 'FORM', password }, p12);
    expect([made.status, sent.status]).toEqual([201, 201]);
    expect(sent.body.certificates).toEqual(made.body.certificates);
    const both = Buffer.from(leaf.keyPem + leaf.pem);
    expect((await form('post', '/keystores', { name: 'PEM' }, both)).body.certificate).toBe(leaf.pem);
    expect((await form('put', '/keystores/PEM', { password }, p12)).body.certificate).toBe(leaf.pem + root.pem);
    expect(names(await form('post', '/keystores', { name: 'X', password: 'no' }, p12))).toEqual(['password']);
    expect(names(await form('post', '/keystores', { name: 'X', unheard: 'no' }, p12))).toEqual(['unheard']);
    expect(names(await form('post', '/keystores', { name: 'X' }, Buffer.alloc(1_100_000)))).toEqual(['file']);
    const jks = await form('post', '/keystores', { name: 'X' }, Buffer.from('feedfeed00000002', 'hex'));
    expect([jks.status, jks.body.message]).toEqual([400, expect.stringContaining('keytool -importkeystore')]);
    expect(names(await put('/keystores/JSON', { pkcs12: p12.toString('base64'), certificate: root.pem }))).toEqual([
      'pkcs12',
    ]);
    expect(names(await post('/keystores', { name: 'X' }))).toEqual(['certificate']);
    expect(names(await post('/keystores', { name: 'X', certificate: leaf.pem }))).toEqual(['privateKey']);
  });

  test('a certificate whose time is over, or that is a CA, is taken with a warning; a key that does not fit is 422', async () => {
    const { post } = stores.rest(stores.pod());
    const late = await post('/keystores', { name: 'LATE', certificate: expired.pem, privateKey: expired.keyPem });
    expect([late.status, late.body.warnings]).toEqual([201, [expect.stringMatching(/^expired expired on \d{4}-/)]]);
    const ca = await post('/keystores', { name: 'CA', certificate: root.pem, privateKey: root.keyPem });
    expect([ca.status, ca.body.warnings]).toEqual([201, [expect.stringContaining('root is a CA certificate')]]);
    const wrong = await post('/keystores', { name: 'WRONG', certificate: leaf.pem, privateKey: root.keyPem });
    expect([wrong.status, wrong.body.error, names(wrong)]).toEqual([422, 'UNPROCESSABLE', ['privateKey']]);
  });

  test('a truststore: its CAs, its CRLs, and what cannot vouch for anybody', async () => {
    const { get, post, put, form } = stores.rest(stores.pod());
    const created = await post('/truststores', { name: 'BANKS', certificates: root.pem + leaf.pem });
    expect([created.status, created.body.crls]).toEqual([201, null]);
    expect(created.body.certificates.map(({ pem }: { readonly pem: string }) => pem)).toEqual([root.pem, leaf.pem]);
    expect(created.body.warnings).toEqual([expect.stringContaining('bank.example is no CA certificate')]);
    const crl = openssl.crl(root);
    expect((await put('/truststores/BANKS', { crls: crl })).body.crls).toBe(crl);
    expect(names(await put('/truststores/BANKS', { certificates: stranger.pem }))).toEqual(['crls']);
    const forged = await post('/truststores', { name: 'X', certificates: stranger.pem, crls: crl });
    expect([forged.status, forged.body.message]).toEqual([422, expect.stringContaining('signed by none of the CAs')]);
    expect(names(await put('/truststores/BANKS', { crls: root.pem }))).toEqual(['crls']);
    expect((await put('/truststores/BANKS', { crls: null, certificates: stranger.pem })).status).toBe(200);
    expect((await form('post', '/truststores', { name: 'FILE' }, Buffer.from(root.pem))).status).toBe(201);
    expect((await get('/truststores')).body.map(({ name }: { readonly name: string }) => name)).toEqual([
      'BANKS',
      'FILE',
    ]);
  });

  test('one in use is not deleted, and the answer says by what', async () => {
    const { post, get, ...rest } = stores.rest(stores.pod());
    await post('/truststores', { name: 'BANKS', certificates: root.pem });
    stores.uses.push({ kind: 'truststore', store: 'BANKS', what: 'listener', name: 'NODE1' });
    stores.uses.push({ kind: 'keystore', store: 'BANKS', what: 'listener', name: 'NODE2' });
    expect((await get('/truststores/BANKS')).body.usedBy).toEqual([{ what: 'listener', name: 'NODE1' }]);
    const refused = await rest.delete('/truststores/BANKS');
    expect([refused.status, refused.body.message]).toEqual([409, expect.stringContaining('listener NODE1')]);
  });

  test('handshakes on every pod have the new identity as soon as it is stored, with a hint or without', async () => {
    const writer = stores.pod();
    const hearing = stores.pod();
    const deaf = stores.pod({ lookMs: 20, deaf: true });
    const { post, put } = stores.rest(writer);
    await post('/keystores', { name: 'NODE', certificate: leaf.pem, privateKey: leaf.keyPem });
    await post('/truststores', { name: 'BANKS', certificates: root.pem, crls: openssl.crl(root) });
    for (const { certificates } of [writer, hearing, deaf]) {
      expect((await certificates.identity('NODE')).certificateChain).toBe(leaf.pem);
      const { certificates: cas, lists } = await certificates.trust('BANKS');
      expect([cas, lists.size]).toEqual([[root.pem], 1]);
      // From memory.
      expect(await certificates.identity('NODE')).toBe(await certificates.identity('NODE'));
    }
    // Each has seen what was created: what it tells from now on is the change.
    for (const { certificates } of [writer, hearing, deaf]) await certificates.changed();
    const told = [hearing, deaf].map(({ certificates }) => once(certificates, 'changed'));
    await put('/keystores/NODE', { certificate: renewed.pem, privateKey: renewed.keyPem });
    expect((await writer.certificates.identity('NODE')).certificateChain).toBe(renewed.pem);
    expect(await Promise.all(told)).toEqual([
      ['keystore', 'NODE'],
      ['keystore', 'NODE'],
    ]);
    for (const { certificates } of [hearing, deaf]) {
      const { certificateChain, privateKey } = await certificates.identity('NODE');
      expect([certificateChain, privateKey]).toEqual([renewed.pem, renewed.keyPem]);
    }
  });

  test('what another pod has changed is seen within 10 s without any hint, also with a slow look', () => {
    const tasks: PeriodicTask[] = [];
    const periodic = { add: (task: PeriodicTask) => (tasks.push(task), { runNow: () => Promise.resolve() }) };
    const hints = { tell: () => undefined, subscribe: () => () => undefined };
    const { knex } = stores.database();
    new Certificates({ knex, secrets, hints, periodic: periodic as never });
    expect(tasks).toMatchObject([{ intervalMs: 5000, jitter: 0.1 }]);
    expect(tasks[0]?.runsOn ?? 'every pod').toBe('every pod');
  });

  test('who waits for a store that is not there hears when it comes, and when it goes', async () => {
    const pod = stores.pod();
    const { post, ...rest } = stores.rest(pod);
    const { certificates } = pod;
    await expect(certificates.identity('LATER')).rejects.toThrow('there is no keystore "LATER"');
    const came = once(certificates, 'changed');
    await post('/keystores', { name: 'LATER', certificate: leaf.pem, privateKey: leaf.keyPem });
    expect(await came).toEqual(['keystore', 'LATER']);
    await certificates.identity('LATER');
    const went = once(certificates, 'changed');
    await rest.delete('/keystores/LATER');
    expect(await went).toEqual(['keystore', 'LATER']);
    await expect(certificates.identity('LATER')).rejects.toThrow('there is no keystore');
  });

  test('keys are sealed anew with a newer secrets.key', async () => {
    const { post } = stores.rest(stores.pod());
    await post('/keystores', { name: 'NODE', certificate: leaf.pem, privateKey: leaf.keyPem });
    const { knex } = stores.database();
    const newer = new SecretBox([Buffer.alloc(32, 8), Buffer.alloc(32, 7)]);
    expect(await sealKeystoresAnew(knex, newer)).toEqual({ sealed: 1, unreadable: [] });
    expect(await sealKeystoresAnew(knex, newer)).toEqual({ sealed: 0, unreadable: [] });
    const alone = new KeystoreStore(knex, new SecretBox([Buffer.alloc(32, 8)]));
    const row = await alone.get('NODE');
    expect(row && alone.privateKeyOf(row)).toBe(leaf.keyPem);
    expect(await sealKeystoresAnew(knex, secrets)).toEqual({ sealed: 0, unreadable: ['keystore NODE'] });
    // A row that was given the key of another does not open.
    await knex('keystores').update({ name: 'OTHER' });
    const moved = await alone.get('OTHER');
    expect(() => moved && alone.privateKeyOf(moved)).toThrow('belongs to another place');
  });
});
