/** Names for which a CA may issue (RFC 5280 §4.2.1.10): who is let in is whom `openssl verify` lets in. */
import { expect, test } from '@jest/globals';
import { OpenSsl } from '../../certificates/test/support/openssl.js';
import type { Issued } from '../../certificates/test/support/openssl.js';
import { TlsClientTerms, TlsServerTerms, connectTls, serveTls } from '../src/index.js';
import { connect, listen } from './support/harness.js';

const openssl = new OpenSsl();
const SIGNS = ['basicConstraints = critical,CA:TRUE', 'keyUsage = critical,keyCertSign,cRLSign'];
const root = openssl.ca('root');

/** A CA below the root that may issue for some names, and a certificate of it. */
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
  const fingerprints = [openssl.run('x509', '-in', leaf.certificate, '-noout', '-fingerprint', '-sha256')].map((line) =>
    line.replace(/^.*=/, '').trim(),
  );
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
