/** What the codec takes, tolerates and refuses (pesit-e.md §2): bounds, length forms, order, groups, errors. */
import { describe, expect, test } from '@jest/globals';
import { PARAMETERS, PARAMETER_KEYS, decodeBody, encodeFpdu, negotiateVersion } from '../src/index.js';
import type { Fpdu, ParameterKey, Parameters } from '../src/index.js';
import { MINIMAL, NAMES, hex, num, pi, text } from '../src/testing/index.js';
import { decode, failure } from './support/failure.js';
import type { ControlName } from './support/failure.js';

/**
 * Where a parameter is tried and how long it may be: `[PI, FPDU, group, longest sent, longest accepted]`, by hand from
 * pesit-e.md §2. A length in brackets is exact.
 */
const LENGTHS: readonly [pi: number, name: ControlName, group: number, max: number | [number], accept?: number][] = [
  [1, 'CONNECT', 0, 1],
  [2, 'CRF', 0, [3]],
  [3, 'CONNECT', 0, 24],
  [4, 'CREATE', 9, 24],
  [5, 'CONNECT', 0, 16],
  [6, 'CONNECT', 0, 2],
  [7, 'CONNECT', 0, [3]],
  [11, 'CREATE', 9, 2],
  [12, 'CREATE', 9, 76],
  [13, 'CREATE', 0, 3],
  [14, 'SELECT', 0, 1],
  [15, 'CREATE', 0, 1],
  [16, 'CREATE', 0, 1],
  [17, 'CREATE', 0, 1],
  [18, 'READ', 0, 3],
  [19, 'IDT', 0, 1],
  [20, 'SYN', 0, 3],
  [21, 'ORF', 0, [2]],
  [22, 'CONNECT', 0, 1],
  [23, 'CONNECT', 0, 1],
  [25, 'CREATE', 0, 2],
  [26, 'CONNECT', 0, 2],
  [27, 'TRANS.END', 0, 8],
  [28, 'TRANS.END', 0, 4],
  [29, 'ABORT', 0, 254, 4096],
  [31, 'CREATE', 30, 1],
  [32, 'CREATE', 30, 2],
  [33, 'CREATE', 30, 1],
  [34, 'CREATE', 30, 2],
  [36, 'CREATE', 30, 64],
  [37, 'CREATE', 30, 80, 512],
  [38, 'CREATE', 30, 2],
  [39, 'CREATE', 30, 2],
  [41, 'CREATE', 40, 1],
  [42, 'CREATE', 40, 4],
  [51, 'CREATE', 50, 12],
  [52, 'CREATE', 50, 12],
  [61, 'CREATE', 0, 24],
  [62, 'CREATE', 0, 24],
  [63, 'CREATE', 0, 16],
  [64, 'ACK(CREATE)', 0, 12],
  ...[71, 72, 73, 74, 75, 76, 77, 78, 79, 80].map((code) => [code, 'CREATE', 0, 254, 4096] as const),
  [81, 'TRANS.END', 0, 254, 4096],
  [82, 'DTF.END', 0, 254, 4096],
  [83, 'ACK(CREATE)', 0, 254, 4096],
  [91, 'MSGMM', 0, 4096, 65_529 - 4],
  [99, 'CONNECT', 0, 254, 60_000],
] as [number, ControlName, number, number | [number], number?][];

/** Members that make a group complete beside the one under test. */
const REST: Readonly<Record<number, string>> = {
  9: '0b0100 0c0146',
  30: '1f0180 20020400',
  40: '2a0101',
  50: '330130',
};

const keyOf = (code: number): ParameterKey => PARAMETER_KEYS.find((key) => PARAMETERS[key].code === code)!;

/** The FPDU with the parameter first and everything mandatory after it: a duplicate keeps the first. */
function withParameter(code: number, name: ControlName, group: number, value: Buffer): Fpdu {
  const parameter = pi(code, value);
  const first = group === 0 ? parameter : pi(group, parameter, REST[group]!);
  return decode(name, first, MINIMAL[name]);
}

function valueIn(fpdu: Fpdu, code: number, group: number): unknown {
  const container = (group === 0 ? fpdu.parameters : fpdu.parameters[keyOf(group)]) as Parameters;
  return container[keyOf(code)];
}

/** A legal value of `length` bytes: digits are legal in every type but S and N beyond 2^53. */
function sample(code: number, length: number): Buffer {
  const { type } = PARAMETERS[keyOf(code)];
  if (type === 'N' || type === 'S' || type === 'M') return num(1, length);
  if (type === 'A') return Buffer.alloc(length);
  return Buffer.alloc(length, 0x31);
}

test('every parameter is tried', () => {
  const groups = [9, 30, 40, 50];
  const tried = [...new Set([...LENGTHS.map(([code]) => code), ...groups])].sort((a, b) => a - b);
  expect(tried).toEqual(PARAMETER_KEYS.map((key) => PARAMETERS[key].code).sort((a, b) => a - b));
});

describe.each(LENGTHS)('PI %i in %s', (code, name, group, max, accept) => {
  const exact = Array.isArray(max);
  const longest = accept ?? (exact ? max[0] : max);
  const shortest = exact ? max[0] : 1;

  test('shortest and longest are taken', () => {
    for (const length of [shortest, longest]) {
      expect(valueIn(withParameter(code, name, group, sample(code, length)), code, group)).toBeDefined();
    }
  });

  test('one byte beyond is 3-318, and the error says which, where, what', () => {
    if (longest > 50_000) return;
    const wrong = failure(() => withParameter(code, name, group, sample(code, longest + 1)));
    expect(wrong).toMatchObject({ fault: 'remote', diagnostic: '3-318' });
    expect(wrong.message).toContain(name);
    expect(wrong.message).toContain(`PI ${code} (`);
    expect(wrong.expected).toContain(`${longest} bytes`);
    expect(wrong.got).toBe(`${longest + 1}`);
    if (!exact) return;
    expect(failure(() => withParameter(code, name, group, Buffer.alloc(longest - 1, 1))).diagnostic).toBe('3-318');
  });

  test('empty is taken as absent and noted', () => {
    const parameter = Buffer.from([code, 0]);
    const first = group === 0 ? parameter : pi(group, parameter, REST[group]!);
    const body = Buffer.concat([first, hex(MINIMAL[name])]);
    expect(decode(name, body).notices.join()).toContain(`PI ${code} (`);
  });

  test('what is too long for it is never sent', () => {
    const { type } = PARAMETERS[keyOf(code)];
    if (type === 'A') return;
    const limit = max as number;
    const value =
      type === 'C' || type === 'D' ? '1'.repeat(limit + 1) : type === 'B' ? Buffer.alloc(limit + 1) : 256 ** limit;
    const base = decode(name, MINIMAL[name]).parameters;
    const key = keyOf(code);
    const parameters =
      group === 0
        ? { ...base, [key]: value }
        : { ...base, [keyOf(group)]: { ...(base[keyOf(group)] as Parameters | undefined), [key]: value } };
    const wrong = failure(() => encodeFpdu(name, 1, 2, parameters));
    expect(wrong).toMatchObject({ fault: 'local', diagnostic: '3-318' });
    expect(wrong.message).toContain(`PI ${code} (`);
  });
});

describe('numbers', () => {
  test.each([
    ['00', 0],
    ['000000000000 0001', 1],
    ['ff', 255],
    ['ffffffff', 0xffff_ffff],
    ['0000 0100 0000 0000', 2 ** 40],
    ['001fffffffffffff', Number.MAX_SAFE_INTEGER],
  ])('PI 27 %s is %d, whatever its leading zeros', (digits, value) => {
    expect(decode('TRANS.END', pi(27, digits)).parameters.dataBytes).toBe(value);
  });

  test('beyond 2^53 is refused, not rounded', () => {
    expect(failure(() => decode('TRANS.END', pi(27, '0020000000000000'))).diagnostic).toBe('3-318');
    expect(failure(() => encodeFpdu('TRANS.END', 1, 0, { dataBytes: 2 ** 53 })).fault).toBe('local');
  });

  test.each([
    [0, '1b0100'],
    [255, '1b01ff'],
    [256, '1b020100'],
    [2 ** 32, '1b050100000000'],
    [Number.MAX_SAFE_INTEGER, '1b071fffffffffffff'],
  ])('%d is sent without leading zeros, at least one byte', (value, digits) => {
    expect(encodeFpdu('TRANS.END', 1, 0, { dataBytes: value }).subarray(6).toString('hex')).toBe(digits);
  });

  test.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('%d is never sent', (value) => {
    expect(failure(() => encodeFpdu('TRANS.END', 1, 0, { articles: value })).fault).toBe('local');
  });

  test.each([
    [1, 'CONNECT', '02'],
    [15, 'CREATE', '02'],
    [16, 'CREATE', '03'],
    [22, 'CONNECT', '03'],
    [23, 'CONNECT', '02'],
  ] as const)('PI %i of %s refuses the value %s', (code, name, value) => {
    const wrong = failure(() => decode(name, pi(code, value), MINIMAL[name]));
    expect(wrong).toMatchObject({ diagnostic: '3-318', got: `${Number(value)}` });
  });

  test.each([
    ['02', 2],
    ['82', 2],
    ['c2', 2],
    ['41', 1],
    ['0002', 2],
    ['00', 2],
    ['c0', 2],
    ['03', undefined],
    ['83', undefined],
    ['0102', undefined],
  ])('PI 6 %s is version %s: the flags 80 and 40 are masked, nothing else', (digits, version) => {
    const asked = decode('CONNECT', pi(6, digits), MINIMAL.CONNECT).parameters.version;
    expect(negotiateVersion(asked)).toBe(version);
  });
});

describe('aggregates', () => {
  test.each([
    ['000000', '0-000'],
    ['010064', '1-100'],
    ['0200cd', '2-205'],
    ['030142', '3-322'],
    ['02ffff', '2-65535'],
    ['000001', '0-001'],
  ])('PI 2 %s is %s', (digits, code) => {
    expect(decode('ABORT', pi(2, digits)).parameters.diagnostic).toBe(code);
    expect(
      encodeFpdu('ABORT', 1, 2, { diagnostic: code as '0-000' })
        .subarray(8)
        .toString('hex'),
    ).toBe(digits);
  });

  test.each([
    ['0000', { intervalKb: 0, window: 0 }],
    ['000003', { intervalKb: 0, window: 3 }],
    ['002002', { intervalKb: 32, window: 2 }],
    ['ffff00', { intervalKb: 0xffff, window: 0 }],
  ])('PI 7 %s: without an interval the window may be left out (§4.7.3)', (digits, syncPoints) => {
    expect(decode('ACONNECT', pi(7, digits)).parameters.syncPoints).toEqual(syncPoints);
  });

  test('PI 7 with an interval and no window is refused', () => {
    expect(failure(() => decode('ACONNECT', pi(7, '0020'))).diagnostic).toBe('3-318');
  });

  test('PI 2 of another type is refused', () => {
    expect(failure(() => decode('ABORT', pi(2, '040001'))).diagnostic).toBe('3-318');
  });

  test.each([
    ['0000', { used: false, mode: 0 }],
    ['0101', { used: true, mode: 1 }],
    ['0103', { used: true, mode: 3 }],
  ])('PI 21 %s', (digits, compression) => {
    expect(decode('ORF', pi(21, digits)).parameters.compression).toEqual(compression);
  });
});

describe('text', () => {
  test('trailing blanks and NULs are not significant, others are', () => {
    const parameters = decode(
      'CONNECT',
      pi(3, text(' A B  ')),
      pi(4, text('C\0\0 ')),
      pi(5, text('old     new     ')),
      '160100',
    ).parameters;
    expect(parameters).toMatchObject({ requester: ' A B', server: 'C', accessControl: 'old     new' });
  });

  test('blanks alone are an empty text, not an absent parameter', () => {
    expect(decode('CONNECT', pi(3, text('    ')), pi(4, '41'), '160100').parameters.requester).toBe('');
  });

  test('bytes are ISO 8859-1, both ways', () => {
    const parameters = decode('CONNECT', pi(3, 'e9'), pi(4, 'ff'), '160100').parameters;
    expect(parameters).toMatchObject({ requester: 'é', server: 'ÿ' });
    expect(encodeFpdu('CONNECT', 0, 1, parameters).subarray(6, 9).toString('hex')).toBe('0301e9');
    expect(failure(() => encodeFpdu('CONNECT', 0, 1, { ...parameters, requester: '€' })).fault).toBe('local');
  });
});

describe('length indicators', () => {
  test.each([1, 254])('%i bytes behind one byte', (length) => {
    expect(decode('RELCONF', pi(99, Buffer.alloc(length, 1))).parameters.freeMessage).toHaveLength(length);
  });

  test.each([255, 512, 65_000])('%i bytes behind FF and two bytes', (length) => {
    const parameter = pi(99, Buffer.alloc(length, 1));
    expect(parameter[1]).toBe(0xff);
    expect(decode('RELCONF', parameter).parameters.freeMessage).toHaveLength(length);
  });

  test('the long form is taken for a short value too', () => {
    expect(decode('RELCONF', '63 ff0001 41').parameters.freeMessage).toEqual(text('A'));
  });

  test('the long form is sent from 255 bytes on', () => {
    expect(
      encodeFpdu('MSGMM', 1, 0, { message: Buffer.alloc(254) })
        .subarray(6, 8)
        .toString('hex'),
    ).toBe('5bfe');
    expect(
      encodeFpdu('MSGMM', 1, 0, { message: Buffer.alloc(255) })
        .subarray(6, 10)
        .toString('hex'),
    ).toBe('5bff00ff');
  });

  test.each(['63', '63ff', '63ff00', '6302 41', '63ff0002 41', '63ff0000 63', '0002', 'ffffffff'])(
    '%s ends too early: 3-318',
    (digits) => {
      expect(failure(() => decode('RELCONF', digits))).toMatchObject({ fault: 'remote', diagnostic: '3-318' });
    },
  );

  test('a member that is longer than its group is refused, even when the FPDU goes on', () => {
    const wrong = failure(() => decode('CREATE', '0906 0b0100 0c0446 0d0101', MINIMAL.CREATE));
    expect(wrong.message).toContain('PGI 9');
    expect(wrong.diagnostic).toBe('3-318');
  });
});

test('decoding shares the memory of the received bytes', () => {
  const body = Buffer.concat([hex('0203 000000'), pi(91, Buffer.alloc(4000, 5))]);
  const message = decodeBody('ACK(MSG)', 1, 0, body).parameters.message!;
  body[500] = 6;
  expect(message[500 - 9]).toBe(6);
  expect(message.buffer).toBe(body.buffer);
});

test('what an FPDU does not have is never sent in it', () => {
  expect(failure(() => encodeFpdu('WRITE', 1, 0, { syncPoint: 1 })).message).toContain('PI 20 (sync point number)');
  expect(encodeFpdu('RELCONF', 1, 2, { freeMessage: undefined } as unknown as Parameters)).toHaveLength(6);
});

test('a secret is never in an error', () => {
  const wrong = failure(() => decode('CONNECT', pi(5, text('hunter2hunter2hunter2')), MINIMAL.CONNECT));
  expect(JSON.stringify([wrong.message, wrong.expected, wrong.got])).not.toContain('hunter');
});

test('data FPDUs carry no parameters', () => {
  expect(NAMES.filter((name) => !(name in MINIMAL))).toEqual(['DTF', 'DTFDA', 'DTFMA', 'DTFFA']);
});

/** They are read and written past the tables when they hold nothing else. */
describe.each([
  ['SYN', 'c003'],
  ['ACK(SYN)', 'c038'],
] as const)('%s with its number alone', (name, codes) => {
  test.each([
    [0, '0009', '140100'],
    [1, '0009', '140101'],
    [255, '0009', '1401ff'],
    [256, '000a', '14020100'],
    [65_535, '000a', '1402ffff'],
    [65_536, '000b', '1403010000'],
    [999_999, '000b', '14030f423f'],
    [0xff_ffff, '000b', '1403ffffff'],
  ])('%d: to bytes and back', (syncPoint, length, body) => {
    expect(encodeFpdu(name, 9, 0, { syncPoint }, 2).subarray(2).toString('hex')).toBe(`${length}${codes}0900${body}`);
    const { parameters, notices } = decode(name, body);
    expect({ parameters, notices }).toEqual({ parameters: { syncPoint }, notices: [] });
  });

  test.each([0x100_0000, -1, 1.5, Number.NaN])('%d is not sent', (syncPoint) => {
    expect(failure(() => encodeFpdu(name, 9, 0, { syncPoint })).message).toContain(
      'a number of at most 3 bytes in PI 20',
    );
  });

  test.each([
    ['LI 255 in its long form', '14ff000101', 1],
    ['leading zero bytes', '1403000001', 1],
  ])('%s is taken', (_, body, number) => {
    expect(decode(name, body).parameters).toEqual({ syncPoint: number });
  });

  test.each([
    ['nothing', ''],
    ['no value', '1400'],
    ['a code alone', '14'],
    ['a length beyond the end', '140201'],
    ['four bytes', '140400000001'],
    ['another parameter instead', '120101'],
  ])('%s is refused', (_, body) => {
    expect(failure(() => decode(name, body)).diagnostic).toBe('3-318');
  });
});
