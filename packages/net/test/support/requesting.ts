/** A requester against a server by hand, and what it does there. */
import type { PesitRequester, RequesterOptions, TransferTotals } from '../../src/index.js';
import { connect, create, gate, rawServer, select } from './harness.js';
import { MemorySink, MemorySource } from './memory.js';
import { START } from './partner.js';
import { respond } from './responder.js';
import type { Answers } from './responder.js';
import type { RawPeer, Seen } from './wire.js';

export interface Server {
  readonly requester: PesitRequester;
  readonly heard: Seen[];
  /** The server's end. */
  readonly peer: RawPeer;
}

/** A session with a server that answers everything but `answers`. */
export async function session(answers: Answers = {}, options: Partial<RequesterOptions> = {}): Promise<Server> {
  const heard: Seen[] = [];
  const connected = gate<RawPeer>();
  const server = await rawServer(async (peer) => {
    connected.open(peer);
    await respond(peer, answers, heard);
    peer.socket.end();
  });
  const requester = await connect(server.port, {
    connect: { requester: 'PART', server: 'SERV', accessType: 2, syncPoints: { intervalKb: 1, window: 2 } },
    ...options,
  });
  return { requester, heard, peer: await connected.passed };
}

export const send = (requester: PesitRequester, more: { signal?: AbortSignal; articles?: Buffer[] } = {}) =>
  requester.sendFile({
    request: create,
    source: new MemorySource(more.articles ?? [Buffer.from('abc')]),
    ...(more.signal === undefined ? {} : { signal: more.signal }),
  });

export function receive(requester: PesitRequester, more: { sink?: MemorySink; signal?: AbortSignal } = {}) {
  const sink = more.sink ?? new MemorySink();
  return requester.receiveFile({
    request: select,
    open: () => Promise.resolve({ from: START, sink }),
    stored: () => Promise.resolve(),
    ...(more.signal === undefined ? {} : { signal: more.signal }),
  });
}

export const run = (
  requester: PesitRequester,
  direction: 'send' | 'receive',
  signal?: AbortSignal,
): Promise<TransferTotals> => {
  const more = signal === undefined ? {} : { signal };
  return direction === 'send' ? send(requester, more) : receive(requester, more);
};
