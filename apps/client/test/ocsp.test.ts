/** What OCSP responders say of remote servers (`ssl.ocsp`): `revocation` decides whether a session is opened. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TlsServerTerms, serveTls } from '@pesit-node/net';
import { withDatabase } from '@pesit-node/service/testing';

import { OpenSsl } from '../../../packages/certificates/test/support/openssl.js';
import { OCSP_CASES, Responder } from '../../../packages/certificates/test/support/responder.js';
import { expectNoSecrets } from './support/service.js';
import { useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const openssl = new OpenSsl();
const root = openssl.ca('root');
const stranger = openssl.ca('stranger');
const responder = new Responder(openssl, root);
beforeAll(() => responder.listen());

withDatabase((harness) => {
  const world = useWorld(harness);

  test.each(OCSP_CASES)('%s', async (what, ends, words, says) => {
    const answers = says !== 'is not there';
    const where = answers ? responder.at(what) : `authorityInfoAccess = OCSP;URI:http://127.0.0.1:1/${what}`;
    const extensions = ['subjectAltName = IP:127.0.0.1', 'extendedKeyUsage = serverAuth', where];
    const bank = openssl.issue({ name: what, issuer: root, extensions });
    const said = answers ? says(responder, bank, stranger) : undefined;
    if (said !== undefined) responder.says.set(what, said);
    const identity = { certificateChain: bank.pem, privateKey: bank.keyPem };
    const terms = new TlsServerTerms({ identity, clientAuth: 'NONE' });
    const partner = await world.partner({ transport: serveTls({ terms: () => terms }) });
    const service = await world.service({
      config: { 'ssl.ocsp': true },
      settings: { connectTimeout: 60_000 },
    });
    await service.api.post('/certificates/truststores', { name: 'banks', certificates: root.pem });
    await world.remote(service, 1, { tlsEnabled: true, tlsPort: partner.port, truststoreName: 'banks' });
    const before = responder.questions;

    for (const revocation of ['off', 'hard', 'soft'] as const) {
      await service.api.put('/servers/1', { revocation });
      const { body } = await service.api.post('/servers/1/test');
      const end = revocation === 'off' ? 'in' : ends[revocation];
      expect(body.success).toBe(end === 'in');
      if (end !== 'in') {
        // A certificate that is not good, or a question that can be asked again.
        const errorCode = end === 'TLS_CERTIFICATE_REVOKED' ? 'AUTH_FAILED' : 'CONNECTION_FAILED';
        expect(body).toMatchObject({ errorCode, message: expect.stringMatching(words) });
      }
      if (revocation !== 'soft') expect(responder.questions - before).toBe(revocation === 'off' || !answers ? 0 : 1);
    }
    const isTold = ends.soft === 'in' && ends.hard !== 'in';
    const notices = service.log.lines.filter((line) => line.includes('revocation is soft'));
    expect(notices).toEqual(isTold ? [expect.stringMatching(words)] : []);
  });
});
