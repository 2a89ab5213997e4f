/** What OCSP responders say of partners at a listener (`ssl.ocsp`): `revocation` decides who comes in. */
import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { TlsClientTerms, connectTls } from '@pesit-node/net';
import { TestCa } from '@pesit-node/net/testing/certificates';
import type { TestCertificate } from '@pesit-node/net/testing/certificates';
import { freePort, withDatabase } from '@pesit-node/service/testing';

import { OpenSsl } from '../../../packages/certificates/test/support/openssl.js';
import { OCSP_CASES, Responder } from '../../../packages/certificates/test/support/responder.js';
import { bytes, until, useNode } from './support/node.js';

const openssl = new OpenSsl();
const root = openssl.ca('root');
const stranger = openssl.ca('stranger');
const responder = new Responder(openssl, root);
let ca: TestCa;
let server: TestCertificate;
beforeAll(async () => {
  ca = await TestCa.create('Node CA');
  server = await ca.issue('node');
  await responder.listen();
});

withDatabase((harness) => {
  const node = useNode(harness, { settings: { 'ssl.ocsp': true } });
  let port = 0;

  beforeEach(async () => {
    port = await freePort();
    const { certificateChain: certificate, privateKey } = server;
    await node().call('post', '/api/v1/certificates/keystores', { name: 'node', certificate, privateKey });
    await node().call('post', '/api/v1/certificates/truststores', { name: 'partners', certificates: root.pem });
    const fields = { sslEnabled: true, tlsPort: port, keystoreName: 'node', truststoreName: 'partners' };
    await node().call('put', '/api/v1/servers/NODE1', { ...fields, sslClientAuth: 'NEED' });
  });

  test.each(OCSP_CASES)('%s', async (what, ends, words, says) => {
    const answers = says !== 'is not there';
    const where = answers ? responder.at(what) : `authorityInfoAccess = OCSP;URI:http://127.0.0.1:1/${what}`;
    const partner = openssl.issue({ name: what, issuer: root, extensions: ['extendedKeyUsage = clientAuth', where] });
    const said = answers ? says(responder, partner, stranger) : undefined;
    if (said !== undefined) responder.says.set(what, said);
    const identity = { certificateChain: partner.pem, privateKey: partner.keyPem };
    const terms = new TlsClientTerms({ identity, trust: { certificates: [ca.certificate] } });
    const before = responder.questions;

    for (const revocation of ['off', 'hard', 'soft'] as const) {
      await node().call('put', '/api/v1/servers/NODE1', { revocation });
      const end = revocation === 'off' ? 'in' : ends[revocation];
      const lines = node().log.lines.length;
      const opens = node().connect({ port, transport: connectTls(() => terms), connectTimeout: 60_000 });
      if (end === 'in') await node().send(await opens, 'IN', bytes(10));
      else await expect(opens).rejects.toMatchObject({ fault: 'transport' });
      // Refused by its code, or let in with a word where nobody could say.
      const word = end !== 'in' ? end : ends.hard !== 'in' && revocation === 'soft' ? 'revocation is soft' : undefined;
      if (word !== undefined) {
        const line = await until(() =>
          node()
            .log.lines.slice(lines)
            .find((text) => text.includes(word)),
        );
        expect(line).toMatch(words);
      }
      // Nobody is asked where revocation is off.
      if (revocation !== 'soft') expect(responder.questions - before).toBe(revocation === 'off' || !answers ? 0 : 1);
    }
  });
});
