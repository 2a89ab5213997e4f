/** The recorded sessions made whole, and the facts of each that a replay needs. */
import { fpdu, num, pi, prefixed, valueOf, dissect, entity, Chance } from '../../src/testing/index.js';
import type { Dissected } from '../../src/testing/index.js';
import { recording } from './recordings.js';
import type { RecordedEntity, RecordingName, Side } from './recordings.js';

export interface Recorded extends Dissected {
  readonly from: Side;
  /** The whole FPDU. */
  readonly bytes: Buffer;
}

/** Groups whose contents are lost, by code. Group 50 stays empty, as recorded. */
const LOST: ReadonlyMap<number, Buffer> = new Map([
  [9, pi(9, '0b0100', '0c0446494c45')],
  [30, pi(30, '1f0180', '20020400')],
  [40, pi(40, '2a020400')],
]);

/** The 1,024 articles of 1,024 bytes of the two recordings of Connect:Express, whose own bytes are lost. */
export const CX_ARTICLES: readonly Buffer[] = (() => {
  const chance = new Chance(1024);
  return Array.from({ length: 1024 }, () => chance.bytes(1024));
})();

/** An empty group at the top of a body, with contents; what was not lost stays. */
function fillGroups(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let offset = 0; offset < body.length;) {
    const length = body[offset + 1] as number;
    const end = offset + 2 + length;
    parts.push((length === 0 ? LOST.get(body[offset] as number) : undefined) ?? body.subarray(offset, end));
    offset = end;
  }
  return Buffer.concat(parts);
}

/**
 * The data of Connect:Express: four articles an entity, the fourth split between DTFDA and DTFFA although it would fit in
 * one entity, as the recording shows; a point after every 32 articles, none at the end.
 */
export function cxData(destination: number): { readonly name: 'DATA' | 'SYN'; readonly fpdus: Buffer[] }[] {
  const steps: { name: 'DATA' | 'SYN'; fpdus: Buffer[] }[] = [];
  for (let first = 0; first < CX_ARTICLES.length; first += 4) {
    if (first > 0 && first % 32 === 0) {
      steps.push({ name: 'SYN', fpdus: [fpdu('SYN', destination, 0, pi(20, num(first / 32, 1)))] });
    }
    const [a, b, c, d] = CX_ARTICLES.slice(first, first + 4) as [Buffer, Buffer, Buffer, Buffer];
    const fpdus = [
      fpdu('DTF', destination, 3, prefixed(a, b, c)),
      fpdu('DTFDA', destination, 0, d.subarray(0, 1000)),
      fpdu('DTFFA', destination, 0, d.subarray(1000)),
    ];
    steps.push({ name: 'DATA', fpdus });
  }
  return steps;
}

/** Connect:Express's push: the contents of groups 9, 30, 40 and of every DTF are missing in the recording. */
function fillPush(entities: readonly RecordedEntity[]): RecordedEntity[] {
  const data = cxData(0xe2).flatMap(({ name, fpdus }) => (name === 'DATA' ? fpdus : []));
  return entities.map((one) => {
    const [read] = dissect(entity(one.bytes), 'length-prefixed') as [Dissected];
    if (read.name === 'CREATE') {
      return { ...one, bytes: fpdu('CREATE', read.destination, read.source, fillGroups(read.body)) };
    }
    if (!read.name.startsWith('DTF') || read.name === 'DTF.END') return one;
    const filled = data.shift() as Buffer;
    // What was recorded is the header: it must be the one of the filled FPDU.
    if (filled.subarray(2, 6).compare(one.bytes.subarray(2, 6)) !== 0)
      throw new Error(`${read.name} is not as recorded`);
    return { ...one, bytes: filled };
  });
}

/**
 * Connect:Express's pull: beside the contents of group 9 the recording lacks ACK(READ), all data, the points with their
 * acknowledgements, and DTF.END. They stand here as its push has them.
 */
function fillPull(entities: readonly RecordedEntity[]): RecordedEntity[] {
  const filled: RecordedEntity[] = [];
  for (const one of entities) {
    const [read] = dissect(entity(one.bytes), 'length-prefixed') as [Dissected];
    if (read.name !== 'SELECT') filled.push(one);
    else filled.push({ ...one, bytes: fpdu('SELECT', read.destination, read.source, fillGroups(read.body)) });
    if (read.name !== 'READ') continue;
    const add = (from: Side, ...bytes: Buffer[]): void => void filled.push({ from, bytes: Buffer.concat(bytes) });
    add('server', fpdu('ACK(READ)', 0x62, 0, '0203000000'));
    for (const { name, fpdus } of cxData(0x62)) {
      // A concatenated entity for the data: the form of §4.5.
      add('server', ...fpdus);
      if (name === 'SYN')
        add('requester', fpdu('ACK(SYN)', 0x23, 0, pi(20, valueOf((fpdus[0] as Buffer).subarray(6), 20) as Buffer)));
    }
    add('server', fpdu('DTF.END', 0x62, 0, '0203000000'));
  }
  return filled;
}

export function wholeRecording(name: RecordingName): RecordedEntity[] {
  const entities = recording(name);
  if (name === 'cx-push-1mb') return fillPush(entities);
  return name === 'cx-pull-1mb' ? fillPull(entities) : entities;
}

/** The FPDUs of a recording, in order. */
export function recordedFpdus(name: RecordingName): Recorded[] {
  return wholeRecording(name).flatMap(({ from, bytes }) =>
    dissect(entity(bytes), 'length-prefixed').map((one) => ({
      ...one,
      from,
      bytes: fpdu(one.name, one.destination, one.source, one.body),
    })),
  );
}

export const isData = (one: Dissected): boolean => one.name.startsWith('DTF') && one.name !== 'DTF.END';

/** The articles in recorded data FPDUs; ID.SRC = 1 with a fitting length is prefixed. */
export function recordedArticles(fpdus: readonly Dissected[]): Buffer[] {
  const articles: Buffer[] = [];
  let open: Buffer[] = [];
  for (const { name, source, body } of fpdus.filter(isData)) {
    if (name === 'DTF' && source === 0) articles.push(body);
    else if (name === 'DTF') {
      for (let offset = 0; offset < body.length;) {
        const end = offset + 2 + body.readUInt16BE(offset);
        articles.push(body.subarray(offset + 2, end));
        offset = end;
      }
    } else {
      open.push(body);
      if (name === 'DTFFA') {
        articles.push(Buffer.concat(open));
        open = [];
      }
    }
  }
  return articles;
}
