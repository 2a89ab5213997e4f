import { afterEach, describe, expect, test } from '@jest/globals';
import { TransportError } from '../transport.js';
import type { Connect, Serve, Transport, TransportServer } from '../transport.js';
import { Recorder } from './recorder.js';

export interface NetworkUnderTest {
  readonly connect: Connect;
  readonly serve: Serve;
  readonly host: string;
}

const never = (): AbortSignal => new AbortController().signal;

/** Everything that a `Connect` and its `Serve` promise. @param open a network, for one test */
export const describeNetwork = (kind: string, open: () => NetworkUnderTest): void => {
  describe(`a network: ${kind}`, () => {
    const servers: TransportServer[] = [];
    const transports: Transport[] = [];

    afterEach(async () => {
      for (const transport of transports.splice(0)) transport.destroy();
      for (const server of servers.splice(0)) await server.close();
    });

    /** A server on a port of its own, what arrives there, and a way to it. */
    async function serving(onArrived: (transport: Transport) => void = () => undefined) {
      const network = open();
      const arrived: Transport[] = [];
      const failed: string[] = [];
      let wake = (): void => undefined;
      const server = network.serve({
        arrived: (transport) => {
          transports.push(transport);
          arrived.push(transport);
          onArrived(transport);
          wake();
        },
        failed: (_, reason) => failed.push(reason),
      });
      const until = async (count: number): Promise<void> => {
        while (arrived.length < count) await new Promise<void>((resolve) => (wake = resolve));
      };
      await server.listen({ host: network.host, port: 0 });
      servers.push(server);
      const target = { host: network.host, port: server.port };
      const connect = async (signal = never()) => {
        const connected = await network.connect({ ...target, signal });
        transports.push(connected.transport);
        return connected;
      };
      return { network, server, arrived, failed, until, target, connect };
    }

    test('one connects, the other arrives: both ends are paused, and know each other', async () => {
      const { arrived, connect, until, failed } = await serving();
      const { transport, roundTripMs } = await connect();
      await until(1);
      expect(roundTripMs).toBeGreaterThanOrEqual(0);
      const other = arrived[0] as Transport;
      const [here, there] = [new Recorder(), new Recorder()];
      transport.attach(here);
      other.attach(there);
      await new Promise<void>((resolve) => {
        transport.write([Buffer.from('up')], resolve);
      });
      await new Promise<void>((resolve) => {
        other.write([Buffer.from('down')], resolve);
      });
      expect([here.count, there.count]).toEqual([0, 0]);
      transport.resume();
      other.resume();
      await Promise.all([here.until(() => here.count === 4), there.until(() => there.count === 2)]);
      expect([here.bytes.toString(), there.bytes.toString()]).toEqual(['down', 'up']);
      expect(failed).toEqual([]);
    });

    test('a port without a server: an error in words', async () => {
      const { network, server, target } = await serving();
      await server.close();
      const failing = network.connect({ ...target, signal: never() });
      await expect(failing).rejects.toBeInstanceOf(TransportError);
      await expect(failing).rejects.toMatchObject({ phase: 'connection', cause: { code: 'ECONNREFUSED' } });
      await expect(failing).rejects.toThrow(/^nobody listens there/);
    });

    test('a signal that was aborted, or is while it connects: its reason, and nothing stays behind', async () => {
      let hear = (): void => undefined;
      const heard = new Promise<void>((resolve) => (hear = resolve));
      const { connect, arrived } = await serving((transport) => {
        transport.attach({ received: hear, ended: () => undefined, closed: () => undefined });
        transport.resume();
      });
      const reason = new Error('nobody wants it');
      await expect(connect(AbortSignal.abort(reason))).rejects.toBe(reason);
      const cancel = new AbortController();
      const failing = connect(cancel.signal);
      cancel.abort(reason);
      await expect(failing).rejects.toBe(reason);
      // Whether it had got as far as the port or not: what comes behind it arrives, and it is closed there.
      const next = await connect();
      next.transport.write([Buffer.from('next')]);
      await heard;
      await Promise.all(arrived.slice(0, -1).map(({ closed }) => closed));
      expect(arrived.at(-1)?.destroyed).toBe(false);
    });

    test('a signal that is aborted later does nothing', async () => {
      const { connect } = await serving();
      const cancel = new AbortController();
      const { transport } = await connect(cancel.signal);
      cancel.abort();
      expect(transport.destroyed).toBe(false);
    });

    test('a port that is taken: EADDRINUSE', async () => {
      const { network, target } = await serving();
      const second = network.serve({ arrived: () => undefined, failed: () => undefined });
      await expect(second.listen(target)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    });

    test('a server that closes gives up the port; connections that have arrived continue, and it waits for them', async () => {
      const { server, arrived, connect, until } = await serving();
      const { transport } = await connect();
      await until(1);
      let closed = false;
      const closing = server.close().then(() => (closed = true));
      await expect(connect()).rejects.toBeInstanceOf(TransportError);
      const reader = new Recorder();
      transport.attach(reader);
      transport.resume();
      arrived[0]?.write([Buffer.from('still here')]);
      await reader.until(() => reader.count === 10);
      expect(closed).toBe(false);
      transport.destroy();
      arrived[0]?.resume();
      await closing;
    });
  });
};
