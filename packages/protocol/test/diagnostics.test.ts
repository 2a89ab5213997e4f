/** The diagnostics of annex D (pesit-e.md §9): every code has words, advice, and says whether to come again. */
import { expect, test } from '@jest/globals';
import { breaksProtocol, DIAGNOSTICS, describeDiagnostic, endOf, retryOf } from '../src/index.js';
import type { DiagnosticCode, PeerDiagnostic } from '../src/index.js';

const range = (type: number, first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, i) => `${type}-${first + i}`);

test('every code of the specification and of the field, and no other', () => {
  const codes = ['0-000', '1-100', ...range(2, 200, 226), '2-233', '2-250', '2-299', ...range(3, 300, 322), '3-399'];
  expect(Object.keys(DIAGNOSTICS).sort()).toEqual(codes.sort());
  for (const { text, advice } of Object.values(DIAGNOSTICS)) {
    expect(text.length).toBeGreaterThan(3);
    expect(advice.length).toBeGreaterThan(3);
  }
});

test('come again later: exactly these', () => {
  const later = Object.keys(DIAGNOSTICS).filter((code) => retryOf(code as DiagnosticCode) === 'later');
  expect(later.sort()).toEqual(['2-201', '2-207', '3-300', '3-303', '3-309', '3-322']);
});

test('refusals that nothing but a human changes are not tried again', () => {
  for (const code of ['2-204', '2-205', '2-226', '3-301', '3-304', '3-308', '3-318'] as const) {
    expect([code, retryOf(code)]).toEqual([code, 'no']);
  }
});

test('an error in the data ends the transfer alone when it is about the file, or about the line (annex D)', () => {
  const ofTransfers = Object.keys(DIAGNOSTICS).filter((code) => endOf(code as DiagnosticCode) === 'transfer');
  expect(ofTransfers.sort()).toEqual(['1-100', ...range(2, 200, 226), '2-233', '2-250', '2-299'].sort());
  expect([endOf('2-777' as PeerDiagnostic), endOf('3-777' as PeerDiagnostic)]).toEqual(['transfer', 'connection']);
});

test('a protocol error alone breaks the protocol', () => {
  expect(Object.keys(DIAGNOSTICS).filter((code) => breaksProtocol(code as DiagnosticCode))).toEqual(['3-311']);
});

test('a code that is not in the specification is shown, and final', () => {
  const unlisted = '2-777' as PeerDiagnostic;
  expect(describeDiagnostic('2-205')).toBe('2-205 file does not exist');
  expect(describeDiagnostic(unlisted)).toMatch(/^2-777 .*not in the specification/);
  expect(retryOf(unlisted)).toBe('no');
});
