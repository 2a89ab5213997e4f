/** TLS with a peer that shares no code with ours: `openssl s_client` before a listener, `openssl s_server` behind a requester. */
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { TlsServerTerms, serveTls } from '../src/index.js';
import type { ClientAuth, RevocationCheck, TransportSecurity } from '../src/index.js';
import type { TestCertificate } from '../src/testing/certificates.js';
import { atEnd } from './support/harness.js';
import { createPki, opening, revoking, trusting } from './support/tls.js';
import type { Pki } from './support/tls.js';

const LOCAL = '127.0.0.1';
const DAY_MS = 86_400_000;

let pki: Pki;
let directory: string;
beforeAll(async () => {
  pki = await createPki();
  directory = mkdtempSync(join(tmpdir(), 'pesit-tls-'));
  writeFileSync(join(directory, 'ca.pem'), pki.ca.certificate);
  for (const name of ['good', 'server', 'expired', 'foreign', 'revoked', 'otherName'] as const) {
    writeFileSync(join(directory, `${name}.pem`), pki[name].certificateChain + pki[name].privateKey);
  }
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const openssl = (...args: readonly string[]): ChildProcessWithoutNullStreams => {
  const child = spawn('openssl', args, { cwd: directory, stdio: 'pipe' });
  child.stdin.on('error', () => undefined);
  return child;
};

/** All that it says until it ends. */
const saidBy = async (child: ChildProcessWithoutNullStreams): Promise<string> => {
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => (said += piece.toString()));
  await once(child, 'close');
  return said;
};

interface Door {
  readonly port: number;
  terms: TlsServerTerms;
  /** Connections so far: the code of one that was refused, or how one that has arrived was secured. */
  readonly ends: (string | TransportSecurity)[];
}

const termsOf = (clientAuth: ClientAuth, revocation: RevocationCheck = revoking(pki)): TlsServerTerms =>
  new TlsServerTerms({ identity: pki.server, trust: trusting(pki), clientAuth, revocation });

/** A TLS port that greets who arrives, and closes; with `isOpen` it waits for the other side. */
const door = async (terms: TlsServerTerms, isOpen = false): Promise<Door> => {
  const ends: Door['ends'] = [];
  const server = serveTls({ terms: () => opened.terms })({
    arrived: (transport) => {
      if (transport.security !== undefined) ends.push(transport.security);
      transport.attach({ received: () => undefined, ended: () => undefined, closed: () => undefined });
      transport.resume();
      transport.write([Buffer.from('have arrived\n')]);
      if (!isOpen) transport.end();
    },
    failed: (_address, _reason, code = 'none') => void ends.push(code),
  });
  await server.listen({ host: LOCAL, port: 0 });
  atEnd(() => server.close());
  const opened: Door = { port: server.port, terms, ends };
  return opened;
};

const VERSIONS = { 'TLSv1.2': '-tls1_2', 'TLSv1.3': '-tls1_3' } as const;
type Version = keyof typeof VERSIONS;
const versions = Object.keys(VERSIONS) as Version[];

const client = (port: number, version: Version, ...more: readonly string[]): Promise<string> => {
  const child = openssl(
    ...['s_client', '-connect', `${LOCAL}:${port}`, VERSIONS[version], '-CAfile', 'ca.pem', '-ign_eof', ...more],
  );
  child.stdin.end();
  return saidBy(child);
};

const SHOWN = {
  good: undefined,
  expired: 'TLS_CERTIFICATE_EXPIRED',
  foreign: 'TLS_UNKNOWN_CA',
  revoked: 'TLS_CERTIFICATE_REVOKED',
} as const;
type Shown = keyof typeof SHOWN;

describe('s_client before a listener', () => {
  describe.each(versions)('%s', (version) => {
    describe.each(['NONE', 'WANT', 'NEED'] as const)('%s', (auth) => {
      test.each([...(Object.keys(SHOWN) as Shown[]), 'none'] as const)('%s', async (shown) => {
        const { port, ends } = await door(termsOf(auth));
        const said = await client(port, version, ...(shown === 'none' ? [] : ['-cert', `${shown}.pem`]));
        const code = shown === 'none' ? (auth === 'NEED' ? 'TLS_CERTIFICATE_REQUIRED' : undefined) : SHOWN[shown];
        const refused = auth === 'NONE' ? undefined : code;
        expect(ends).toEqual([refused ?? expect.objectContaining({ protocol: version, resumed: false })]);
        expect(said.includes('have arrived')).toBe(refused === undefined);
        if (refused !== 'TLS_CERTIFICATE_REQUIRED') expect(said).toContain('Verify return code: 0 (ok)');
      });
    });

    test('a session is resumed, and the client is told for how long; not with other terms, such as another truststore', async () => {
      const sameTrust = { identity: pki.server, trust: trusting(pki), clientAuth: 'NEED' } as const;
      const opened = await door(new TlsServerTerms({ ...sameTrust, sessionTimeout: 1234 }));
      const how = ['-cert', 'good.pem'];
      expect(await client(opened.port, version, ...how, '-sess_out', 'kept')).toMatch(/^New, TLSv1\.[23]/m);
      expect(await client(opened.port, version, ...how, '-sess_in', 'kept')).toMatch(/^Reused, TLSv1\.[23]/m);
      const told = openssl('sess_id', '-in', 'kept', '-noout', '-text');
      expect(await saidBy(told)).toMatch(/session ticket lifetime hint: 1234 \(seconds\)/);
      expect(opened.ends).toMatchObject([
        { resumed: false },
        { resumed: true, peerCertificate: { fingerprint: pki.good.fingerprint } },
      ]);
      // Other CAs: who was let in by the old ones has to show its certificate again.
      const trust = { certificates: [pki.other.certificate] };
      opened.terms = new TlsServerTerms({ identity: pki.server, trust, clientAuth: 'NEED' });
      expect(await client(opened.port, version, ...how, '-sess_in', 'kept')).not.toContain('have arrived');
      expect(opened.ends.at(-1)).toBe('TLS_UNKNOWN_CA');
    });

    test('a resumed session does not outlive the certificate that it was begun with', async () => {
      let isRevoked = false;
      const revocation: RevocationCheck = () =>
        Promise.resolve(isRevoked ? { code: 'TLS_CERTIFICATE_REVOKED', text: 'revoked since' } : undefined);
      const { port, ends } = await door(termsOf('NEED', revocation));
      const how = ['-cert', 'good.pem'];
      await client(port, version, ...how, '-sess_out', 'begun');
      const now = Date.now();
      const clock = jest.spyOn(Date, 'now').mockImplementation(() => now + 31 * DAY_MS);
      try {
        await client(port, version, ...how, '-sess_in', 'begun');
      } finally {
        clock.mockRestore();
      }
      isRevoked = true;
      await client(port, version, ...how, '-sess_in', 'begun');
      expect(ends).toEqual([expect.anything(), 'TLS_CERTIFICATE_EXPIRED', 'TLS_CERTIFICATE_REVOKED']);
    });
  });

  test('TLS 1.1 and suites without forward secrecy are not spoken', async () => {
    const { port, ends } = await door(termsOf('NONE'));
    for (const how of [
      ['-tls1_1', '-cipher', 'ALL:@SECLEVEL=0'],
      ['-tls1_2', '-cipher', 'AES128-GCM-SHA256'],
    ]) {
      const child = openssl('s_client', '-connect', `${LOCAL}:${port}`, '-ign_eof', ...how);
      child.stdin.end();
      expect(await saidBy(child)).toMatch(/alert (?:protocol version|handshake failure)/);
    }
    expect(ends).toEqual(['TLS_NO_COMMON_PROTOCOL', 'TLS_NO_COMMON_CIPHER']);
  });

  test('renegotiation is refused', async () => {
    const { port } = await door(termsOf('NONE'), true);
    const child = openssl('s_client', '-connect', `${LOCAL}:${port}`, '-tls1_2', '-CAfile', 'ca.pem');
    const said = saidBy(child);
    child.stdout.on('data', (piece: Buffer) => {
      if (piece.includes('have arrived')) child.stdin.write('R\n');
    });
    expect(await said).toMatch(/RENEGOTIATING[^]*no renegotiation/);
  });

  test('early data is never taken', async () => {
    const { port, ends } = await door(termsOf('NONE'));
    writeFileSync(join(directory, 'early'), 'PeSIT before the handshake is over');
    const first = await client(port, 'TLSv1.3', '-sess_out', 'ticket');
    expect(first).toContain('Max Early Data: 0');
    const second = await client(port, 'TLSv1.3', '-sess_in', 'ticket', '-early_data', 'early');
    expect(second).toMatch(/Reused, TLSv1\.3/);
    expect(second).toContain('Early data was not sent');
    expect(ends).toMatchObject([{ resumed: false }, { resumed: true }]);
  });
});

describe('s_server behind a requester', () => {
  const server = async (shown: string, ...more: readonly string[]): Promise<number> => {
    const child = openssl('s_server', '-accept', `${LOCAL}:0`, '-cert', `${shown}.pem`, ...more);
    atEnd(async () => {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
    });
    child.stderr.resume();
    let said = '';
    for (;;) {
      const [piece] = (await once(child.stdout, 'data')) as [Buffer];
      said += piece.toString();
      const port = /^ACCEPT .*:(\d+)$/m.exec(said)?.[1];
      if (port !== undefined) return Number(port);
    }
  };
  const connecting = async (port: number, material: Parameters<typeof opening>[1] = {}): Promise<TransportSecurity> => {
    const { transport } = await opening(pki, material)({ host: LOCAL, port, signal: AbortSignal.timeout(60_000) });
    const { security } = transport;
    transport.destroy();
    if (security === undefined) throw new Error('nothing secures it');
    return security;
  };

  test.each(versions)('the right certificate, %s', async (version) => {
    const security = await connecting(await server('server', VERSIONS[version]));
    expect(security).toMatchObject({ protocol: version, peerCertificate: { fingerprint: pki.server.fingerprint } });
  });

  test.each([
    ['otherName', 'TLS_NAME_MISMATCH'],
    ['expired', 'TLS_CERTIFICATE_EXPIRED'],
    ['foreign', 'TLS_UNKNOWN_CA'],
    ['revoked', 'TLS_CERTIFICATE_REVOKED'],
  ] as const)('%s is refused', async (shown, code) => {
    const port = await server(shown);
    await expect(connecting(port, { revocation: revoking(pki) })).rejects.toMatchObject({ code });
  });

  test('a pin takes the place of chain and name', async () => {
    const pinned = (certificate: TestCertificate) => ({ fingerprints: [certificate.fingerprint] });
    const port = await server('otherName');
    expect((await connecting(port, pinned(pki.otherName))).peerCertificate?.serial).toBe(pki.otherName.serial);
    await expect(connecting(port, pinned(pki.server))).rejects.toMatchObject({ code: 'TLS_PIN_MISMATCH' });
  });

  test.each([
    ['without one', undefined, 'TLS_CERTIFICATE_REQUIRED'],
    ['with a bad one', 'foreign', 'TLS_UNKNOWN_CA'],
    ['with a good one', 'good', undefined],
  ] as const)('that wants a certificate of ours, TLS 1.2, %s', async (_, shown, code) => {
    const port = await server('server', '-tls1_2', '-Verify', '3', '-verify_return_error', '-CAfile', 'ca.pem');
    const came = connecting(port, shown === undefined ? {} : { identity: pki[shown] });
    if (code === undefined) expect((await came).protocol).toBe('TLSv1.2');
    // OpenSSL says handshake_failure to who shows none, as it did before TLS 1.3.
    else
      await expect(came).rejects.toMatchObject({
        code: code === 'TLS_CERTIFICATE_REQUIRED' ? 'TLS_NO_COMMON_CIPHER' : code,
      });
  });
});
