/** Tapes of one side of a session, FPDU by FPDU: recorded sessions of other products, and sessions of our own two ends. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checksum, RequesterSession, ServerSession, type CompressionMode, type Dialect } from '@pesit-node/protocol';
import { Chance } from '@pesit-node/protocol/testing';
import { RequesterAutopilot, ServerAutopilot, type Manners, type Task } from './autopilot.js';

export interface Tape {
  readonly name: string;
  readonly dialect: Dialect;
  readonly crc: boolean;
  /** Who reads it. */
  readonly to: 'server' | 'requester';
  /** Task of the requester, when the tape is for one. */
  readonly tasks: readonly Task[];
  /** How the reader of the tape behaved, or may. */
  readonly manners: Manners;
  /** Without what is before and behind them on the wire. */
  readonly fpdus: readonly Buffer[];
}

const HEADER = 6;
const CRC = 2;
const CONNECTION_ID = { requester: 5, server: 9 } as const;

/** FPDUs that may share an entity (§4.5). */
const SHARING: ReadonlySet<string> = new Set(['0000', '0041', '0040', '0042', 'c004', 'c003']);

/** FPDUs of data that follow each other, several in one entity where chance wants it. */
export const concatenated = (fpdus: readonly Buffer[], { dialect, crc }: Tape, chance: Chance): Buffer[] => {
  if (dialect === 'raw' || crc) return fpdus.map((fpdu) => onTheWire([fpdu], dialect, crc));
  const entities: Buffer[][] = [];
  let before = '';
  for (const fpdu of fpdus) {
    const codes = fpdu.toString('hex', 2, 4);
    const open = entities.at(-1);
    if (open !== undefined && SHARING.has(before) && SHARING.has(codes) && chance.below(3) > 0) open.push(fpdu);
    else entities.push([fpdu]);
    before = codes;
  }
  return entities.map((entity) => {
    const bytes = Buffer.concat(entity);
    const prefix = Buffer.alloc(2);
    prefix.writeUInt16BE(bytes.length & 0xffff);
    return Buffer.concat([prefix, bytes]);
  });
};

/** The bytes of FPDUs on the wire, one FPDU an entity. */
export const onTheWire = (fpdus: readonly Buffer[], dialect: Dialect, crc: boolean): Buffer => {
  const pieces: Buffer[] = [];
  for (const fpdu of fpdus) {
    const trailer = Buffer.alloc(crc ? CRC : 0);
    if (crc) trailer.writeUInt16BE(checksum([fpdu]));
    if (dialect === 'length-prefixed') {
      const prefix = Buffer.alloc(2);
      prefix.writeUInt16BE((fpdu.length + trailer.length) & 0xffff);
      pieces.push(prefix);
    }
    pieces.push(fpdu, trailer);
  }
  return Buffer.concat(pieces);
};

/** The FPDUs in bytes of a dialect. */
const split = (bytes: Buffer, dialect: Dialect, crc: boolean): Buffer[] => {
  const fpdus: Buffer[] = [];
  let entityEnd = 0;
  for (let at = 0; at < bytes.length;) {
    if (dialect === 'length-prefixed' && at === entityEnd) {
      entityEnd = at + 2 + bytes.readUInt16BE(at);
      at += 2;
    }
    const end = at + bytes.readUInt16BE(at);
    fpdus.push(Buffer.from(bytes.subarray(at, end)));
    at = end + (crc ? CRC : 0);
  }
  return fpdus;
};

/**
 * The two recordings of Connect:Express lack the contents of groups and data: without any, a session ends there. They get
 * the least that is legal.
 */
const completed = (fpdu: Buffer): Buffer => {
  const codes = fpdu.toString('hex', 2, 4);
  const withBody = (body: Buffer): Buffer => {
    const whole = Buffer.concat([fpdu.subarray(0, HEADER), body]);
    whole.writeUInt16BE(whole.length, 0);
    return whole;
  };
  if (codes.startsWith('00') && fpdu.length === HEADER) {
    const articles = fpdu[5] as number;
    return withBody(articles > 1 ? Buffer.from('0004aabbccdd'.repeat(articles), 'hex') : Buffer.alloc(24, 0x55));
  }
  return codes === 'c011' || codes === 'c012' ? withBody(filledGroups(fpdu.subarray(HEADER))) : fpdu;
};

/** PGI 9, 30 and 40 with the least they need. */
const LEAST: ReadonlyMap<number, Buffer> = new Map([
  [9, Buffer.from('09090b01000c0446494c45', 'hex')],
  [30, Buffer.from('1e071f018020020400', 'hex')],
  [40, Buffer.from('28042a020400', 'hex')],
]);

const filledGroups = (body: Buffer): Buffer => {
  const parameters: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const end = at + 2 + (body[at + 1] as number);
    const least = body[at + 1] === 0 ? LEAST.get(body[at] as number) : undefined;
    parameters.push(least ?? body.subarray(at, end));
    at = end;
  }
  return Buffer.concat(parameters);
};

/** The recordings in a directory; both sides of each. */
export const recordedTapes = (directory: string): Tape[] =>
  readdirSync(directory)
    .filter((name) => name.endsWith('.raw'))
    .flatMap((name) => {
      const file = readFileSync(join(directory, name));
      const sides: [Buffer[], Buffer[]] = [[], []];
      for (let at = 0; at < file.length;) {
        const end = at + 3 + file.readUInt16BE(at + 1);
        const entity = file.subarray(at + 3, end);
        for (let from = 0; from < entity.length;) {
          const to = from + entity.readUInt16BE(from);
          (file[at] === 0 ? sides[0] : sides[1]).push(completed(entity.subarray(from, to)));
          from = to;
        }
        at = end;
      }
      const tasks: Task[] = name.includes('message') ? ['message'] : name.includes('pull') ? ['read'] : ['write'];
      const manners = mannersOf(new Chance(1), 0);
      const common = { name, dialect: 'length-prefixed', crc: false, tasks, manners } as const;
      return [
        { ...common, to: 'server', fpdus: sides[0] },
        { ...common, to: 'requester', fpdus: sides[1] },
      ] as const;
    });

/** How a session goes, by chance. */
export const mannersOf = (chance: Chance, mood: number): Manners => {
  const short = chance.pick([1, 40, 300]);
  return {
    chance,
    mood,
    entitySize: chance.pick([64, 256, 4096, 65_535]),
    intervalKb: chance.pick([0, 1, 1, 4]),
    window: chance.pick([0, 1, 2, 16]),
    resynchronisation: chance.below(4) > 0,
    compression: chance.pick<CompressionMode | 0>([0, 0, 1, 2, 3]),
    articles: Array.from({ length: chance.below(14) }, () => chance.between(1, chance.pick([short, short, 1500]))),
  };
};

/** A session of our own two ends, and what each has sent. */
export const generatedTapes = (chance: Chance, name: string): Tape[] => {
  const dialect = chance.pick<Dialect>(['length-prefixed', 'raw']);
  const crc = chance.below(3) === 0;
  const tasks = Array.from({ length: chance.between(1, 2) }, () => chance.pick<Task>(['write', 'read', 'message']));
  const mood = chance.pick([0, 0, 5]);
  const manners = { requester: mannersOf(chance, mood), server: mannersOf(chance, mood) };
  const requester = new RequesterAutopilot(
    new RequesterSession({ dialect, now: 0, connectionId: CONNECTION_ID.requester }, crc),
    manners.requester,
    tasks,
  );
  const server = new ServerAutopilot(
    new ServerSession({ dialect, now: 0, connectionId: CONNECTION_ID.server }),
    manners.server,
  );
  const sent: Record<'requester' | 'server', Buffer[]> = { requester: [], server: [] };
  requester.connect();
  // Each side says all it has to say before the other hears it; nobody has more than a few hundred turns.
  for (let turn = 0; turn < 1000; turn++) {
    const [from, to, side] =
      turn % 2 === 0 ? [requester, server, 'requester' as const] : [server, requester, 'server' as const];
    from.run();
    const bytes = Buffer.concat(from.takeOutput());
    if (bytes.length === 0 && turn > 0 && server.session.phase !== 'open') break;
    sent[side].push(bytes);
    to.session.receive(Buffer.from(bytes), 0);
  }
  const fpdus = (side: 'requester' | 'server') => split(Buffer.concat(sent[side]), dialect, crc);
  return [
    { name, dialect, crc, tasks, to: 'server', manners: manners.server, fpdus: fpdus('requester') },
    { name, dialect, crc, tasks, to: 'requester', manners: manners.requester, fpdus: fpdus('server') },
  ];
};
