/** Every certificate that a peer may show, on both sides: who gets in, and what both are told. */
import { readFileSync } from 'node:fs';
import { describe, expect, beforeAll, test } from '@jest/globals';
import type { PesitError } from '@pesit-node/protocol';
import { TLS_FAILURES, TlsError, TlsServerTerms, serveTls } from '../src/index.js';
import type { ClientAuth, TlsFailureCode } from '../src/index.js';
import { connect, listen, rejectionOf } from './support/harness.js';
import { accepting, createPki, opening, revoking, trusting } from './support/tls.js';
import type { Pki } from './support/tls.js';

let pki: Pki;
beforeAll(async () => {
  pki = await createPki();
});

type Shown = Exclude<keyof Pki, 'ca' | 'other'>;

const codeOf = (error: PesitError): string | undefined =>
  error.cause instanceof TlsError ? error.cause.code : undefined;

describe('a partner that shows to a listener', () => {
  /** What becomes of it where a certificate is asked for; undefined: it gets in. */
  const SHOWN: readonly (readonly [Shown | 'none', TlsFailureCode | undefined, RegExp?])[] = [
    ['none', 'TLS_CERTIFICATE_REQUIRED', /presented no certificate, and sslClientAuth is NEED/],
    ['good', undefined],
    ['rsa', undefined],
    ['byIntermediate', undefined],
    ['otherName', undefined],
    ['expired', 'TLS_CERTIFICATE_EXPIRED', /\(CN=expired, issued by CN=Bank CA\) has expired on \d{4}-/],
    ['early', 'TLS_CERTIFICATE_NOT_YET_VALID', /\(CN=early, issued by CN=Bank CA\) is valid only from \d{4}-/],
    ['foreign', 'TLS_UNKNOWN_CA', /no CA of the truststore of the listener .* stands behind .*CN=foreign/],
    ['revoked', 'TLS_CERTIFICATE_REVOKED', /was revoked on a day/],
    ['serverOnly', 'TLS_CERTIFICATE_INVALID', /extended key usage without clientAuth/],
    ['selfSigned', 'TLS_UNKNOWN_CA', /self-signed and not in the truststore of the listener/],
    ['nameless', undefined],
    ['namelessAlone', 'TLS_UNKNOWN_CA', /\(no subject, issued by nobody\)/],
    ['verbose', 'TLS_UNKNOWN_CA', /^.{1,1000}$/],
  ];

  const cases = (['NONE', 'WANT', 'NEED'] as const).flatMap((auth) =>
    (['TLSv1.2', 'TLSv1.3'] as const).flatMap((version) =>
      SHOWN.map(([shown, refusal, words]) => [auth, version, shown, refusal, words] as const),
    ),
  );

  test.each(cases)('%s, %s: %s', async (auth, version, shown, refusal, words) => {
    const listening = await listen({ transport: accepting(pki, auth, { versions: [version] }) });
    const identity = shown === 'none' ? {} : { identity: pki[shown] };
    const opens = connect(listening.port, { transport: opening(pki, identity) });
    const code = auth === 'NONE' || (auth === 'WANT' && shown === 'none') ? undefined : refusal;
    if (code === undefined) {
      const { security } = await opens;
      expect(security).toMatchObject({ protocol: version, resumed: false, peerCertificate: { subject: 'CN=server' } });
      const { peerCertificate } = (await listening.handler()).connection.security ?? {};
      const isSeen = auth !== 'NONE' && shown !== 'none';
      expect(peerCertificate?.fingerprint).toBe(isSeen ? pki[shown].fingerprint : undefined);
      return;
    }
    const error = await rejectionOf(opens);
    expect(error).toMatchObject({ fault: 'transport', diagnostic: '3-310' });
    const [{ reason, code: counted } = { reason: '', code: '' }] = await listening.rejections(1);
    expect(reason).toMatch(words ?? /./);
    expect(counted).toBe(code);
    expect(listening.handlers).toEqual([]);
  });

  test.each([
    ['TLSv1.2', /handshake_failure|certificate/],
    ['TLSv1.3', /the partner wants a certificate of ours and got none: set keystoreName/],
  ] as const)('%s, none where one is needed: the partner is told by an alert', async (version, words) => {
    const listening = await listen({ transport: accepting(pki, 'NEED', { versions: [version] }) });
    const error = await rejectionOf(connect(listening.port, { transport: opening(pki) }));
    expect(error.message).toMatch(words);
    expect(error.condition).toMatch(/certificate refused|TLS not agreed/);
  });
});

describe('a server that shows to a requester', () => {
  const SHOWN: readonly (readonly [Shown, TlsFailureCode | undefined, RegExp?])[] = [
    ['server', undefined],
    ['rsa', undefined],
    ['byIntermediate', undefined],
    ['expired', 'TLS_CERTIFICATE_EXPIRED', /CN=expired.* has expired on/],
    ['early', 'TLS_CERTIFICATE_NOT_YET_VALID', /CN=early.* is valid only from/],
    ['foreign', 'TLS_UNKNOWN_CA', /no CA of the truststore of the remote server/],
    ['otherName', 'TLS_NAME_MISMATCH', /is for DNS:elsewhere\.example, and 127\.0\.0\.1 was called/],
    ['revoked', 'TLS_CERTIFICATE_REVOKED', /was revoked/],
    ['selfSigned', 'TLS_UNKNOWN_CA', /self-signed/],
    ['nameless', undefined],
    ['namelessAlone', 'TLS_UNKNOWN_CA', /\(no subject, issued by nobody\)/],
    ['verbose', 'TLS_UNKNOWN_CA', /^.{1,1000}$/],
  ];
  const cases = (['TLSv1.2', 'TLSv1.3'] as const).flatMap((version) =>
    SHOWN.map(([shown, refusal, words]) => [version, shown, refusal, words] as const),
  );

  test.each(cases)('%s: %s', async (version, shown, refusal, words) => {
    const listening = await listen({
      transport: accepting(pki, 'NONE', { identity: pki[shown], versions: [version] }),
    });
    const transport = opening(pki, { revocation: revoking(pki) });
    const opens = connect(listening.port, { transport });
    if (refusal === undefined) {
      expect((await opens).security?.peerCertificate?.fingerprint).toBe(pki[shown].fingerprint);
      return;
    }
    const error = await rejectionOf(opens);
    expect([codeOf(error), error.condition]).toEqual([refusal, 'certificate refused']);
    expect(error.message).toMatch(/^no TLS connection to 127\.0\.0\.1:\d+: /);
    expect(error.message).toMatch(words ?? /./);
    expect(listening.handlers).toEqual([]);
  });

  test('another name than the host: tlsServerName is the one that counts, and the one that is sent', async () => {
    const transport = accepting(pki, 'NONE', { identity: pki.otherName });
    const listening = await listen({ transport });
    const named = await connect(listening.port, { transport: opening(pki, { serverName: 'elsewhere.example' }) });
    expect(named.security?.peerCertificate?.subjectAltNames).toEqual(['DNS:elsewhere.example']);
    const wrong = connect(listening.port, { transport: opening(pki, { serverName: 'here.example' }) });
    expect(codeOf(await rejectionOf(wrong))).toBe('TLS_NAME_MISMATCH');
  });

  test('a pin replaces chain and name; one of two is enough, and another one is refused', async () => {
    const listening = await listen({ transport: accepting(pki, 'NONE', { identity: pki.selfSigned }) });
    const pins = [pki.good.fingerprint, pki.selfSigned.fingerprint];
    const pinned = await connect(listening.port, { transport: opening(pki, { fingerprints: pins }) });
    expect(pinned.security?.peerCertificate?.fingerprint).toBe(pki.selfSigned.fingerprint);
    const transport = opening(pki, { fingerprints: pins.slice(0, 1) });
    const error = await rejectionOf(connect(listening.port, { transport }));
    expect(codeOf(error)).toBe('TLS_PIN_MISMATCH');
    expect(error.message).toContain(`has the fingerprint ${pki.selfSigned.fingerprint}`);
    expect(error.message).toContain(`asks for ${pki.good.fingerprint}`);
  });
});

describe('terms that do not meet', () => {
  test.each([
    ['no version', { versions: ['TLSv1.2'] }, { versions: ['TLSv1.3'] }, 'TLS_NO_COMMON_PROTOCOL'],
    ['no version, the other way round', { versions: ['TLSv1.3'] }, { versions: ['TLSv1.2'] }, 'TLS_NO_COMMON_PROTOCOL'],
    [
      'no cipher suite',
      { versions: ['TLSv1.2'], cipherSuites: ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256'] },
      { versions: ['TLSv1.2'], cipherSuites: ['ECDHE-ECDSA-AES256-GCM-SHA384'] },
      'TLS_NO_COMMON_CIPHER',
    ],
  ] as const)('%s', async (_, server, client, code) => {
    const listening = await listen({ transport: accepting(pki, 'NONE', server) });
    const error = await rejectionOf(connect(listening.port, { transport: opening(pki, client) }));
    expect([codeOf(error), error.condition]).toEqual([code, 'TLS not agreed']);
    expect(await listening.rejections(1)).toMatchObject([{ code }]);
  });

  test('cipher suites are known by both names, and one that nobody knows is named', async () => {
    const cipherSuites = ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256'];
    const listening = await listen({ transport: accepting(pki, 'NONE', { cipherSuites }) });
    const { security } = await connect(listening.port, { transport: opening(pki) });
    expect(security).toMatchObject({ protocol: 'TLSv1.2', cipher: cipherSuites[0] });
    expect(() => accepting(pki, 'NONE', { cipherSuites: ['TLS_NONSENSE'] })).toThrow(
      'the cipher suite TLS_NONSENSE is not known: correct ssl.cipher-suites',
    );
  });
});

describe('material that TLS cannot use is refused in words, without showing it', () => {
  test.each([
    ['a key of another certificate', () => ({ ...pki.server, privateKey: pki.good.privateKey }), /does not belong/],
    ['no PEM', () => ({ ...pki.server, certificateChain: 'nonsense' }), /certificate cannot be read/],
    ['no key', () => ({ ...pki.server, privateKey: 'nonsense' }), /private key cannot be read/],
  ])('%s', (_, identity, words) => {
    expect(() => accepting(pki, 'NONE', { identity: identity() })).toThrow(words);
  });

  test('client certificates without a truststore', () => {
    const wanted = (clientAuth: ClientAuth) => () => new TlsServerTerms({ identity: pki.server, clientAuth });
    expect(wanted('WANT')).toThrow(/sslClientAuth is WANT, and no truststore/);
    expect(wanted('NONE')).not.toThrow();
  });
});

test('a changed keystore is used by the next handshake; the session that is open stays', async () => {
  const made = (identity: Pki['server']) => new TlsServerTerms({ identity, trust: trusting(pki), clientAuth: 'NONE' });
  let terms = made(pki.server);
  const listening = await listen({ transport: serveTls({ terms: () => terms }) });
  const transport = opening(pki);
  const first = await connect(listening.port, { transport });
  terms = made(pki.rsa);
  const second = await connect(listening.port, { transport });
  expect(first.security?.peerCertificate?.fingerprint).toBe(pki.server.fingerprint);
  expect(second.security).toMatchObject({ resumed: false, peerCertificate: { fingerprint: pki.rsa.fingerprint } });
  expect(first.usable).toBe(true);
});

test('docs/tls.md has a row for each code of a failed handshake, and no other', () => {
  const page = readFileSync(new URL('../../../docs/tls.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `(TLS_\w+)` +\| \S.* \| \S.* \|$/gm)].map(([, code]) => code);
  expect(rows).toEqual(Object.keys(TLS_FAILURES));
});
