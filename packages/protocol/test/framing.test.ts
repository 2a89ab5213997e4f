/** FPDUs out of a stream of bytes: every split, both dialects, with and without CRC, and what does not fit. */
import { describe, expect, test } from '@jest/globals';
import { FpduReader } from '../src/index.js';
import type { Dialect } from '../src/index.js';
import { Chance, MINIMAL, NAMES, entity, fpdu, hex, minimal, pi, text, withCrc } from '../src/testing/index.js';
import { failure } from './support/failure.js';

const DIALECTS: readonly Dialect[] = ['length-prefixed', 'raw'];

interface Flat {
  readonly name: string;
  readonly destination: number;
  readonly source: number;
  readonly body: string;
}

function drain(reader: FpduReader, into: Flat[]): void {
  for (let raw = reader.next(); raw !== undefined; raw = reader.next()) {
    const body = Buffer.concat(raw.body);
    expect(raw.length).toBe(body.length + 6);
    into.push({ name: raw.name, destination: raw.destination, source: raw.source, body: body.toString('hex') });
  }
}

function readAll(reader: FpduReader, chunks: Iterable<Buffer>): Flat[] {
  const out: Flat[] = [];
  for (const chunk of chunks) {
    // A socket reuses nothing, but the reader must not depend on the chunk being the caller's only copy.
    reader.push(Buffer.from(chunk));
    drain(reader, out);
  }
  return out;
}

const MESSAGES = NAMES.map((name) => {
  const bytes = minimal(name, 7, name.startsWith('DTF') ? 0 : 9);
  const source = name.startsWith('DTF') ? 0 : 9;
  return { name, bytes, flat: { name, destination: 7, source, body: bytes.subarray(6).toString('hex') } };
});

describe.each(DIALECTS)('%s', (dialect) => {
  describe.each([false, true])('CRC %s', (crc) => {
    const seal = (bytes: Buffer): Buffer => (crc ? withCrc(bytes) : bytes);
    const wire = (bytes: Buffer): Buffer => (dialect === 'raw' ? seal(bytes) : entity(seal(bytes)));

    test.each(MESSAGES)('$name at every split point and byte by byte', ({ bytes, flat }) => {
      const sent = wire(bytes);
      for (let at = 0; at <= sent.length; at++) {
        const reader = new FpduReader(dialect, crc);
        expect(readAll(reader, [sent.subarray(0, at), sent.subarray(at)])).toEqual([flat]);
        expect(reader.pending).toBe(0);
      }
      const single = Array.from(sent, (byte) => Buffer.from([byte]));
      expect(readAll(new FpduReader(dialect, crc), single)).toEqual([flat]);
    });

    test.each(MESSAGES)('$name with the beginning of another behind it', ({ bytes, flat }) => {
      const next = wire(minimal('IDT', 7, 9));
      for (let extra = 0; extra < next.length; extra++) {
        const reader = new FpduReader(dialect, crc);
        expect(readAll(reader, [wire(bytes), next.subarray(0, extra)])).toEqual([flat]);
        expect(readAll(reader, [next.subarray(extra)])).toMatchObject([{ name: 'IDT' }]);
      }
    });

    test('all of them in one go, and in random pieces', () => {
      const all = Buffer.concat(MESSAGES.map(({ bytes }) => wire(bytes)));
      const flats = MESSAGES.map(({ flat }) => flat);
      expect(readAll(new FpduReader(dialect, crc), [all])).toEqual(flats);
      for (const longest of [2, 5, 40, 700]) {
        const chance = new Chance(longest);
        const reader = new FpduReader(dialect, crc);
        expect(readAll(reader, chance.split(all, longest))).toEqual(flats);
        expect(reader.pending).toBe(0);
      }
    });

    test('the longest FPDU, in pieces of every kind', () => {
      const chance = new Chance(4);
      // A CRC has to fit the entity too.
      const body = chance.bytes(65_535 - 6 - 2);
      const bytes = fpdu('DTF', 7, 0, body);
      const sent = Buffer.concat([wire(bytes), wire(bytes)]);
      for (const longest of [60, 511, 513, 1400, 65_536]) {
        const read = readAll(new FpduReader(dialect, crc), chance.split(sent, longest));
        expect(read.map((flat) => flat.body === body.toString('hex'))).toEqual([true, true]);
      }
    });
  });

  test('a body that came in one piece is a view of it', () => {
    const chance = new Chance(1);
    const article = chance.bytes(2000);
    const bytes = fpdu('DTF', 7, 0, article);
    const sent = dialect === 'raw' ? bytes : entity(bytes);
    const reader = new FpduReader(dialect, false);
    reader.push(sent);
    const [body] = reader.next()!.body;
    sent[100]! ^= 0xff;
    expect(body!.buffer).toBe(sent.buffer);
    expect(body).toHaveLength(2000);
    expect(body![100 - (sent.length - 2000)]).toBe(sent[100]);
  });

  test('views stay as they are while more comes in', () => {
    const reader = new FpduReader(dialect, false);
    const kept: { body: readonly Buffer[]; expected: string }[] = [];
    const chance = new Chance(8);
    const bytes = Buffer.concat(
      Array.from({ length: 2000 }, (_, i) => {
        const one = fpdu('DTF', 7, 0, text(`article ${i} ${'x'.repeat(chance.below(60))}`));
        return dialect === 'raw' ? one : entity(one);
      }),
    );
    const expected: string[] = [];
    for (let offset = 0; offset < bytes.length;) {
      const start = dialect === 'raw' ? offset : offset + 2;
      const end = start + bytes.readUInt16BE(start);
      expected.push(bytes.toString('latin1', start + 6, end));
      offset = end;
    }
    for (const chunk of chance.split(bytes, 90)) {
      reader.push(Buffer.from(chunk));
      for (let raw = reader.next(); raw !== undefined; raw = reader.next()) {
        kept.push({ body: raw.body, expected: expected[kept.length]! });
      }
    }
    expect(kept).toHaveLength(2000);
    for (const { body, expected: article } of kept) expect(Buffer.concat(body).toString('latin1')).toBe(article);
  });

  test.each([0, 1, 5])('an FPDU of %i bytes is refused', (length) => {
    const header = Buffer.concat([Buffer.from([0, length]), hex('c0030700')]);
    const wrong = failure(() => readAll(new FpduReader(dialect, false), [dialect === 'raw' ? header : entity(header)]));
    expect(wrong).toMatchObject({ fault: 'remote', diagnostic: '3-311', got: `a length of ${length}` });
    expect(wrong.message).toContain('SYN');
  });

  test.each(['c007', 'c03c', '4026', '0001', '0043', 'ff00', '8020'])('phase and type %s are unknown', (codes) => {
    const bytes = Buffer.concat([hex('0006'), hex(codes), hex('0700')]);
    const wrong = failure(() => readAll(new FpduReader(dialect, false), [dialect === 'raw' ? bytes : entity(bytes)]));
    expect(wrong).toMatchObject({ fault: 'remote', diagnostic: '3-311' });
    expect(wrong.got).toContain(`0x${codes.slice(0, 2)}`);
  });

  test('a wrong CRC is 3-310 and says which FPDU', () => {
    const sealed = withCrc(minimal('SYN', 7, 0));
    sealed[sealed.length - 1]! ^= 1;
    const wrong = failure(() => readAll(new FpduReader(dialect, true), [dialect === 'raw' ? sealed : entity(sealed)]));
    expect(wrong).toMatchObject({ fault: 'remote', diagnostic: '3-310' });
    expect(wrong.message).toContain('SYN');
  });

  test('one bit changed anywhere in an FPDU with CRC is found', () => {
    const sealed = withCrc(minimal('CREATE', 7, 0));
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const damaged = Buffer.from(sealed);
      damaged[bit >> 3]! ^= 1 << (bit & 7);
      const reader = new FpduReader(dialect, true);
      const action = (): Flat[] => readAll(reader, [dialect === 'raw' ? damaged : entity(damaged)]);
      // A longer length in the raw dialect waits for bytes that never come: Tp ends that.
      const waits = dialect === 'raw' && damaged.readUInt16BE(0) > sealed.length - 2;
      if (waits) expect(action()).toEqual([]);
      else expect(['3-310', '3-311']).toContain(failure(action).diagnostic);
    }
  });

  test('a CONNECT shows whether there is a CRC', () => {
    const plain = minimal('CONNECT', 0, 9);
    const asking = fpdu('CONNECT', 0, 9, '010101', MINIMAL.CONNECT);
    const declining = fpdu('CONNECT', 0, 9, '010100', MINIMAL.CONNECT);
    for (const [connect, crc] of [
      [plain, false],
      [asking, true],
      [declining, false],
    ] as const) {
      const seal = (bytes: Buffer): Buffer => (crc ? withCrc(bytes) : bytes);
      const wire = (bytes: Buffer): Buffer => (dialect === 'raw' ? seal(bytes) : entity(seal(bytes)));
      const sent = Buffer.concat([wire(connect), wire(minimal('SYN', 7, 0))]);
      for (let at = 0; at <= sent.length; at++) {
        const reader = new FpduReader(dialect);
        expect(reader.crc).toBe(false);
        expect(readAll(reader, [sent.subarray(0, at), sent.subarray(at)]).map(({ name }) => name)).toEqual([
          'CONNECT',
          'SYN',
        ]);
        expect(reader.crc).toBe(crc);
      }
    }
  });

  test('a peer that sends byte by byte costs no more than its bytes', () => {
    const reader = new FpduReader(dialect, false);
    const bytes = fpdu('DTF', 7, 0, Buffer.alloc(40_000, 1));
    const sent = dialect === 'raw' ? bytes : entity(bytes);
    for (let i = 0; i < sent.length - 1; i++) {
      reader.push(sent.subarray(i, i + 1));
      if (i % 1000 === 0) expect(reader.next()).toBeUndefined();
    }
    reader.push(sent.subarray(sent.length - 1));
    const raw = reader.next()!;
    expect(raw.body.length).toBeLessThanOrEqual(12);
    expect(Buffer.concat(raw.body).equals(Buffer.alloc(40_000, 1))).toBe(true);
    // Memory behind the views: a few gathering buffers, not one a byte.
    const memory = new Set(raw.body.map((piece) => piece.buffer));
    expect(memory.size).toBeLessThanOrEqual(12);
  });

  test('FPDUs that come whole cost no memory of the reader, and short pieces behind the first share a little', () => {
    const one = dialect === 'raw' ? fpdu('DTF', 7, 0, 'aabb') : entity(fpdu('DTF', 7, 0, 'aabb'));
    const reader = new FpduReader(dialect, false);
    for (let i = 0; i < 3; i++) {
      const pushed = Buffer.from(new Uint8Array(one).buffer);
      reader.push(pushed);
      expect(reader.next()!.body[0]!.buffer).toBe(pushed.buffer);
    }
    const cut = one.length - 1;
    const [first, last] = [one.subarray(0, cut), one.subarray(cut)].map((part) =>
      Buffer.from(new Uint8Array(part).buffer),
    );
    reader.push(first!);
    reader.push(last!);
    const [kept, gathered] = reader.next()!.body;
    expect(kept!.buffer).toBe(first!.buffer);
    expect(gathered!.buffer).not.toBe(last!.buffer);
    expect(gathered!.buffer.byteLength).toBeLessThanOrEqual(Buffer.poolSize);
  });
});

describe('entities', () => {
  test('concatenated data FPDUs in one entity', () => {
    const sent = entity(
      fpdu('DTF', 7, 2, '0001aa0001bb'),
      minimal('SYN', 7, 0),
      minimal('DTFDA', 7, 0),
      minimal('DTFFA', 7, 0),
      minimal('DTF.END', 7, 0),
    );
    for (let at = 0; at <= sent.length; at++) {
      const read = readAll(new FpduReader('length-prefixed', false), [sent.subarray(0, at), sent.subarray(at)]);
      expect(read.map(({ name }) => name)).toEqual(['DTF', 'SYN', 'DTFDA', 'DTFFA', 'DTF.END']);
    }
  });

  test.each([0, 1, 5])('an entity of %i bytes is refused', (length) => {
    const wrong = failure(() => readAll(new FpduReader('length-prefixed', false), [Buffer.from([0, length])]));
    expect(wrong).toMatchObject({ fault: 'remote', diagnostic: '3-311' });
  });

  test('an FPDU longer than its entity is refused before its bytes come', () => {
    const bytes = minimal('DTF', 7, 0);
    const wrong = failure(() =>
      readAll(new FpduReader('length-prefixed', false), [Buffer.concat([hex('0009'), bytes.subarray(0, 4)])]),
    );
    expect(wrong).toMatchObject({ diagnostic: '3-311', expected: 'at most the 9 bytes left in its entity' });
  });

  test('the second FPDU of an entity must end in it too', () => {
    const sent = Buffer.concat([hex('0012'), minimal('SYN', 7, 0), minimal('DTF', 7, 0)]);
    expect(failure(() => readAll(new FpduReader('length-prefixed', false), [sent])).diagnostic).toBe('3-311');
  });

  test.each([1, 3, 5])('%i bytes behind the last FPDU of an entity are refused at once', (extra) => {
    const sent = entity(minimal('SYN', 7, 0), Buffer.alloc(extra));
    const reader = new FpduReader('length-prefixed', false);
    reader.push(sent);
    expect(reader.next()?.name).toBe('SYN');
    expect(failure(() => reader.next())).toMatchObject({ fault: 'remote', diagnostic: '3-311' });
  });

  test('a CRC is missing: the entity is too short for it', () => {
    const wrong = failure(() => readAll(new FpduReader('length-prefixed', true), [entity(minimal('ACONNECT', 7, 9))]));
    expect(wrong.diagnostic).toBe('3-315');
    expect(wrong.message).toContain('without a CRC although PI 1 asked for one');
  });

  test('a CONNECT in a group of FPDUs with a CRC each', () => {
    const connect = withCrc(fpdu('CONNECT', 0, 9, pi(1, '01'), MINIMAL.CONNECT));
    const reader = new FpduReader('length-prefixed');
    expect(readAll(reader, [entity(connect), entity(withCrc(minimal('RELEASE', 7, 9)))])).toHaveLength(2);
    expect(reader.crc).toBe(true);
  });
});
