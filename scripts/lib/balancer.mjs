/** A small TCP balancer, as a Kubernetes service is one: each connection goes to the next pod that takes it. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { atEnd } from './process.mjs';

const HOST = '127.0.0.1';
/** A pod that is there answers at once; one whose host has gone never does. */
const CONNECT_MS = 2000;

/** Resolves with the connection. */
function dial({ host, port }) {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: CONNECT_MS });
    socket.once('connect', () => {
      socket.setTimeout(0);
      resolve(socket);
    });
    socket.once('timeout', () => socket.destroy(new Error('does not answer')));
    socket.once('error', reject);
  });
}

/** Whether the pod takes connections. */
export async function takesConnections(target) {
  try {
    (await dial(target)).destroy();
    return true;
  } catch {
    return false;
  }
}

/** Listens on `port` of the loopback address until the command ends. @param targets `{ name, host, port }` */
export async function startBalancer(port, targets) {
  const sockets = new Set();
  /** Done when one connection has brought so many bytes to a pod. */
  let strike;
  let turn = 0;
  const upstream = async () => {
    for (let tried = 0; tried < targets.length; tried++) {
      const target = targets[turn++ % targets.length];
      try {
        return { target, socket: await dial(target) };
      } catch {
        // The next one.
      }
    }
    return undefined;
  };
  const server = createServer({ pauseOnConnect: true }, async (near) => {
    near.on('error', () => undefined);
    sockets.add(near);
    near.once('close', () => sockets.delete(near));
    const found = await upstream();
    if (found === undefined || near.destroyed) {
      found?.socket.destroy();
      near.destroy();
      return;
    }
    const { target, socket: far } = found;
    far.on('error', () => near.destroy());
    far.once('close', () => near.destroy());
    near.once('close', () => far.destroy());
    let bytes = 0;
    near.on('data', (chunk) => {
      bytes += chunk.length;
      if (strike === undefined || bytes < strike.bytes) return;
      const { act } = strike;
      strike = undefined;
      act(target);
    });
    near.pipe(far);
    far.pipe(near);
  });
  server.listen(port, HOST);
  await once(server, 'listening');
  atEnd(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    port: server.address().port,
    /** Calls `act(target)` once, when one connection has brought so many bytes to a pod. */
    when: (bytes, act) => (strike = { bytes, act }),
  };
}
