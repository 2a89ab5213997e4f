import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { FPDU_NAMES, describeFpdu } from '../src/index.js';
import { fpdu, hex, minimal, pi, prefixed, text, withCrc } from '../src/testing/index.js';

describe('one line an FPDU', () => {
  test.each([
    [
      fpdu(
        'CONNECT',
        0,
        5,
        '010101',
        pi(3, text('A')),
        pi(4, text('B')),
        pi(5, text('secret')),
        '060102 0703002002 160102 170101',
      ),
      'CONNECT to 0 from 5: PI 1 (CRC used) 1 yes, PI 3 (requester identification) "A", PI 4 (server identification) "B", PI 5 (access control) ********, PI 6 (version) 2 E, PI 7 (sync points) 32 KB, window 2, PI 22 (access type) 2 both, PI 23 (resynchronisation) 1 allowed',
    ],
    [
      fpdu('ACONNECT', 5, 9, '060102 0703ffff00'),
      'ACONNECT to 5 from 9: PI 6 (version) 2 E, PI 7 (sync points) undefined interval, window 0',
    ],
    [
      fpdu(
        'CREATE',
        9,
        0,
        '0906 0b0100 0c0146 0d0107 110100 19021000 1e07 1f0180 20020050 2803 2a0101',
        pi(63, text('secret')),
      ),
      'CREATE to 9: PGI 9 (file identifier) {PI 11 (file type) 0, PI 12 (file name) "F"}, PI 13 (transfer identifier) 7, PI 17 (priority) 0, PI 25 (maximum entity size) 4096, PGI 30 (logical attributes) {PI 31 (record format) 128 variable, PI 32 (record length) 80}, PGI 40 (physical attributes) {PI 42 (maximum reservation) 1}, PI 63 (file access control) ********',
    ],
    [
      fpdu('ORF', 9, 0, '15020103', pi(72, 'aa'), pi(74, 'bb'), pi(76, 'cc')),
      'ORF to 9: PI 21 (compression) both, PI 72 (authentication elements) ********, PI 74 (sealing elements) ********, PI 76 (encryption elements) ********',
    ],
    [
      fpdu('ACK(ORF)', 5, 0, '0203000000 15020000'),
      'ACK(ORF) to 5: PI 2 (diagnostic) 0-000 success, PI 21 (compression) none',
    ],
    [fpdu('WRITE', 9, 0), 'WRITE to 9'],
    [withCrc(fpdu('WRITE', 9, 0)), 'WRITE to 9'],
    [
      fpdu('IDT', 9, 0, '0203 0200d5 130104', pi(29, text('disk\n\u001b[31m'))),
      'IDT to 9: PI 2 (diagnostic) 2-213 blocking input/output error, PI 19 (end of transfer code) 4 error, PI 29 (diagnostic complement) 6469736b0a1b5b33316d',
    ],
    [fpdu('DTF', 9, 0, text('article')), 'DTF to 9: 1 article, 7 bytes'],
    [fpdu('DTF', 9, 3, prefixed(text('a'), text('bc'), text(''))), 'DTF to 9: 3 articles, 3 bytes'],
    [fpdu('DTF', 9, 1, prefixed(text('abc'))), 'DTF to 9: 1 article with its length, 3 bytes'],
    [fpdu('DTF', 9, 1, text('abc')), 'DTF to 9: 1 article, 3 bytes (ID.SRC 1)'],
    [fpdu('DTFDA', 9, 0, text('abc')), 'DTFDA to 9: start of an article, 3 bytes'],
    [fpdu('DTFMA', 9, 0, text('abc')), 'DTFMA to 9: middle of an article, 3 bytes'],
    [fpdu('DTFFA', 9, 0, text('abc')), 'DTFFA to 9: end of an article, 3 bytes'],
    [
      fpdu('MSG', 9, 0, '0907 0b02ffff 0c0146 0d0101', pi(91, Buffer.alloc(1000, 'x'))),
      `MSG to 9: PGI 9 (file identifier) {PI 11 (file type) 65535 message, PI 12 (file name) "F"}, PI 13 (transfer identifier) 1, PI 91 (message) "${'x'.repeat(64)}"… of 1000 bytes`,
    ],
    [
      fpdu('SYN', 9, 0, '140102 630141'),
      'SYN to 9: PI 20 (sync point number) 2 (SYN: parameter 99 of 1 bytes is not part of this FPDU: skipped)',
    ],
    [
      fpdu('RELCONF', 9, 7, pi(91, text('bye\r\n'))),
      'RELCONF to 9 from 7 (RELCONF: parameter 91 of 5 bytes ("bye..") is not part of this FPDU: skipped)',
    ],
    [
      fpdu('SYN', 9, 0),
      'SYN to 9: unreadable, 0 bytes of parameters: SYN: expected the mandatory PI 20 (sync point number), got nothing',
    ],
    [hex('0006c0'), 'no FPDU: 3 bytes'],
    [hex('0006ffff0900'), 'unknown FPDU ffff, 6 bytes'],
    [hex('0007c0020900'), 'WRITE to 9: damaged, announced as 7 bytes, 6 are here'],
  ])('%#', (bytes, line) => {
    expect(describeFpdu(bytes)).toBe(line);
  });

  test('one that is decoded already', () => {
    const fpdu = { name: 'READ', destination: 9, source: 0, parameters: { restartPoint: 3 }, notices: [] } as const;
    expect(describeFpdu(fpdu)).toBe('READ to 9: PI 18 (restart point) 3');
  });
});

test('whatever the bytes are, there is one line, and no secret in it', () => {
  const secret = Buffer.from('Zq7w');
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc
      .array(fc.tuple(fc.nat(99), fc.uint8Array({ maxLength: 20 })), { maxLength: 6 })
      .map((list) => Buffer.concat(list.map(([code, value]) => pi(code, Buffer.from(value))))),
  );
  fc.assert(
    fc.property(fc.constantFrom(...FPDU_NAMES), body, fc.nat(20), (name, content, cut) => {
      const secrets = [5, 63, 72, 74, 76].map((code) => pi(code, secret));
      const whole = fpdu(name, 1, 2, Buffer.concat([...secrets, Buffer.from(content)]));
      for (const bytes of [whole, whole.subarray(cut), minimal(name, 1, 2)]) {
        const line = describeFpdu(bytes);
        expect(line).toMatch(/^[\u0020-\u007e\u00a0-\u00ff…]+$/);
        expect(line).not.toMatch(/Zq7w|5a713777/);
      }
    }),
    { numRuns: 500 },
  );
});
