/** A PeSIT server of literal bytes, for what no decent server does. Length-prefixed; answers one FPDU with one. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

import { CODES, entity, fpdu, hex, nameOf } from '@pesit-node/protocol/testing';
import type { Name } from '@pesit-node/protocol/testing';

/** What arrived: the whole FPDU with its name. */
export interface Arrived {
  readonly name: Name;
  readonly fpdu: Buffer;
  /** In which entity of its session it came, from 1. */
  readonly entity: number;
}

const isName = (word: string): word is Name => word in CODES;

const SUCCESS = '0203000000';

/** Of each FPDU the answer: `<name> <body in hex>`, `raw <hex>`, `close` to destroy the connection, `pause` to read no more of it, '' to stay silent; several are sent one after the other. */
export type Script = Readonly<Record<string, string | readonly string[]>>;

/** A server that does everything right: no sync points, entities of 4096, a file of the two articles `ab` and `c`. */
export const GOOD: Script = {
  CONNECT: 'ACONNECT 060102' + '0703000000',
  CREATE: `ACK(CREATE) ${SUCCESS}19021000`,
  SELECT:
    `ACK(SELECT) ${SUCCESS}` + '09060b01000c0158' + '0d0105' + '19021000' + '1e071f0180200203e8' + '28062901002a0101',
  ORF: `ACK(ORF) ${SUCCESS}15020000`,
  WRITE: `ACK(WRITE) ${SUCCESS}120100`,
  READ: [`ACK(READ) ${SUCCESS}`, 'DTF 6162', 'DTF 63', `DTF.END ${SUCCESS}`],
  'TRANS.END': `ACK(TRANS.END) ${SUCCESS}`,
  CRF: `ACK(CRF) ${SUCCESS}`,
  DESELECT: `ACK(DESELECT) ${SUCCESS}`,
  RELEASE: 'RELCONF ',
  IDT: 'ACK(IDT) ',
  ABORT: 'close',
};

/** Called for each FPDU; gives the script that counts for it. `session` counts connections from 1, `count` this FPDU in it. */
export type Choose = (name: string, session: number, count: number) => Script;

export const startRawServer = async (choose: Choose | Script) => {
  const arrived: Arrived[] = [];
  const sockets = new Set<Socket>();
  let sessions = 0;
  const server = createServer((socket) => {
    const session = ++sessions;
    const counts = new Map<string, number>();
    let requesterId = 0;
    let entities = 0;
    let rest = Buffer.alloc(0);
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    const answer = (name: string): void => {
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      const script = typeof choose === 'function' ? choose(name, session, count) : choose;
      const answers = script[name] ?? '';
      for (const one of typeof answers === 'string' ? [answers] : answers) {
        const [word = '', body = ''] = one.split(' ');
        if (word === 'close') socket.destroy();
        else if (word === 'pause') socket.pause();
        else if (word === 'raw') socket.write(hex(body));
        else if (isName(word)) socket.write(entity(fpdu(word, requesterId, word === 'ACONNECT' ? 9 : 0, body)));
        else if (word !== '') throw new Error(`no answer is written ${one}`);
      }
    };
    socket.on('data', (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
        let content = rest.subarray(2, 2 + rest.readUInt16BE(0));
        rest = rest.subarray(2 + content.length);
        entities += 1;
        while (content.length >= 6) {
          const one = content.subarray(0, content.readUInt16BE(0));
          content = content.subarray(one.length);
          const name = nameOf(one);
          if (name === 'CONNECT') requesterId = one[5] ?? 0;
          arrived.push({ name, fpdu: one, entity: entities });
          answer(name);
        }
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    arrived,
    names: (): string[] => arrived.map(({ name }) => name),
    get sessions() {
      return sessions;
    },
    close: async (): Promise<void> => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
};

export type RawServer = Awaited<ReturnType<typeof startRawServer>>;
