/** Chains: who is let in, by a listener and by a requester, is whom `openssl verify` lets in. */
import { X509Certificate } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { OpenSsl } from '../../certificates/test/support/openssl.js';
import type { Issued } from '../../certificates/test/support/openssl.js';
import { TlsClientTerms, TlsServerTerms, connectTls, serveTls } from '../src/index.js';
import { peerCertificateOf } from '../src/peer-certificate.js';
import { connect, listen } from './support/harness.js';

const openssl = new OpenSsl();
const SIGNS = ['basicConstraints = critical,CA:TRUE', 'keyUsage = critical,keyCertSign,cRLSign'];
const root = openssl.ca('root');

/** Names for which a CA may issue (RFC 5280 §4.2.1.10): a CA below the root that may issue for some names, and a certificate of it. */
const CASES: readonly (readonly [constraint: string, name: string, isGood: boolean, subject?: string])[] = [
  ['permitted;DNS:bank.example', 'DNS:a.bank.example', true],
  ['permitted;DNS:bank.example', 'DNS:evilbank.example', false],
  ['permitted;DNS:bank.example', 'DNS:a.bank.example,DNS:evil.example', false],
  ['excluded;DNS:bank.example', 'DNS:a.bank.example', false],
  ['permitted;DNS:bank.example', 'IP:192.0.2.7', true],
  ['permitted;DNS:bank.example', 'IP:192.0.2.7', false, '/CN=evil.example'],
  ['permitted;IP:192.0.2.0/255.255.255.0', 'IP:192.0.2.7', true],
  ['permitted;IP:192.0.2.0/255.255.255.0', 'IP:198.51.100.7', false],
  ['permitted;IP:192.0.2.0/255.255.255.0', 'IP:2001:db8::7', false],
  ['excluded;IP:192.0.2.0/255.255.255.0', 'IP:192.0.2.7', false],
  ['permitted;email:bank.example', 'email:a@bank.example', true],
  ['permitted;email:bank.example', 'email:a@evil.example', false],
  ['permitted;URI:.bank.example', 'URI:https://a.bank.example/x', true],
  ['permitted;URI:.bank.example', 'URI:https://evil.example/.bank.example', false],
  ['permitted;dirName:within', 'DNS:a', true, '/O=Bank/CN=a'],
  ['permitted;dirName:within', 'DNS:a', false, '/O=Evil/CN=a'],
  ['excluded;dirName:within', 'DNS:a', false, '/O=Bank/CN=a'],
];

const identityOf = ({ pem, keyPem }: Issued, issuer: Issued) => ({
  certificateChain: pem + issuer.pem,
  privateKey: keyPem,
});

test.each(CASES)('%s: %s, %s', async (constraint, name, isGood, subject = '/CN=leaf') => {
  const below = [...SIGNS, `nameConstraints = critical,${constraint}`, '[within]', 'O = Bank'];
  const ca = openssl.issue({ name: 'below', issuer: root, extensions: below });
  const leaf = openssl.issue({ name: 'leaf', issuer: ca, subject, extensions: [`subjectAltName = ${name}`] });
  const verdict = openssl.tell('verify', '-CAfile', root.certificate, '-untrusted', ca.certificate, leaf.certificate);
  expect(verdict.includes(': OK')).toBe(isGood);
  expect(/(?:permitted|excluded) subtree violation/.test(verdict)).toBe(!isGood);

  const identity = identityOf(leaf, ca);
  const trust = { certificates: [root.pem] };
  const words = /has a name for which a CA above it may not issue \(name constraints\)/;

  const needs = new TlsServerTerms({ identity, trust, clientAuth: 'NEED' });
  const listening = await listen({ transport: serveTls({ terms: () => needs }) });
  const open = (terms: TlsClientTerms) => connect(listening.port, { transport: connectTls(() => terms) });
  // The certificate of the listener is the same: a pin accepts it whatever its names are.
  const fingerprints = [peerCertificateOf(new X509Certificate(leaf.pem)).fingerprint];
  const came = open(new TlsClientTerms({ identity, fingerprints }));
  if (isGood) await came;
  else {
    await expect(came).rejects.toThrow();
    expect(await listening.rejections(1)).toMatchObject([
      { code: 'TLS_CERTIFICATE_INVALID', reason: expect.stringMatching(words) },
    ]);
  }

  const asks = open(new TlsClientTerms({ identity, trust })).then(
    () => undefined,
    (error: unknown) => (error as Error).cause,
  );
  const code = isGood ? 'TLS_NAME_MISMATCH' : 'TLS_CERTIFICATE_INVALID';
  expect(await asks).toMatchObject({ code, ...(isGood ? {} : { message: expect.stringMatching(words) }) });
});

const between = openssl.ca('between', root);
const NAMED = 'subjectAltName = IP:127.0.0.1';
const partner = openssl.issue({ name: 'partner', issuer: between, extensions: ['basicConstraints = CA:FALSE', NAMED] });
const below = openssl.issue({ name: 'vouched', issuer: partner, extensions: [NAMED] });
const alone = openssl.issue({ name: 'alone', extensions: ['basicConstraints = CA:FALSE', NAMED] });
const expired = openssl.issue({ name: 'expired', issuer: between, extensions: [NAMED], days: -1 });

/** Whatever is in a truststore is believed: a root, a CA between, or one certificate alone. */
const ANCHORS: readonly (readonly [
  trusted: string,
  anchor: Issued,
  shown: readonly [Issued, ...Issued[]],
  isGood: boolean,
])[] = [
  ['a root', root, [partner, between], true],
  ['a root, and the CA between is not sent', root, [partner], false],
  ['a CA between', between, [partner, between], true],
  ['a CA between, which is not sent', between, [partner], true],
  ['the certificate itself', partner, [partner, between], true],
  ['the certificate itself, alone', partner, [partner], true],
  ['one that nobody signed', alone, [alone], true],
  ['another certificate of the same CA', expired, [partner, between], false],
  ['a certificate that is no CA, and one that it signed', partner, [below, partner], false],
  ['the certificate itself, which has expired', expired, [expired], false],
];

test.each(ANCHORS)('trusted is %s', async (_, anchor, shown, isGood) => {
  const [leaf, ...more] = shown;
  const untrusted = openssl.write('untrusted.pem', more.map(({ pem }) => pem).join(''));
  const sent = more.length === 0 ? [] : ['-untrusted', untrusted];
  const verdict = openssl.tell('verify', '-partial_chain', '-trusted', anchor.certificate, ...sent, leaf.certificate);
  expect(verdict.includes(': OK')).toBe(isGood);

  const identity = { certificateChain: shown.map(({ pem }) => pem).join(''), privateKey: leaf.keyPem };
  const trust = { certificates: [anchor.pem] };
  const terms = new TlsServerTerms({ identity, trust, clientAuth: 'NEED' });
  const listening = await listen({ transport: serveTls({ terms: () => terms }) });
  const asked = new TlsClientTerms({ identity, trust });
  const came = connect(listening.port, { transport: connectTls(() => asked) });
  if (isGood) expect((await came).usable).toBe(true);
  else await expect(came).rejects.toMatchObject({ condition: 'certificate refused' });

  // The listener judges by itself: this requester takes it as it is.
  const fingerprints = [peerCertificateOf(new X509Certificate(leaf.pem)).fingerprint];
  const pinned = new TlsClientTerms({ identity, fingerprints });
  const comes = connect(listening.port, { transport: connectTls(() => pinned) });
  if (isGood) expect((await comes).usable).toBe(true);
  else {
    await expect(comes).rejects.toThrow();
    await listening.rejections(1);
  }
});
