/**
 * Every certificate that a remote server may show, by every way to check it: what `/test` answers, what the record of a transfer says, and
 * whether it was tried again. One service, one listening partner for each certificate, all asked side by side.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { TlsServerTerms, serveTls } from '@pesit-node/net';
import { withDatabase } from '@pesit-node/service/testing';

import { OpenSsl } from '../../../packages/certificates/test/support/openssl.js';
import { KEYS, SHOWN, usePeers, verdictsOfOpenSsl } from '../../../packages/certificates/test/support/peers.js';
import type { Shown } from '../../../packages/certificates/test/support/peers.js';
import { startPartner } from './support/partner.js';
import type { Partner } from './support/partner.js';
import { expectNoSecrets, openDatabase, startService } from './support/service.js';
import type { Service } from './support/service.js';
import { CONTENT } from './support/world.js';

afterAll(expectNoSecrets);

/** Fields of the remote server. */
const CHECKS = {
  'name and chain': {},
  'another name': { tlsServerName: 'elsewhere.example' },
  'chain, soft': { revocation: 'soft' },
  'chain, hard': { revocation: 'hard' },
  pin: {},
  'pin, hard': { revocation: 'hard' },
  'another pin': {},
} as const;
type Check = keyof typeof CHECKS;

/** Why not; words of the message. */
const ENDS = {
  name: /is for DNS:elsewhere\.example, and 127\.0\.0\.1 was called: correct host, set tlsServerName .* or pin it \(certificateFingerprint\)/,
  otherName: /is for .*IP:127\.0\.0\.1.*, and elsewhere\.example was called: correct host/,
  pin: /has the fingerprint (?:..:){31}.., and certificateFingerprint asks for (?:00:){31}00: if the partner has changed its certificate/,
  revoked:
    /\((?:revoked|withdrawn)-\w+, serial \w+\) was revoked by its CA (?:Bank CA|asked), .*: the partner needs a new one$/,
  revokedAbove:
    /a CA certificate above that of the partner \(Closed CA, serial \w+\) was revoked by its CA Bank CA.*, from another CA$/,
  noList:
    /nobody can say whether the certificate of the partner \(.*\) was revoked: the truststore "banks" has no CRL of .* into crls/,
  expired: /\(CN=expired-\w+, issued by CN=Bank CA\) has expired on .*: the partner has to present a new one$/,
  expiredAbove:
    /a CA above the certificate of the partner \(CN=below-former-\w+, .*\) has expired: .* check the clock of this machine$/,
  early: /\(CN=early-\w+, issued by CN=Bank CA\) is valid only from .* check the clock of this machine$/,
  unknownCa:
    /no CA of the truststore of the remote server \(truststoreName\) stands behind .*: put the CA there, or let the partner send/,
  selfSigned:
    /\(CN=alone-\w+, issued by CN=alone-\w+\) is self-signed and not in the truststore of the remote server \(truststoreName\)/,
  otherUse:
    /\(CN=other-use-\w+, .*\) is not meant for this \(extended key usage without serverAuth\): the partner needs another one$/,
} as const;
type End = keyof typeof ENDS;

/** What is wrong with a chain, whatever revocation and names say. */
const CHAINS: Readonly<Partial<Record<Shown, End>>> = {
  expired: 'expired',
  belowExpired: 'expiredAbove',
  early: 'early',
  foreign: 'unknownCa',
  withoutBetween: 'unknownCa',
  selfSigned: 'selfSigned',
  otherUse: 'otherUse',
};
const REVOKED: Readonly<Partial<Record<Shown, End>>> = {
  revoked: 'revoked',
  revokedByOcsp: 'revoked',
  belowRevoked: 'revokedAbove',
};
/** Of a CA that the truststore does not have: a pin accepts it, and nobody can say whether it was revoked. */
const UNLISTED: Readonly<Partial<Record<Shown, End>>> = {
  belowExpired: 'noList',
  foreign: 'noList',
  withoutBetween: 'noList',
};

/** Undefined: it is connected. */
const endOf = (shows: Shown, check: Check): End | undefined => {
  if (check === 'another pin') return 'pin';
  if (check === 'pin') return undefined;
  if (check === 'pin, hard') return REVOKED[shows] ?? UNLISTED[shows];
  const chain = CHAINS[shows];
  if (chain !== undefined) return chain;
  if (check === 'another name') return shows === 'otherName' ? undefined : 'otherName';
  if (shows === 'otherName') return 'name';
  return check === 'name and chain' ? undefined : REVOKED[shows];
};

const ROWS = (Object.keys(SHOWN) as Shown[]).flatMap((shows) =>
  KEYS.flatMap((keyType) =>
    (Object.keys(CHECKS) as Check[])
      .filter((check) => check !== 'another name' || shows === 'good' || shows === 'otherName')
      .map((check) => {
        const end = endOf(shows, check);
        // What is answered to a test is true of a transfer: one of each end, and some that arrive.
        const sends = keyType === 'EC' && (end !== undefined || shows === 'good' || check === 'pin');
        return { shows, keyType, check, end, sends };
      }),
  ),
);
type Row = (typeof ROWS)[number];

const openssl = new OpenSsl();
const peers = usePeers(openssl, 'server');

withDatabase((harness) => {
  const partners = new Map<string, Partner>();
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers as they come
  const answers = new Map<Row, { readonly tested: any; readonly record: any }>();
  let service: Service;

  const ask = async (row: Row): Promise<void> => {
    const { shows, keyType, check } = row;
    const { fingerprint } = peers().shown[shows][keyType];
    const pins = check === 'another pin' ? '00'.repeat(32) : check.startsWith('pin') ? fingerprint : undefined;
    const name = `${shows}, ${keyType}, ${check}`;
    const { port } = partners.get(`${shows}-${keyType}`)!;
    const { status, body } = await service.api.post('/servers', {
      ...{ name, host: '127.0.0.1', port: 1, tlsPort: port, tlsEnabled: true, truststoreName: 'banks' },
      ...{ serverId: 'BANKSRV', clientId: 'NODE1', ...CHECKS[check], certificateFingerprint: pins ?? null },
    });
    expect([status, body.message]).toEqual([201, undefined]);
    const tested = (await service.api.post(`/servers/${body.id}/test`)).body;
    const file = { server: name, virtualFile: 'FILE', remoteFilename: 'hello', fileContent: CONTENT };
    const record = row.sends ? (await service.api.post('/transfers/send?wait=90', file)).body : undefined;
    answers.set(row, { tested, record });
  };

  beforeAll(async () => {
    for (const shows of Object.keys(SHOWN) as Shown[]) {
      for (const keyType of KEYS) {
        const terms = new TlsServerTerms({ identity: peers().shown[shows][keyType], clientAuth: 'NONE' });
        partners.set(`${shows}-${keyType}`, await startPartner({ transport: serveTls({ terms: () => terms }) }));
      }
    }
    const retry = { attempts: 2, initialDelay: 0, maxDelay: 0, multiplier: 1, jitter: 0 };
    service = await startService(await openDatabase(harness), {
      config: { 'ssl.ocsp': true },
      settings: { connectTimeout: 60_000, retry },
    });
    await service.api.post('/certificates/truststores', { name: 'banks', ...peers().trust });
  });

  afterAll(async () => {
    await service.stop();
    for (const partner of partners.values()) await partner.close();
  });

  test('OpenSSL is of the same opinion about each chain', () => {
    const verdicts = verdictsOfOpenSsl(openssl, peers(), 'server');
    for (const [shows, words] of Object.entries(SHOWN)) {
      for (const keyType of KEYS) expect([shows, verdicts[`${shows}-${keyType}`]]).toEqual([shows, words]);
    }
  });

  describe.each(Object.keys(SHOWN) as Shown[])('%s', (shows) => {
    const rows = ROWS.filter((row) => row.shows === shows);
    beforeAll(async () => {
      // Some at a time: a responder has a bound of time.
      for (const keyType of KEYS) await Promise.all(rows.filter((row) => row.keyType === keyType).map(ask));
    });

    test.each(rows)('$keyType, $check: $end', (row) => {
      const { tested, record } = answers.get(row)!;
      if (row.end === undefined) {
        const { fingerprint } = peers().shown[row.shows][row.keyType];
        expect(tested).toMatchObject({ success: true, tls: { protocol: 'TLSv1.3', certificate: { fingerprint } } });
        expect(tested.tls.daysRemaining).toBe(row.shows === 'expired' ? -11 : row.shows === 'early' ? 19 : 29);
        const ended = { status: 'COMPLETED', attempts: 1, diagnostic: '0-000', errorCode: null };
        if (row.sends) expect(record).toMatchObject(ended);
        return;
      }
      // Waiting mends no certificate; a CRL may come.
      const [errorCode, attempts] = row.end === 'noList' ? ['CONNECTION_FAILED', 2] : ['AUTH_FAILED', 1];
      const { port } = partners.get(`${row.shows}-${row.keyType}`)!;
      const words = new RegExp(`no TLS connection to 127\\.0\\.0\\.1:${port}: .*${ENDS[row.end].source}`);
      const refused = { errorCode, diagnostic: '3-310' };
      expect(tested).toMatchObject({ success: false, ...refused, message: expect.stringMatching(words) });
      const ended = { status: 'FAILED', attempts, ...refused, errorMessage: expect.stringMatching(words) };
      if (row.sends) expect(record).toMatchObject(ended);
    });
  });
});
