/** The yardstick: what plain Node moves from file to socket to file, and what the disk alone takes. */
import { fork } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Measurement } from './figures.js';
import type { Papers } from './papers.js';
import type { PeerMessage } from './raw-peer.js';

const PEER = fileURLToPath(new URL('raw-peer.js', import.meta.url));

type Figures = Extract<PeerMessage, { readonly seconds: number }>;

interface Peer {
  readonly port: Promise<number>;
  readonly figures: Promise<Figures>;
  /** Ends it where it stands. */
  readonly kill: () => void;
}

const startPeer = (args: readonly string[], papers?: Papers): Peer => {
  const env = { ...process.env, ...(papers === undefined ? {} : { BENCH_PAPERS: JSON.stringify(papers) }) };
  const child = fork(PEER, args, { stdio: ['ignore', 'inherit', 'pipe', 'ipc'], env });
  let complaint = '';
  child.stderr?.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
  const ended = new Promise<never>((_, reject) => {
    child.once('close', (code) =>
      reject(new Error(`raw copy: "${args.join(' ')}" ended with exit code ${String(code)}\n${complaint}`)),
    );
  });
  const told = <T>(pick: (message: PeerMessage) => T | undefined): Promise<T> => {
    const message = new Promise<T>((resolve) => {
      child.on('message', (received: PeerMessage) => {
        const value = pick(received);
        if (value !== undefined) resolve(value);
      });
    });
    const result = Promise.race([message, ended]);
    // A caller that waits for it sees the failure; nobody waits for the port of a receiver.
    result.catch(() => undefined);
    return result;
  };
  return {
    port: told((message) => ('port' in message ? message.port : undefined)),
    figures: told((message) => ('seconds' in message ? message : undefined)),
    kill: () => child.kill('SIGKILL'),
  };
};

/**
 * Copies `source` to the new file `target` through a socket between two processes; flushed at the end.
 * @param hashing `hashed`: both sides compute SHA-256
 * @param papers with them over TLS
 */
export const rawCopy = async (
  source: string,
  target: string,
  hashing: 'plain' | 'hashed' = 'plain',
  papers?: Papers,
): Promise<Measurement> => {
  const sender = startPeer(['send', source, '', hashing], papers);
  let receiver: Peer | undefined;
  let figures: readonly [Figures, Figures];
  try {
    receiver = startPeer(['receive', target, String(await sender.port), hashing], papers);
    figures = await Promise.all([sender.figures, receiver.figures]);
  } catch (error) {
    // The other side would wait for ever.
    sender.kill();
    receiver?.kill();
    throw error;
  }
  const [sent, received] = figures;
  const { size } = await stat(source);
  const { size: arrived } = await stat(target);
  if (arrived !== size) throw new Error(`raw copy: sent ${size} bytes, ${arrived} arrived`);
  return {
    seconds: sent.seconds,
    bytes: size,
    transfers: 1,
    processes: [
      { name: 'sender', cpuSeconds: sent.cpuSeconds, peakRssMb: sent.peakRssMb },
      { name: 'receiver', cpuSeconds: received.cpuSeconds, peakRssMb: received.peakRssMb },
    ],
  };
};

/** Writes `size` bytes to the new file `target` and flushes them. */
export const writeAndFlush = async (target: string, size: number): Promise<Measurement> => {
  const { seconds, cpuSeconds, peakRssMb } = await startPeer(['write', target, String(size)]).figures;
  return { seconds, bytes: size, transfers: 1, processes: [{ name: 'writer', cpuSeconds, peakRssMb }] };
};
