/** A session with a listener, and what it is told. */
import { listen, rawPeer } from './harness.js';
import type { TestHandler } from './partner.js';
import type { RawPeer } from './wire.js';

export async function session(
  prepare: (handler: TestHandler) => void,
): Promise<{ peer: RawPeer; handler: TestHandler }> {
  const listening = await listen({}, prepare);
  const peer = await rawPeer(listening.port);
  await peer.open();
  return { peer, handler: listening.handlers[0]! };
}
