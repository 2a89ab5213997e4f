/** What an FPDU may not lack, and what is tolerated in it. */
import { describe, expect, test } from '@jest/globals';
import { MINIMAL, hex, pi, text } from '../src/testing/index.js';
import { decode, failure } from './support/failure.js';
import type { ControlName } from './support/failure.js';

describe('tolerance', () => {
  test('Axway: 512 bytes in PI 37 and PI 99', () => {
    const label = 'n'.repeat(512);
    const { parameters } = decode(
      'CREATE',
      '0906 0b0100 0c0146 0d0101 110100 19021000',
      pi(30, '1f0180 20020400', pi(37, text(label))),
      '2803 2a0101',
      pi(99, Buffer.alloc(512, 7)),
    );
    expect(parameters.logicalAttributes?.fileLabel).toBe(label);
    expect(parameters.freeMessage).toHaveLength(512);
  });

  test('an empty group is taken as absent and noted', () => {
    const rest = '0d0101 110100 19021000 1e07 1f0180 20020400 2803 2a0101';
    expect(failure(() => decode('CREATE', '0900', rest)).message).toContain('PGI 9 (file identifier)');
    const { parameters, notices } = decode('CREATE', '0906 0b0100 0c0146', rest, '3200');
    expect(parameters.historicalAttributes).toBeUndefined();
    expect(notices).toEqual(['CREATE: PGI 50 (historical attributes) is empty: taken as absent']);
    expect(decode('CREATE', '0900', MINIMAL.CREATE).parameters.fileIdentifier).toEqual({ fileType: 0, fileName: 'F' });
  });

  test('a wrong order is read and noted', () => {
    const { parameters, notices } = decode('CONNECT', '160102 060102 040142 030141');
    expect(parameters).toEqual({ requester: 'A', server: 'B', version: 2, accessType: 2 });
    expect(notices).toHaveLength(3);
    expect(notices[0]).toContain('out of order');
  });

  test('a duplicate keeps the first', () => {
    const { parameters, notices } = decode('CONNECT', '030141 030158 040142 060102 160102');
    expect(parameters.requester).toBe('A');
    expect(notices).toEqual([expect.stringContaining('PI 3 (requester identification) is there twice')]);
  });

  test('an unknown parameter is skipped, whatever it holds', () => {
    const { parameters, notices } = decode('SYN', 'c803 ffffff 140101 c900');
    expect(parameters).toEqual({ syncPoint: 1 });
    expect(notices).toHaveLength(2);
    expect(failure(() => decode('SYN', 'c8ff')).diagnostic).toBe('3-318');
  });

  test('a known parameter of another FPDU is skipped', () => {
    expect(decode('SYN', '140101 0c0146').parameters).toEqual({ syncPoint: 1 });
    expect(decode('TRANS.END', '0203000000').parameters).toEqual({});
  });

  test.each([
    ['behind its group', '0903 0b0100 0c0146 0d0101 110100 19021000'],
    ['before its group', '0c0146 0903 0b0100 0d0101 110100 19021000'],
  ])('a member %s is taken into it', (_, digits) => {
    const { parameters, notices } = decode('SELECT', digits);
    expect(parameters.fileIdentifier).toEqual({ fileType: 0, fileName: 'F' });
    expect(notices.join()).toContain('stands outside PGI 9');
  });

  test('a member both in its group and outside keeps the one inside', () => {
    for (const digits of ['0c0158 0906 0b0100 0c0146', '0906 0b0100 0c0146 0c0158']) {
      expect(decode('SELECT', digits, '0d0101 110100 19021000').parameters.fileIdentifier?.fileName).toBe('F');
    }
  });

  test('an answer with a warning (PI 2 of type 1) is a positive one, and needs what that needs (§4.8.1.3)', () => {
    expect(decode('ACK(CREATE)', '0203 010064 19021000').parameters.maxEntitySize).toBe(4096);
    expect(failure(() => decode('ACK(CREATE)', '0203 010064')).got).toBe('nothing');
  });

  test('a negative answer needs PI 2 alone', () => {
    for (const name of ['ACK(CREATE)', 'ACK(SELECT)', 'ACK(WRITE)', 'ACK(READ)', 'ACK(ORF)', 'ACK(MSG)'] as const) {
      expect(decode(name, '0203 0200cd').parameters).toEqual({ diagnostic: '2-205' });
    }
    expect(decode('ACK(SELECT)', '0203 0200cd 0903 0b0100').parameters.fileIdentifier).toEqual({ fileType: 0 });
  });

  test('the number of notices and of parameters is bounded', () => {
    expect(decode('RELCONF', Buffer.concat(Array.from({ length: 100 }, () => hex('c800')))).notices).toHaveLength(8);
    expect(failure(() => decode('RELCONF', Buffer.alloc(30_000))).message).toContain('at most 128 parameters');
  });
});

/** Mandatory parameters of each FPDU, by hand from the contents of pesit-e.md §2; `9.12` is PI 12 inside group 9. */
const MANDATORY: Partial<Record<ControlName, readonly string[]>> = {
  CONNECT: ['3', '4', '22'],
  RCONNECT: ['2'],
  RELEASE: ['2'],
  ABORT: ['2'],
  CREATE: ['9', '9.11', '9.12', '13', '17', '25', '30', '30.32', '40', '40.42'],
  'ACK(CREATE)': ['2', '25'],
  SELECT: ['9', '9.11', '9.12', '13', '17', '25'],
  'ACK(SELECT)': ['2', '9', '13', '25'],
  DESELECT: ['2'],
  'ACK(DESELECT)': ['2'],
  'ACK(ORF)': ['2'],
  CRF: ['2'],
  'ACK(CRF)': ['2'],
  READ: ['18'],
  'ACK(READ)': ['2'],
  'ACK(WRITE)': ['2', '18'],
  'ACK(TRANS.END)': ['2'],
  SYN: ['20'],
  'ACK(SYN)': ['20'],
  RESYN: ['2', '18'],
  'ACK(RESYN)': ['18'],
  IDT: ['2', '19'],
  'DTF.END': ['2'],
  MSG: ['9', '9.12', '13'],
  MSGDM: ['9', '9.12', '13'],
  'ACK(MSG)': ['2'],
};

/** Removes one parameter from a body of short parameters. */
function without(body: Buffer, place: string): Buffer {
  const [code, member] = place.split('.').map(Number) as [number, number | undefined];
  const kept: Buffer[] = [];
  for (let offset = 0; offset < body.length;) {
    const end = offset + 2 + body[offset + 1]!;
    if (body[offset] !== code) kept.push(body.subarray(offset, end));
    else if (member !== undefined) kept.push(pi(code, without(body.subarray(offset + 2, end), `${member}`)));
    offset = end;
  }
  return Buffer.concat(kept);
}

describe.each(Object.entries(MANDATORY))('%s', (name, places) => {
  const body = hex(MINIMAL[name as ControlName]);

  test.each(places)('without PI %s is 3-318', (place) => {
    const [code, member] = place.split('.');
    const wrong = failure(() => decode(name as ControlName, without(body, place)));
    expect(wrong).toMatchObject({ fault: 'remote', diagnostic: '3-318', got: 'nothing' });
    expect(wrong.message).toMatch(new RegExp(`PG?I (${member ?? code}|${code}) \\(`));
    expect(wrong.message).toContain(name);
  });

  test('every other parameter may be missing', () => {
    for (let offset = 0; offset < body.length; offset += 2 + body[offset + 1]!) {
      const place = `${body[offset]}`;
      if (!places.includes(place)) expect(decode(name as ControlName, without(body, place)).name).toBe(name);
    }
  });
});
