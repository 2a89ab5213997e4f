/** Listeners with TLS, and partners that are bound to their certificates. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectSecure } from 'node:tls';

import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { TlsClientTerms, connectTls, serveTls } from '@pesit-node/net';
import type { Connect } from '@pesit-node/net';
import { TestCa } from '@pesit-node/net/testing/certificates';
import type { TestCertificate } from '@pesit-node/net/testing/certificates';
import { PesitError } from '@pesit-node/protocol';
import { summaryOf } from '@pesit-node/protocol/testing';
import { freePort, testConfig, withDatabase } from '@pesit-node/service/testing';

import { readTrust } from '../../../packages/certificates/src/trust.js';
import { ListenerTls } from '../src/certificates/listener-tls.js';
import { TicketKeys } from '../src/certificates/ticket-keys.js';
import { bytes, PASSWORD, until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, create, CRF, DATA, DESELECT, DTF, DTF_END, ORF, select, transEnd, WRITE } from './support/steps.js';
import type { Step } from './support/steps.js';

const LISTENER = '/api/v1/servers/NODE1';
const PARTNER = '/api/v1/config/partners/ACME';

let ca: TestCa;
let server: TestCertificate;
let other: TestCertificate;
let partner: TestCertificate;
let next: TestCertificate;
let stranger: TestCertificate;
beforeAll(async () => {
  ca = await TestCa.create('Bank CA');
  server = await ca.issue('node');
  other = await ca.issue('node-next');
  const sans = [{ type: 'dns' as const, value: 'acme.example' }];
  partner = await ca.issue('acme', { subject: 'CN=acme,O=Acme SA,C=FR', sans });
  next = await ca.issue('acme-next', { subject: 'CN=acme,O=Acme SA,C=FR', sans });
  stranger = await (await TestCa.create('Other CA')).issue('stranger');
});

/** How a health check of a balancer leaves: by FIN, or by RST as most do. */
const LEAVES = ['end', 'resetAndDestroy'] as const;

/** Connects, says at most what the balancer says of itself, and leaves. */
const look = async (port: number, header: string, leave: (typeof LEAVES)[number]): Promise<void> => {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  if (header !== '') await new Promise((resolve) => socket.write(header, resolve));
  const closed = once(socket, 'close');
  socket[leave]();
  socket.resume();
  await closed;
};

/** As which the requester comes. */
const as = (identity?: TestCertificate): Connect => {
  const terms = new TlsClientTerms({ identity, trust: { certificates: [ca.certificate] } });
  return connectTls(() => terms);
};

test('no session is resumed for longer than ssl.session-timeout, however often it is', async () => {
  let now = 0;
  const { certificateChain, privateKey } = server;
  const identity = { certificateChain, privateKey };
  const trust = await readTrust([ca.certificate], []);
  const stores = { identity: () => Promise.resolve(identity), trust: () => Promise.resolve(trust) };
  const settings = { 'ssl.session-timeout': 3600, 'ssl.truststore-name': 'partners', 'ssl.keystore-name': 'node' };
  const config = testConfig('server', { 'data.directory': '/nowhere', 'admin.password': 'x', ...settings });
  const tickets = new TicketKeys({ timeout: () => config['ssl.session-timeout'], now: () => now });
  const tls = new ListenerTls(stores, config, { publish: () => undefined }, tickets);
  const names = { server_id: 'NODE1', keystore_name: null, truststore_name: null, revocation: 'off' } as const;
  const accepted: boolean[] = [];
  const listening = serveTls({ terms: () => tls.terms({ ...names, ssl_client_auth: 'NEED' }) })({
    arrived: (transport) => {
      accepted.push(transport.security?.resumed === true);
      transport.attach({ received: () => undefined, ended: () => undefined, closed: () => undefined });
      transport.write([Buffer.from('come in')]);
    },
    failed: (_address, reason) => void accepted.push(reason === ''),
  });
  await listening.listen({ host: '127.0.0.1', port: 0 });
  const connecting = as(partner);
  const come = async (): Promise<void> => {
    const signal = AbortSignal.timeout(60_000);
    const { transport } = await connecting({ host: '127.0.0.1', port: listening.port, signal });
    // The ticket comes before.
    await new Promise<void>((resolve) => {
      transport.attach({ received: () => resolve(), ended: () => undefined, closed: () => undefined });
      transport.resume();
    });
    transport.destroy();
    await transport.closed;
  };
  try {
    await come();
    await come();
    now = 3_599_999;
    await come();
    now = 3_600_000;
    await come();
    await come();
    expect(accepted).toEqual([false, true, true, false, true]);
  } finally {
    await listening.close();
  }
});

withDatabase((harness) => {
  const node = useNode(harness);
  let port = 0;

  const keystore = ({ certificateChain: certificate, privateKey }: TestCertificate) => ({ certificate, privateKey });
  const tls = async (fields: Readonly<Record<string, unknown>> = {}): Promise<void> => {
    await node().call('put', LISTENER, { tlsPort: port, sslEnabled: true, keystoreName: 'node', ...fields });
  };
  const refusal = async (opens: Promise<unknown>): Promise<PesitError> => {
    const error = await opens.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (error instanceof PesitError) return error;
    throw new Error('it was let in', { cause: error });
  };

  beforeEach(async () => {
    port = await freePort();
    await node().call('post', '/api/v1/certificates/keystores', { name: 'node', ...keystore(server) });
    await node().call('post', '/api/v1/certificates/truststores', { name: 'partners', certificates: ca.certificate });
  });

  describe('a listener', () => {
    test('takes TLS beside TCP, on ports of their own, and files come over both', async () => {
      await tls();
      const secured = await node().connect({ port, transport: as() });
      const plain = await node().connect();
      const contents = [bytes(100_000), bytes(50_000)];
      await node().send(secured, 'IN', contents[0]!);
      await node().send(plain, 'IN', contents[1]!);
      expect((await node().received('IN')).map(({ length }) => length).sort()).toEqual([100_000, 50_000]);
      expect(secured.security).toMatchObject({ peerCertificate: { fingerprint: server.fingerprint } });
      expect(await node().call('get', `${LISTENER}/status`)).toMatchObject({
        ...{ status: 'RUNNING', port: node().port, tlsPort: port, activeConnections: 2 },
      });
    });

    test('is tried by this node over TLS where the partner has to use it, or nothing else is there', async () => {
      const trial = (): Promise<unknown> =>
        node().call('post', `${PARTNER}/test`, { password: PASSWORD, serverId: 'NODE1' });
      await tls();
      expect(await trial()).toMatchObject({ success: true, tls: null });
      await node().call('put', PARTNER, { certificateFingerprint: partner.fingerprint });
      const { fingerprint } = server;
      const bound = 'The certificate to which ACME is bound: only its password was tried.';
      const trusts = 'Whether ACME trusts the certificate of NODE1.';
      const message = `NODE1 accepted a session of ACME on its TLS port ${port}`;
      const secured = { success: true, message, tls: { protocol: 'TLSv1.3', certificate: { fingerprint } } };
      expect(await trial()).toMatchObject({ ...secured, notTried: expect.arrayContaining([bound, trusts]) });
      await node().call('put', PARTNER, { certificateFingerprint: null });
      await node().call('put', LISTENER, { port: null });
      expect(await trial()).toMatchObject(secured);
      await node().call('put', LISTENER, { sslClientAuth: 'NEED', truststoreName: 'partners' });
      expect(await trial()).toMatchObject({
        ...{ success: false, errorCode: 'CONNECTION_FAILED' },
        message: expect.stringContaining('the listener NODE1 takes nobody without a certificate (sslClientAuth NEED)'),
      });
    });

    test('has one limit of sessions for both', async () => {
      await tls({ maxConnections: 1 });
      await node().connect({ port, transport: as() });
      expect(await refusal(node().connect())).toMatchObject({ diagnostic: '3-309' });
    });

    test('takes TLS alone where port is null; its sessions stay when the other door is closed', async () => {
      await tls();
      const before = node().port;
      const plain = await node().connect();
      await node().call('put', LISTENER, { port: null });
      expect(await refusal(node().connect({ port: before }))).toMatchObject({ fault: 'transport' });
      await node().send(plain, 'IN', bytes(10));
      await node().connect({ port, transport: as() });
      await node().call('put', LISTENER, { port: before, sslEnabled: false });
      await node().connect();
      expect(await refusal(node().connect({ port, transport: as() }))).toMatchObject({ fault: 'transport' });
    });

    test.each([
      ['keystore', 'keystoreName'],
      ['truststore', 'truststoreName'],
    ])('that names a %s that does not exist is refused', async (kind, field) => {
      const words = new RegExp(
        `409.*There is no ${kind} .*"nowhere.*": create it with POST /api/v1/certificates/${kind}s`,
      );
      await node().call('post', `${LISTENER}/stop`);
      await expect(tls({ [field]: 'nowhere' })).rejects.toThrow(words);
      const listener = { serverId: 'NEXT', sslEnabled: true, [field]: 'nowhere' };
      await expect(node().call('post', '/api/v1/servers?start=false', listener)).rejects.toThrow(words);
      await expect(node().call('get', '/api/v1/servers/NEXT')).rejects.toThrow('404');
    });

    test('without its keystore is FAILED with the reason, and runs as soon as there is one', async () => {
      await node().call('put', LISTENER, { sslEnabled: false });
      await node().call('post', `${LISTENER}/stop`);
      await node().call('post', '/api/v1/certificates/keystores', { name: 'late', ...keystore(server) });
      await tls({ keystoreName: 'late' });
      // As in a database that was put back without it.
      await node().database.knex('keystores').where({ name: 'late' }).delete();
      await expect(node().call('post', `${LISTENER}/start`)).rejects.toThrow(
        /Listener NODE1: there is no keystore \\"late\\": create it/,
      );
      expect(await node().call('get', LISTENER)).toMatchObject({
        ...{ status: 'FAILED', statusReason: expect.stringContaining('there is no keystore "late"') },
      });
      await node().call('post', '/api/v1/certificates/keystores', { name: 'late', ...keystore(server) });
      await until(async () => (await node().call('get', LISTENER))['status'] === 'RUNNING' || undefined);
      await node().connect({ port, transport: as() });
    });

    test.each([
      ['no keystore', { keystoreName: null }, /TLS needs a keystore: set keystoreName/],
      ['no truststore', { sslClientAuth: 'WANT' }, /sslClientAuth WANT needs a truststore: set truststoreName/],
    ])('that names %s says so', async (_, fields, words) => {
      await node().call('post', `${LISTENER}/stop`);
      await tls(fields);
      await expect(node().call('post', `${LISTENER}/start`)).rejects.toThrow(words);
    });

    test('uses a changed keystore for the next handshake; the session that is open stays', async () => {
      await tls();
      const first = await node().connect({ port, transport: as() });
      await node().call('put', '/api/v1/certificates/keystores/node', keystore(other));
      const second = await node().connect({ port, transport: as() });
      expect(second.security?.peerCertificate?.fingerprint).toBe(other.fingerprint);
      await node().send(first, 'IN', bytes(10));
    });

    test('says in its log who was not let in, and why; nothing of a key is said anywhere', async () => {
      await tls({ sslClientAuth: 'NEED', truststoreName: 'partners' });
      await refusal(node().connect({ port, transport: as(stranger) }));
      const line = await until(() => node().log.lines.find((text) => JSON.stringify(text).includes('TLS_UNKNOWN_CA')));
      expect(JSON.stringify(line)).toMatch(/no CA of the truststore of the listener .*CN=stranger/);
      const said = `${JSON.stringify(node().log.lines)} ${node().answers.join(' ')}`;
      for (const { privateKey } of [server, stranger]) {
        expect(said).not.toContain(privateKey.split('\n')[1]);
      }
      expect(said).not.toContain('PRIVATE KEY');
    });

    test('says and counts nothing of balancers that look whether it is there, over either door and with PROXY', async () => {
      const header = 'PROXY UNKNOWN\r\n';
      await tls();
      const doors = [node().port, port];
      const before = node().log.lines.length;
      for (const at of doors) {
        for (const leave of LEAVES) await look(at, '', leave);
      }
      const handshake = connectSecure({ host: '127.0.0.1', port, rejectUnauthorized: false });
      await once(handshake, 'secureConnect');
      handshake.end();
      await once(handshake, 'close');
      await tls({ proxyProtocol: 'required', trustedProxies: ['127.0.0.0/8'] });
      for (const at of doors) {
        for (const leave of LEAVES) {
          await look(at, '', leave);
          await look(at, header, leave);
        }
      }
      // Whatever they were to cause is there before this one.
      await tls({ proxyProtocol: 'off', trustedProxies: [] });
      await node().connect({ port, transport: as() });
      expect(await node().call('get', LISTENER)).toMatchObject({ refusedConnections: 0 });
      const said = node()
        .log.lines.slice(before)
        .map((line) => JSON.stringify(line));
      expect(said.filter((line) => /rejected|refused|127\.0\.0\.1.*(?:closed|reset|ended)/.test(line))).toEqual([]);
    });

    test('keeps its stores from being deleted', async () => {
      await tls({ truststoreName: 'partners' });
      for (const store of ['keystores/node', 'truststores/partners']) {
        await expect(node().call('delete', `/api/v1/certificates/${store}`)).rejects.toThrow(/409 .*NODE1/);
      }
    });
  });

  describe('revocation of what partners present', () => {
    const truststore = (crls: string | null) =>
      node().call('put', '/api/v1/certificates/truststores/partners', { crls });
    const said = (code: string): Promise<string> =>
      until(() =>
        node()
          .log.lines.map((line) => JSON.stringify(line))
          .find((text) => text.includes(code)),
      );

    test('refuses one that its CA revoked, in words, and takes the others', async () => {
      await truststore(await ca.crl([partner.serial]));
      await tls({ sslClientAuth: 'NEED', truststoreName: 'partners', revocation: 'hard' });
      await refusal(node().connect({ port, transport: as(partner) }));
      const words = `(acme, serial ${partner.serial}) was revoked by its CA Bank CA`;
      expect(await said('TLS_CERTIFICATE_REVOKED')).toContain(words);
      await refusal(node().connect({ port, transport: as(stranger) }));
      const entries = await until(async () => {
        const { content } = await node().call('get', '/api/v1/audit?objectType=session');
        const all = content as readonly { readonly action: string; readonly details: string }[];
        return all.length === 2 ? all : undefined;
      });
      const [unknown, revoked] = entries.map(({ action, details }) => [action, JSON.parse(details) as unknown]);
      const from = { listener: 'NODE1', remoteAddress: '127.0.0.1' };
      expect(revoked).toEqual([
        'refused',
        { ...from, code: 'TLS_CERTIFICATE_REVOKED', reason: expect.stringContaining(words) as unknown },
      ]);
      expect(unknown).toMatchObject(['refused', { ...from, code: 'TLS_UNKNOWN_CA' }]);
      const session = await node().connect({ port, transport: as(next) });
      await node().send(session, 'IN', bytes(10));
    });

    test('ends a session whose certificate is revoked meanwhile: idle at once, else behind the running file', async () => {
      await truststore(await ca.crl([]));
      await tls({ sslClientAuth: 'NEED', truststoreName: 'partners', revocation: 'hard' });
      const open = (...steps: readonly Step[]): Promise<RawPeer> =>
        RawPeer.openTls(port, partner.certificateChain, partner.privateKey, CONNECT, ...steps);
      const idle = await open();
      const busy = await open(create(), ORF, WRITE, DTF);
      const other = await node().connect({ port, transport: as(next) });
      await truststore(await ca.crl([partner.serial]));
      expect(summaryOf(await idle.next())).toBe('ABORT 3-304');
      await busy.sendAll(DTF_END);
      expect(summaryOf(await busy.sendAll(transEnd(DATA.length, 1)))).toBe('ACK(TRANS.END) 0-000');
      await busy.sendAll(CRF, DESELECT);
      expect(summaryOf(await busy.sendAll(select('OUT')))).toBe('ACK(SELECT) 3-304');
      expect((await node().received('IN')).map(String)).toEqual([DATA]);
      expect(JSON.stringify(node().log.lines)).toMatch(
        /was revoked by its CA Bank CA.*session has to end after its file/,
      );
      for (const { socket } of [idle, busy]) socket.destroy();
      await node().send(other, 'IN', bytes(10));
    });

    test('counts from the next handshake on: as the field, and as the CRL, is changed', async () => {
      await truststore(await ca.crl([partner.serial]));
      await tls({ sslClientAuth: 'NEED', truststoreName: 'partners' });
      const session = await node().connect({ port, transport: as(partner) });
      await node().call('put', LISTENER, { revocation: 'soft' });
      await refusal(node().connect({ port, transport: as(partner) }));
      await truststore(await ca.crl([]));
      await node().connect({ port, transport: as(partner) });
      await node().send(session, 'IN', bytes(10));
    });

    test('without a CRL: hard refuses and says what is missing; soft lets in and says so', async () => {
      await tls({ sslClientAuth: 'NEED', truststoreName: 'partners', revocation: 'hard' });
      await refusal(node().connect({ port, transport: as(partner) }));
      const words = /the truststore \\+"partners\\+" has no CRL of Bank CA: put its newest one into crls/;
      expect(await said('TLS_REVOCATION_UNKNOWN')).toMatch(words);
      await node().call('put', LISTENER, { revocation: 'soft' });
      await node().connect({ port, transport: as(partner) });
      expect(await said('revocation is soft')).toMatch(words);
    });
  });

  describe('a partner', () => {
    beforeEach(() => tls({ sslClientAuth: 'WANT', truststoreName: 'partners' }));

    test('that has to use TLS is refused without; the log says by which terms it came', async () => {
      await node().call('put', PARTNER, { tlsRequired: true });
      expect(await refusal(node().connect())).toMatchObject({ fault: 'refused', diagnostic: '3-304' });
      await node().connect({ port, transport: as() });
      await node().connect({ port, transport: as(partner) });
      const terms = { tls: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384' };
      const lines = node()
        .log.entries()
        .filter(({ msg }) => msg === 'partner connected');
      expect(lines.slice(-2)).toEqual([
        expect.not.objectContaining({ certificateFingerprint: expect.anything() }),
        expect.objectContaining({ ...terms, certificateFingerprint: partner.fingerprint }),
      ]);
      expect(lines.at(-2)).toMatchObject(terms);
    });

    test.each([
      ['a fingerprint', () => ({ certificateFingerprint: partner.fingerprint.toLowerCase().replaceAll(':', '') })],
      ['a subject', () => ({ certificateSubject: 'cn=acme, o=Acme SA, c=FR' })],
      ['a name', () => ({ certificateSan: 'DNS:acme.example' })],
      ['a name without its kind', () => ({ certificateSan: ['other.example', 'acme.example'] })],
      [
        'several of each',
        () => ({
          certificateFingerprint: [next.fingerprint, partner.fingerprint],
          certificateSubject: ['CN=next', 'CN=acme,O=Acme SA,C=FR'],
          certificateSan: ['DNS:next.example', 'DNS:acme.example'],
        }),
      ],
    ])('that is bound to %s comes with that certificate alone, then without a password too', async (_, binding) => {
      await node().call('put', PARTNER, binding());
      const refused = { fault: 'refused', diagnostic: '3-304' };
      expect(await refusal(node().connect())).toMatchObject(refused);
      expect(await refusal(node().connect({ port, transport: as() }))).toMatchObject(refused);
      expect(await refusal(node().connect({ port, transport: as(server) }))).toMatchObject(refused);
      await node().connect({ port, transport: as(partner) });
      await node().connect({ port, transport: as(partner), password: undefined });
      const wrong = node().connect({ port, transport: as(partner), password: 'wrong' });
      expect(await refusal(wrong)).toMatchObject(refused);
      expect(JSON.stringify(node().log.lines)).toContain(`fingerprint ${server.fingerprint}`);
    });

    test.each([['zz'], [['zz']]])('is not bound to %j: the answer says how a fingerprint is written', async (wrong) => {
      await expect(node().call('put', PARTNER, { certificateFingerprint: wrong })).rejects.toThrow(
        /certificateFingerprint.*expected a SHA-256 fingerprint: 64 hexadecimal digits, with or without colons, such as 3A:5F/,
      );
    });

    test('that resumes a session is what it is now: bound to another certificate, or revoked, it does not come in', async () => {
      await node().call('put', PARTNER, { certificateFingerprint: partner.fingerprint });
      const transport = as(partner);
      const come = () => node().connect({ port, transport });
      expect((await come()).security?.resumed).toBe(false);
      expect((await come()).security?.resumed).toBe(true);
      await node().call('put', PARTNER, { certificateFingerprint: next.fingerprint });
      expect(await refusal(come())).toMatchObject({ fault: 'refused', diagnostic: '3-304' });
      await node().call('put', PARTNER, { certificateFingerprint: null });
      expect((await come()).security?.resumed).toBe(true);
      await node().call('put', LISTENER, { revocation: 'soft' });
      await come();
      expect((await come()).security?.resumed).toBe(true);
      const crls = await ca.crl([partner.serial]);
      await node().call('put', '/api/v1/certificates/truststores/partners', { crls });
      expect(await refusal(come())).toMatchObject({ fault: 'transport' });
    });

    test('changes its certificate with two fingerprints', async () => {
      const both = [partner.fingerprint, next.fingerprint];
      await node().call('put', PARTNER, { certificateFingerprint: both });
      expect(await node().call('get', PARTNER)).toMatchObject({ certificateFingerprint: both });
      await node().connect({ port, transport: as(partner) });
      await node().connect({ port, transport: as(next) });
      await node().call('put', PARTNER, { certificateFingerprint: next.fingerprint });
      expect(await refusal(node().connect({ port, transport: as(partner) }))).toMatchObject({ diagnostic: '3-304' });
    });

    test('that is not bound needs its password, whatever certificate it has (pesit-e.md §10)', async () => {
      const without = { password: undefined };
      for (const identity of [undefined, partner]) {
        const error = await refusal(node().connect({ port, transport: as(identity), ...without }));
        expect(error).toMatchObject({ fault: 'refused', diagnostic: '3-304' });
      }
    });
  });
});
