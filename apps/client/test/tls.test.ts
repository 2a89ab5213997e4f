/** Remote servers with TLS: who is trusted, as whom this node comes, and what is said when it does not work. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { TlsServerTerms, serveTls } from '@pesit-node/net';
import type { TlsServerMaterial } from '@pesit-node/net';
import { TestCa } from '@pesit-node/net/testing/certificates';
import type { TestCertificate } from '@pesit-node/net/testing/certificates';
import { withDatabase } from '@pesit-node/service/testing';

import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import type { Partner, PartnerOptions } from './support/partner.js';
import { deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

let ca: TestCa;
let server: TestCertificate;
let otherName: TestCertificate;
let client: TestCertificate;
beforeAll(async () => {
  ca = await TestCa.create('Bank CA');
  server = await ca.issue('bank');
  otherName = await ca.issue('elsewhere', { sans: [{ type: 'dns', value: 'elsewhere.example' }] });
  client = await ca.issue('node');
});

withDatabase((harness) => {
  const world = useWorld(harness);
  let service: Service;

  beforeEach(async () => {
    service = await world.service();
    const { certificateChain: certificate, privateKey } = client;
    await service.api.post('/certificates/keystores', { name: 'node', certificate, privateKey });
    await service.api.post('/certificates/truststores', { name: 'banks', certificates: ca.certificate });
  });

  /** A bank with TLS, and the remote server for it. */
  const bank = async (
    fields: object = {},
    material: Partial<TlsServerMaterial> = {},
    before: PartnerOptions['before'] = {},
  ): Promise<Partner> => {
    const trust = { certificates: [ca.certificate] };
    const terms = new TlsServerTerms({ identity: server, trust, clientAuth: 'NONE', ...material });
    const partner = await world.partner({ transport: serveTls({ terms: () => terms }), before });
    await world.remote(service, 1, { tlsEnabled: true, tlsPort: partner.port, truststoreName: 'banks', ...fields });
    return partner;
  };
  const tested = async () => (await service.api.post('/servers/1/test')).body;

  test('a file arrives, and the test shows protocol, cipher, certificate and days left', async () => {
    const partner = await bank();
    expect(await world.send(service)).toMatchObject({ status: 'COMPLETED' });
    expect(partner.written).toHaveLength(1);
    expect(await tested()).toMatchObject({
      success: true,
      tls: {
        protocol: 'TLSv1.3',
        cipher: 'TLS_AES_256_GCM_SHA384',
        certificate: { subject: 'CN=bank', issuer: 'CN=Bank CA', fingerprint: server.fingerprint },
        daysRemaining: 29,
      },
    });
    expect(service.log.entries().find(({ msg }) => msg === 'session opened')).toMatchObject({
      ...{ tls: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384', certificateFingerprint: server.fingerprint },
    });
  });

  test('its certificate is presented where the server asks for one', async () => {
    await bank({ keystoreName: 'node' }, { clientAuth: 'NEED' });
    expect(await tested()).toMatchObject({ success: true });
  });

  test('without one, where it is needed: no certificate, said in words', async () => {
    await bank({}, { clientAuth: 'NEED' });
    expect(await tested()).toMatchObject({
      ...{ success: false, errorCode: 'AUTH_FAILED', diagnostic: '3-310' },
      message: expect.stringContaining('the partner wants a certificate of ours and got none: set keystoreName'),
    });
  });

  describe('a certificate that is not good ends a transfer at once, for waiting does not mend it', () => {
    test('another name; tlsServerName, or a pin, lets it in', async () => {
      await bank({}, { identity: otherName });
      expect(await tested()).toMatchObject({
        ...{ success: false, errorCode: 'AUTH_FAILED', diagnostic: '3-310' },
        message: expect.stringContaining('is for DNS:elsewhere.example, and 127.0.0.1 was called'),
      });
      expect(await world.send(service)).toMatchObject({ status: 'FAILED', attempts: 1, errorCode: 'AUTH_FAILED' });
      await service.api.put('/servers/1', { tlsServerName: 'elsewhere.example' });
      expect(await tested()).toMatchObject({ success: true });
      const certificateFingerprint = otherName.fingerprint.toLowerCase();
      await service.api.put('/servers/1', { tlsServerName: null, certificateFingerprint });
      expect(await tested()).toMatchObject({ success: true });
      await service.api.put('/servers/1', { certificateFingerprint: [server.fingerprint] });
      expect((await tested()).message).toContain(`has the fingerprint ${otherName.fingerprint}`);
    });

    test('an unknown CA', async () => {
      await bank({ truststoreName: null });
      expect((await tested()).message).toContain('no CA of the truststore of the remote server');
    });
  });

  describe('revocation of what the server presents', () => {
    const truststore = (crls: string) => service.api.put('/certificates/truststores/banks', { crls });

    test('a server that its CA revoked ends a transfer at the first attempt; off does not ask', async () => {
      const partner = await bank({ revocation: 'soft' });
      await truststore(await ca.crl([server.serial]));
      const message = `(bank, serial ${server.serial}) was revoked by its CA Bank CA`;
      expect(await tested()).toMatchObject({
        ...{ success: false, errorCode: 'AUTH_FAILED', diagnostic: '3-310', message: expect.stringContaining(message) },
      });
      expect(await world.send(service)).toMatchObject({
        ...{ status: 'FAILED', attempts: 1, errorCode: 'AUTH_FAILED', errorMessage: expect.stringContaining(message) },
      });
      expect(partner.written).toHaveLength(0);
      await service.api.put('/servers/1', { revocation: 'off' });
      expect(await tested()).toMatchObject({ success: true });
    });

    test('a session that is kept is not used again once its server is revoked', async () => {
      const partner = await bank({ revocation: 'soft' });
      await truststore(await ca.crl([]));
      expect(await world.send(service)).toMatchObject({ status: 'COMPLETED' });
      await truststore(await ca.crl([server.serial]));
      const said = (): string => JSON.stringify(service.log.lines);
      await until(() => Promise.resolve(said().includes('the certificate of the remote server was revoked')));
      expect(await world.send(service)).toMatchObject({ status: 'FAILED', errorCode: 'AUTH_FAILED' });
      expect(partner.written).toHaveLength(1);
    });

    const isSaid = () =>
      until(() => {
        const said = JSON.stringify(service.log.lines);
        return Promise.resolve(said.includes('the certificate of the remote server was revoked'));
      });

    test.each([
      ['runs a file', 'endTransfer'],
      // Its handshake is over then, and it is not among the sessions that are looked at.
      ['is being opened', 'connect'],
    ] as const)('a session that %s when its server is revoked ends behind the file', async (_, step) => {
      const [isThere, goOn] = [deferred(), deferred()];
      const partner = await bank(
        { revocation: 'soft' },
        {},
        {
          [step]: () => {
            isThere.resolve();
            return goOn.promise;
          },
        },
      );
      await truststore(await ca.crl([]));
      const sent = world.send(service);
      await isThere.promise;
      await truststore(await ca.crl([server.serial]));
      if (step === 'endTransfer') await isSaid();
      expect(partner.ended).toEqual([]);
      goOn.resolve();
      expect(await sent).toMatchObject({ status: 'COMPLETED', attempts: 1 });
      await isSaid();
      await until(() => Promise.resolve(partner.ended.length === 1));
      const failed = await world.send(service);
      expect(failed).toMatchObject({ status: 'FAILED', attempts: 1, errorCode: 'AUTH_FAILED' });
      expect([partner.connects.length, partner.written.length]).toEqual([1, 1]);
      // Once its CA has let it go again the same transfer is tried again.
      await truststore(await ca.crl([]));
      await service.api.post(`/transfers/${failed.id}/retry`);
      const status = async (): Promise<string> => (await service.api.get(`/transfers/${failed.id}`)).body.status;
      await until(async () => (await status()) === 'COMPLETED');
      expect([partner.connects.length, partner.written.length]).toEqual([2, 2]);
    });

    test('without a CRL soft accepts and hard does not, until there is one', async () => {
      await bank({ revocation: 'soft' });
      expect(await tested()).toMatchObject({ success: true });
      await service.api.put('/servers/1', { revocation: 'hard' });
      expect(await tested()).toMatchObject({
        success: false,
        message: expect.stringContaining('the truststore "banks" has no CRL of Bank CA: put its newest one into crls'),
      });
      await truststore(await ca.crl([]));
      expect(await tested()).toMatchObject({ success: true });
    });
  });

  test.each([
    ['keystore', 'keystoreName'],
    ['truststore', 'truststoreName'],
  ])('a %s that does not exist is not taken', async (kind, field) => {
    await bank();
    const message = `There is no ${kind} "nowhere": create it with POST /api/v1/certificates/${kind}s`;
    for (const answer of [
      await service.api.post('/servers', { name: 'next', host: 'h', serverId: 'S', clientId: 'C', [field]: 'nowhere' }),
      await service.api.put('/servers/1', { [field]: 'nowhere' }),
    ]) {
      expect(answer).toMatchObject({ status: 409, body: { error: 'CONFLICT', message } });
    }
    expect((await service.api.get('/servers')).body).toHaveLength(1);
  });

  test('a store that is missing is named, and no attempt is wasted', async () => {
    service = await world.service({ config: { 'ssl.keystore-name': 'nowhere', 'ssl.truststore-name': 'banks' } });
    await service.api.post('/certificates/truststores', { name: 'banks', certificates: ca.certificate });
    await bank();
    expect(await world.send(service)).toMatchObject({
      ...{ status: 'FAILED', attempts: 1 },
      errorMessage: expect.stringContaining('there is no keystore "nowhere"'),
    });
  });

  test('a store in use is not deleted', async () => {
    await bank({ keystoreName: 'node' });
    for (const store of ['keystores/node', 'truststores/banks']) {
      const { status, body } = await service.api.delete(`/certificates/${store}`);
      expect([status, body.message]).toEqual([409, expect.stringContaining('bank')]);
    }
  });
});
