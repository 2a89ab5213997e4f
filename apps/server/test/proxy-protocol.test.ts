/** A listener behind a balancer: the partner's own address is in the record, and changes count at once. */
import { once } from 'node:events';
import { connect as connectSocket, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

import { afterEach, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { bytes, refusedWith, until, useNode } from './support/node.js';

const LISTENER = '/api/v1/servers/NODE1';
const TOLD = '198.51.100.23';

withDatabase((harness) => {
  const node = useNode(harness);
  const ends: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });

  /** A balancer in front of the listener that says of every partner that it comes from `TOLD`. @returns its port */
  const balancer = async (): Promise<number> => {
    const sockets = new Set<Socket>();
    const server = createServer((partner) => {
      const onward = connectSocket({ host: '127.0.0.1', port: node().port });
      onward.write(`PROXY TCP4 ${TOLD} 192.0.2.1 40000 6502\r\n`);
      for (const socket of [partner, onward]) {
        sockets.add(socket);
        socket.on('error', () => undefined);
      }
      partner.on('close', () => onward.destroy());
      onward.on('close', () => partner.destroy());
      partner.pipe(onward).pipe(partner);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ends.push(async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    });
    return (server.address() as AddressInfo).port;
  };

  const behind = (fields: Readonly<Record<string, unknown>>) =>
    node().call('put', LISTENER, { proxyProtocol: 'required', trustedProxies: ['127.0.0.0/8'], ...fields });

  describe('a listener whose balancer is trusted', () => {
    test('has the address of the partner in the record, and the file as it was sent', async () => {
      await behind({});
      const content = bytes(300_000);
      await node().send(await node().connect({ port: await balancer() }), 'IN', content);
      expect(await node().ended()).toMatchObject({ status: 'COMPLETED', remoteAddress: TOLD });
      expect((await node().received('IN'))[0]?.equals(content)).toBe(true);
    });

    test('counts the next connection by what was changed, and refuses in words who is not trusted', async () => {
      await behind({ trustedProxies: ['192.0.2.0/24'] });
      await expect(node().connect()).rejects.toMatchObject({ fault: 'transport' });
      await until(() => node().log.lines.find((line) => line.includes('127.0.0.1 is not among trustedProxies')));
      expect(await node().call('get', LISTENER)).toMatchObject({ refusedConnections: 1 });
      await behind({ proxyProtocol: 'off' });
      await node().send(await node().connect(), 'IN', bytes(10));
      expect(await node().ended()).toMatchObject({ remoteAddress: '127.0.0.1' });
    });
  });

  test('the address that the balancer says is that of allowedAddresses, not the one of the balancer', async () => {
    await behind({});
    await node().call('put', '/api/v1/config/partners/ACME', { allowedAddresses: ['127.0.0.0/8'] });
    const port = await balancer();
    await expect(node().connect({ port })).rejects.toEqual(refusedWith('3-304'));
    expect(node().log.lines.at(-1)).toContain(`ACME came from ${TOLD}, which its allowedAddresses leave out`);
    await node().call('put', '/api/v1/config/partners/ACME', { allowedAddresses: ['198.51.100.0/24'] });
    await node().connect({ port });
  });

  test('the last trusted proxy cannot be taken away while it is needed', async () => {
    await behind({});
    await expect(node().call('put', LISTENER, { trustedProxies: [] })).rejects.toThrow(
      /400 .*proxyProtocol required needs the addresses of the balancers/,
    );
  });
});
