/** A server by hand that answers everything, but for what a test wants otherwise. */
import { BODIES, OK } from './wire.js';
import type { Name, RawPeer, Seen } from './wire.js';

export type Answers = Partial<Record<Name, (peer: RawPeer, seen: Seen) => void | Promise<void>>>;

export const data = (peer: RawPeer, text: string): Buffer => peer.entity('DTF', Buffer.from(text));

const DEFAULTS: Answers = {
  CONNECT: (peer) => {
    peer.send('ACONNECT', BODIES.ACONNECT);
  },
  CREATE: (peer) => {
    peer.send('ACK(CREATE)', BODIES['ACK(CREATE)']);
  },
  SELECT: (peer) => {
    peer.send('ACK(SELECT)', BODIES['ACK(SELECT)']);
  },
  WRITE: (peer) => {
    peer.send('ACK(WRITE)', BODIES['ACK(WRITE)']);
  },
  READ: (peer) => {
    peer.send('ACK(READ)', OK);
    peer.write(data(peer, 'abc'));
    peer.send('DTF.END', OK);
  },
  SYN: (peer, seen) => {
    peer.send('ACK(SYN)', seen.body);
  },
  IDT: (peer) => {
    peer.send('ACK(IDT)');
  },
  RELEASE: (peer) => {
    peer.send('RELCONF');
  },
  ABORT: (peer) => {
    peer.socket.end();
  },
};

const ACKNOWLEDGED = new Set<Name>(['ORF', 'TRANS.END', 'CRF', 'DESELECT']);

/** Answers until the connection ends. @returns the names of all that came, runs of data as one `DTF` */
export async function respond(peer: RawPeer, answers: Answers = {}, heard: Seen[] = []): Promise<Seen[]> {
  for (;;) {
    const seen = await peer.next();
    if (seen === undefined) return heard;
    heard.push(seen);
    const answer = answers[seen.name] ?? DEFAULTS[seen.name];
    if (answer !== undefined) await answer(peer, seen);
    else if (ACKNOWLEDGED.has(seen.name)) peer.send(`ACK(${seen.name})` as Name, OK);
  }
}

/** The names of what came, data left out. */
export const namesOf = (heard: readonly Seen[]): Name[] =>
  heard.map(({ name }) => name).filter((name) => !name.startsWith('DTF') || name === 'DTF.END');
