/** TLS does what every `Transport` does, whichever side opened it and with either version. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect as connectSocket, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { TLSSocket, connect as connectTlsSocket } from 'node:tls';
import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import { TlsClientTerms, TlsServerTerms, connectTls, serveTls } from '../src/index.js';
import type { TlsVersion, Transport } from '../src/index.js';
import { TestCa } from '../src/testing/certificates.js';
import type { TestCertificate } from '../src/testing/certificates.js';
import { describeNetwork, describeTransport } from '../src/testing/index.js';
import type { TransportUnderTest } from '../src/testing/index.js';
import { atEnd, gate } from './support/harness.js';
import { socketPeer } from './support/peers.js';

const LOCAL = '127.0.0.1';
const never = new AbortController().signal;
const under = { address: LOCAL, readsInto: true, knowsQueue: true };

let ca: TestCa;
let server: TestCertificate;
let client: TestCertificate;
beforeAll(async () => {
  ca = await TestCa.create();
  server = await ca.issue('server');
  client = await ca.issue('client');
});

const serverTerms = (versions?: readonly TlsVersion[]) =>
  new TlsServerTerms({
    identity: server,
    trust: { certificates: [ca.certificate] },
    clientAuth: 'WANT',
    ...(versions === undefined ? {} : { versions }),
  });
const clientTerms = () => new TlsClientTerms({ identity: client, trust: { certificates: [ca.certificate] } });

/** The other end is a bare socket of Node's own TLS, over a connection that can be reset. */
const tlsThatConnected = (version: TlsVersion) => async (): Promise<TransportUnderTest> => {
  const listening = createServer({ allowHalfOpen: true });
  listening.listen(0, LOCAL);
  await once(listening, 'listening');
  const terms = serverTerms([version]);
  const arrived = gate<{ readonly raw: Socket; readonly secured: TLSSocket }>();
  listening.on('connection', (raw) => {
    const secured = new TLSSocket(raw, {
      isServer: true,
      secureContext: terms.contextFor(),
      allowHalfOpen: true,
    } as object);
    secured.once('secure', () => {
      arrived.open({ raw, secured });
    });
  });
  const { port } = listening.address() as AddressInfo;
  const { transport } = await connectTls(clientTerms)({ host: LOCAL, port, signal: never });
  const { raw, secured } = await arrived.passed;
  atEnd(async () => {
    listening.close();
    await once(listening, 'close');
  });
  const peer = socketPeer(secured, () => void raw.resetAndDestroy());
  return { ...under, transport, security: transport.security, peer };
};

const tlsThatWasAccepted = (version: TlsVersion) => async (): Promise<TransportUnderTest> => {
  const arrived = gate<Transport>();
  const terms = serverTerms([version]);
  const listening = serveTls({ terms: () => terms })({ arrived: arrived.open, failed: arrived.refuse });
  await listening.listen({ host: LOCAL, port: 0 });
  const raw = connectSocket({ host: LOCAL, port: listening.port, allowHalfOpen: true });
  const secured = connectTlsSocket({ socket: raw, ca: ca.certificate, servername: 'localhost' });
  const peer = socketPeer(secured, () => void raw.resetAndDestroy());
  const transport = await arrived.passed;
  atEnd(() => listening.close());
  return { ...under, transport, security: transport.security, peer };
};

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  describeTransport(`${version} that connected`, tlsThatConnected(version));
  describeTransport(`${version} that was accepted`, tlsThatWasAccepted(version));
}

describeNetwork('TLS', () => {
  const terms = serverTerms();
  return { connect: connectTls(clientTerms), serve: serveTls({ terms: () => terms }), host: LOCAL };
});

describe('a TLS connection that is opened', () => {
  // `connect` of node:tls drops the socket options that `connect` of node:net takes.
  test('small FPDUs leave at once, and the kernel looks for a silent partner after a minute', async () => {
    const without = jest.spyOn(TLSSocket.prototype, 'setNoDelay');
    const { transport, port } = await connected();
    expect(without.mock.calls).toEqual([[true]]);
    without.mockRestore();
    // Its line in the kernel's table: timer 02 is the one of keep-alive, and behind it stands when it is due (1/100 s). Until
    // the partner has acknowledged the handshake another timer stands there.
    const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')} 01 `;
    let due: string | undefined;
    while (due === undefined) {
      const line = (await readFile('/proc/net/tcp', 'latin1')).split('\n').find((one) => one.includes(remote));
      expect(line).toMatch(/ 0[12]:/);
      due = / 02:([0-9A-F]{8}) /.exec(line ?? '')?.[1];
    }
    expect(Number.parseInt(due, 16)).toBeLessThanOrEqual(6000);
    expect(transport.destroyed).toBe(false);
  });

  const connected = async () => {
    const arrived = gate<Transport>();
    const terms = serverTerms();
    const listening = serveTls({ terms: () => terms })({ arrived: arrived.open, failed: arrived.refuse });
    await listening.listen({ host: LOCAL, port: 0 });
    const { port } = listening;
    const { transport } = await connectTls(clientTerms)({ host: LOCAL, port, signal: never });
    const other = await arrived.passed;
    atEnd(async () => {
      transport.destroy();
      other.destroy();
      await listening.close();
    });
    return { transport, port };
  };
});
