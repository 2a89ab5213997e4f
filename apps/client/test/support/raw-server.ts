/** A PeSIT server of literal bytes, for what no decent server does. Length-prefixed; answers one FPDU with one. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** What arrived: `name` by phase and type, the FPDU in hex. */
export interface Arrived {
  readonly name: string;
  readonly fpdu: Buffer;
  /** In which entity of its session it came, from 1. */
  readonly entity: number;
}

const NAMES: Readonly<Record<string, string>> = {
  '4020': 'CONNECT',
  '4023': 'RELEASE',
  '4025': 'ABORT',
  c011: 'CREATE',
  c012: 'SELECT',
  c013: 'DESELECT',
  c014: 'ORF',
  c015: 'CRF',
  c001: 'READ',
  c002: 'WRITE',
  c008: 'TRANS.END',
  c003: 'SYN',
  c006: 'IDT',
  c004: 'DTF.END',
  '0000': 'DTF',
};

const SUCCESS = '0203000000';
/** Phase and type, then the body; the identifiers are filled in. */
const fpdu = (code: string, body: string, requesterId: number, source = 0): Buffer => {
  const content = Buffer.from(body, 'hex');
  const header = Buffer.from([0, 0, 0, 0, requesterId, source]);
  header.writeUInt16BE(6 + content.length);
  header.write(code, 2, 'hex');
  const entity = Buffer.from([0, 0]);
  entity.writeUInt16BE(6 + content.length);
  return Buffer.concat([entity, header, content]);
};

/** `code body`, `close` to destroy the connection, `pause` to read no more of it, '' to stay silent; several are sent one after the other. */
export type Script = Readonly<Record<string, string | readonly string[]>>;

/** A server that does everything right: no sync points, entities of 4096, a file of the two articles `ab` and `c`. */
export const GOOD: Script = {
  CONNECT: '4021 060102' + '0703000000',
  CREATE: `c030 ${SUCCESS}19021000`,
  SELECT: `c031 ${SUCCESS}` + '09060b01000c0158' + '0d0105' + '19021000' + '1e071f0180200203e8' + '28062901002a0101',
  ORF: `c033 ${SUCCESS}15020000`,
  WRITE: `c036 ${SUCCESS}120100`,
  READ: [`c035 ${SUCCESS}`, '0000 6162', '0000 63', `c004 ${SUCCESS}`],
  'TRANS.END': `c037 ${SUCCESS}`,
  CRF: `c034 ${SUCCESS}`,
  DESELECT: `c032 ${SUCCESS}`,
  RELEASE: '4024 ',
  IDT: 'c03a ',
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
      const said = script[name] ?? '';
      for (const one of typeof said === 'string' ? [said] : said) {
        const [code = '', body = ''] = one.split(' ');
        if (code === 'close') socket.destroy();
        else if (code === 'pause') socket.pause();
        else if (code === 'raw') socket.write(Buffer.from(body, 'hex'));
        else if (code !== '') socket.write(fpdu(code, body, requesterId, code === '4021' ? 9 : 0));
      }
    };
    socket.on('data', (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
        let entity = rest.subarray(2, 2 + rest.readUInt16BE(0));
        rest = rest.subarray(2 + entity.length);
        entities += 1;
        while (entity.length >= 6) {
          const one = entity.subarray(0, entity.readUInt16BE(0));
          entity = entity.subarray(one.length);
          const name = NAMES[one.toString('hex', 2, 4)] ?? `? ${one.toString('hex', 2, 4)}`;
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
