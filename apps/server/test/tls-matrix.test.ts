/**
 * Every certificate that a partner may show, at every `sslClientAuth` of a listener: what the partner sees, and what log, events, figures
 * and metrics say. One node; the partners are Node's own TLS and speak PeSIT by hand, each from an address of its own.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import type { SecureVersion } from 'node:tls';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { entity, summaryOf } from '@pesit-node/protocol/testing';
import { captureLog, freePort, readOpenMetrics, watchEvents, withDatabase } from '@pesit-node/service/testing';
import { SESSION_OPENED, SESSION_REFUSED } from '@pesit-node/transfers';

import { OpenSsl } from '../../../packages/certificates/test/support/openssl.js';
import { KEYS, SHOWN, usePeers, verdictsOfOpenSsl } from '../../../packages/certificates/test/support/peers.js';
import type { KeyType, Shown } from '../../../packages/certificates/test/support/peers.js';
import { MIGRATIONS } from '../src/migrations/index.js';
import { PASSWORD, TestNode, until } from './support/node.js';
import { connectAs } from './support/steps.js';

const MODES = ['NONE', 'WANT', 'NEED'] as const;
type Mode = (typeof MODES)[number];

/** The end of a partner of whom a certificate is asked, where it is not let in: code and words of the log. */
const REFUSED: Readonly<Partial<Record<Shown | 'none', readonly [code: string, words: RegExp]>>> = {
  none: [
    'TLS_CERTIFICATE_REQUIRED',
    /^the partner presented no certificate, and sslClientAuth is NEED: it has to present/,
  ],
  revoked: [
    'TLS_CERTIFICATE_REVOKED',
    /^the certificate of the partner \(revoked-\w+, serial \w+\) was revoked by its CA Bank CA/,
  ],
  revokedByOcsp: [
    'TLS_CERTIFICATE_REVOKED',
    /\(withdrawn-\w+, serial \w+\) was revoked by its CA asked, keyCompromise, since/,
  ],
  belowRevoked: [
    'TLS_CERTIFICATE_REVOKED',
    /^a CA certificate above that of the partner \(Closed CA, .* was revoked by its CA Bank CA.* from another CA/,
  ],
  expired: [
    'TLS_CERTIFICATE_EXPIRED',
    /\(CN=expired-\w+, issued by CN=Bank CA\) has expired on .*: the partner has to present a new one/,
  ],
  belowExpired: [
    'TLS_CERTIFICATE_EXPIRED',
    /^a CA above the certificate of the partner \(CN=below-former-\w+, .* has expired/,
  ],
  early: [
    'TLS_CERTIFICATE_NOT_YET_VALID',
    /\(CN=early-\w+, issued by CN=Bank CA\) is valid only from .*check the clock/,
  ],
  foreign: [
    'TLS_UNKNOWN_CA',
    /^no CA of the truststore of the listener \(truststoreName\) stands behind .*CN=foreign-\w+, issued by CN=Other CA/,
  ],
  withoutBetween: [
    'TLS_UNKNOWN_CA',
    /CN=unsent-\w+, issued by CN=Unsent CA\): put the CA there, or let the partner send the certificates between/,
  ],
  selfSigned: [
    'TLS_UNKNOWN_CA',
    /\(CN=alone-\w+, issued by CN=alone-\w+\) is self-signed and not in the truststore of the listener/,
  ],
  otherUse: ['TLS_CERTIFICATE_INVALID', /\(CN=other-use-\w+, .* \(extended key usage without clientAuth\)/],
};

interface Row {
  readonly mode: Mode;
  readonly shows: Shown | 'none';
  readonly keyType: KeyType;
  readonly version: SecureVersion;
  readonly partner: string;
  /** What the partner sees. */
  readonly sees: string;
  readonly refused: readonly [code: string, words: RegExp] | undefined;
}

const ALERTS: Partial<Record<SecureVersion, string>> = {
  'TLSv1.2': 'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
  'TLSv1.3': 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
};
const VERSIONS: readonly SecureVersion[] = ['TLSv1.2', 'TLSv1.3'];

const rowOf = (mode: Mode, shows: Shown | 'none', keyType: KeyType, partner: string): Row => {
  // Each certificate meets both versions.
  const version = VERSIONS[(MODES.indexOf(mode) + KEYS.indexOf(keyType)) % 2] ?? 'TLSv1.3';
  const isAsked = mode === 'NEED' || (mode === 'WANT' && shows !== 'none');
  const refused = isAsked ? REFUSED[shows] : undefined;
  const about = { mode, shows, keyType, version, partner, refused };
  if (refused !== undefined) return { ...about, sees: shows === 'none' ? (ALERTS[version] ?? '') : 'closed' };
  const isBound = partner !== 'ACME';
  return { ...about, sees: isBound && (mode === 'NONE' || shows !== 'good') ? 'RCONNECT 3-304' : 'ACONNECT' };
};

const ROWS = MODES.flatMap((mode) =>
  KEYS.flatMap((keyType) => [
    ...(['none', ...(Object.keys(SHOWN) as Shown[])] as const).map((shows) => rowOf(mode, shows, keyType, 'ACME')),
    ...(['none', 'good', 'byIntermediate', 'otherName'] as const).map((shows) =>
      rowOf(mode, shows, keyType, `BOUND-${keyType}`),
    ),
  ]),
);
const addressOf = (row: Row): string => `127.0.7.${1 + ROWS.indexOf(row)}`;
const isLetIn = ({ sees }: Row): boolean => sees === 'ACONNECT';

const openssl = new OpenSsl();
const peers = usePeers(openssl, 'client');

const shownBy = ({ shows, keyType }: Row) => (shows === 'none' ? undefined : peers().shown[shows][keyType]);

/** What a partner sees at the listener on this port: the answer to its CONNECT, an alert, or that it was closed. */
const comesTo = (port: number, row: Row): Promise<string> =>
  new Promise((resolve) => {
    const { version, partner } = row;
    const made = shownBy(row);
    const socket = connect({
      ...{ host: '127.0.0.1', port, localAddress: addressOf(row), minVersion: version, maxVersion: version },
      ...(made === undefined ? {} : { cert: made.certificateChain, key: made.privateKey }),
      rejectUnauthorized: false,
    });
    let answer = Buffer.alloc(0);
    socket.on('data', (bytes) => {
      answer = Buffer.concat([answer, bytes]);
      if (answer.length < 2 || answer.length < 2 + answer.readUInt16BE(0)) return;
      resolve(summaryOf(answer.subarray(2)));
      socket.destroy();
    });
    // Whoever is closed with its CONNECT unread may be told so by a reset.
    socket.on('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code?.startsWith('ERR_SSL') === true ? code : 'closed'),
    );
    socket.on('close', () => resolve('closed'));
    // An alert is read by whoever waits for it.
    if (row.sees.startsWith('ERR_SSL')) return;
    const { bytes } = connectAs({ requester: partner, password: PASSWORD });
    socket.once('secureConnect', () => socket.write(entity(bytes(0))));
  });

withDatabase((harness) => {
  const log = captureLog();
  const events = watchEvents([SESSION_OPENED, SESSION_REFUSED]);
  const saw = new Map<Row, string>();
  let node: TestNode;
  let data = '';

  beforeAll(async () => {
    data = await mkdtemp(join(tmpdir(), 'pesit-node-'));
    const database = await harness.open({ migrations: [MIGRATIONS] });
    node = new TestNode(database, data, log, { settings: { 'ssl.ocsp': true } });
    await node.start();
    const identity = await peers().ca.issue('node');
    const keystore = { name: 'node', certificate: identity.certificateChain, privateKey: identity.privateKey };
    await node.call('post', '/api/v1/certificates/keystores', keystore);
    await node.call('post', '/api/v1/certificates/truststores', { name: 'partners', ...peers().trust });
    await node.partner('ACME');
    for (const keyType of KEYS) {
      await node.partner(`BOUND-${keyType}`, { certificateFingerprint: peers().shown.good[keyType].fingerprint });
    }
  });

  const heardOf = (row: Row) => events.heard.find(({ event }) => event.session.facts.remoteAddress === addressOf(row));

  afterAll(async () => {
    events.stop();
    await node.stop();
    await rm(data, { recursive: true, force: true });
  });

  test('OpenSSL is of the same opinion about each chain', () => {
    const verdicts = verdictsOfOpenSsl(openssl, peers(), 'client');
    for (const [shows, words] of Object.entries(SHOWN)) {
      for (const keyType of KEYS) expect([shows, verdicts[`${shows}-${keyType}`]]).toEqual([shows, words]);
    }
  });

  describe.each(MODES)('%s', (mode) => {
    const rows = ROWS.filter((row) => row.mode === mode);
    beforeAll(async () => {
      const tlsPort = await freePort();
      await node.call('post', '/api/v1/servers', {
        ...{ serverId: mode, port: null, tlsPort, sslEnabled: true, sslClientAuth: mode, revocation: 'hard' },
        ...{ keystoreName: 'node', truststoreName: 'partners', autoStart: false },
      });
      await node.call('post', `/api/v1/servers/${mode}/start`);
      // Some at a time: handshakes and responders have a bound of time.
      for (let from = 0; from < rows.length; from += 8) {
        const some = rows.slice(from, from + 8);
        await Promise.all(some.map(async (row) => saw.set(row, await comesTo(tlsPort, row))));
      }
      await until(() => rows.every((row) => heardOf(row) !== undefined) || undefined);
    });

    test.each(rows)('$shows, $keyType, $version, as $partner: $sees', (row) => {
      expect(saw.get(row)).toBe(row.sees);
      const { name, event } = heardOf(row)!;
      expect(event.session.facts).toMatchObject({ listener: row.mode, remoteAddress: addressOf(row) });
      const line = log.entries().find(({ remoteAddress }) => remoteAddress === addressOf(row));
      if (isLetIn(row)) {
        const isSeen = row.mode !== 'NONE' && row.shows !== 'none';
        const certificateFingerprint = isSeen ? shownBy(row)?.fingerprint : undefined;
        expect([name, event.facts.tls, event.facts.certificateFingerprint]).toEqual([
          ...[SESSION_OPENED.name, row.version, certificateFingerprint],
        ]);
        expect(line).toMatchObject({ msg: 'partner connected', partner: row.partner, tls: row.version });
        return;
      }
      expect([name, event.diagnostic]).toEqual([SESSION_REFUSED.name, row.refused === undefined ? '3-304' : undefined]);
      if (row.refused !== undefined) {
        const [code, words] = row.refused;
        expect(event.facts).toEqual({ code, reason: expect.stringMatching(words) });
        expect(line).toMatchObject({ level: 'warn', msg: 'connection rejected', code, reason: event.facts.reason });
        return;
      }
      const words =
        row.mode === 'NONE' || row.shows === 'none'
          ? /presented no certificate, and is bound to one: .* sslClientAuth of the listener has to be WANT or NEED/
          : /presented is another one than its certificateFingerprint says: subject CN=.*, fingerprint (?:..:){31}../;
      expect(line).toMatchObject({
        ...{ level: 'warn', msg: 'connection refused', diagnostic: expect.stringContaining('3-304') },
        reason: expect.stringMatching(words),
      });
    });
  });

  test('figures and metrics count each that was not let in', async () => {
    const refused = (isCounted: (row: Row) => boolean): number =>
      ROWS.filter((row) => !isLetIn(row) && isCounted(row)).length;
    for (const mode of MODES) {
      const figures = await node.call('get', `/api/v1/servers/${mode}/status`);
      expect(figures).toMatchObject({ refusedConnections: refused((row) => row.mode === mode) });
    }
    const metrics = readOpenMetrics(await node.text('get', '/metrics'));
    expect(metrics.get('pesit_sessions_refused_total{diagnostic="none"}')).toBe(
      refused((row) => row.refused !== undefined),
    );
    expect(metrics.get('pesit_sessions_refused_total{diagnostic="3-304"}')).toBe(
      refused((row) => row.refused === undefined),
    );
    expect(metrics.get('pesit_sessions_total')).toBe(ROWS.filter(isLetIn).length);
  });
});
