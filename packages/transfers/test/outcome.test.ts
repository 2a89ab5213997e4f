import { describe, expect, test } from '@jest/globals';
import { DIAGNOSTICS, PesitError } from '@pesit-node/protocol';
import type { DiagnosticCode, ErrorCondition, Fault, PeerDiagnostic } from '@pesit-node/protocol';

import {
  errorCodeOf,
  keepsTrust,
  outcomeOf,
  OUTCOMES,
  outdatesSession,
  refusesRestart,
  toPesitError,
  verdictOn,
} from '@pesit-node/transfers';

const UNLISTED = '2-777' as PeerDiagnostic;

const error = (fault: Fault, diagnostic: DiagnosticCode, condition?: ErrorCondition): PesitError =>
  new PesitError('x', { fault, diagnostic, condition });

test('every diagnostic of the specification has a row, and a code of a partner is final', () => {
  expect(Object.keys(OUTCOMES)).toEqual(Object.keys(DIAGNOSTICS));
  expect(outcomeOf(UNLISTED)).toMatchObject({
    verdict: 'final',
    errorCode: undefined,
    distrusts: 'nobody',
  });
  expect(outcomeOf('9-999' as PeerDiagnostic).verdict).toBe('final');
});

describe('what follows a failed attempt', () => {
  test.each([
    ['final', 'refused', ['2-204', '2-205', '2-216', '2-220', '2-226', '3-301', '3-304', '3-308', '3-318']],
    ['again', 'refused', ['1-100', '2-213', '2-214', '2-215', '2-219', '2-223', '3-302', '3-317', '3-319']],
    ['later', 'refused', ['2-201', '2-207', '3-300', '3-303', '3-309', '3-322']],
    ['again', 'transport', ['3-310']],
    ['again', 'timeout', ['3-317']],
    ['final', 'local', ['2-200', '2-205', '2-220']],
    ['again', 'local', ['2-211', '2-213', '2-219']],
    ['later', 'local', ['2-201', '2-207']],
  ] as const)('%s when %s', (verdict, fault, codes) => {
    for (const code of codes) expect([code, verdictOn(error(fault, code))]).toEqual([code, verdict]);
  });

  test.each(['source changed', 'setting unusable', 'unexpected'] as const)(
    'final when it is of this side: %s, which its diagnostic alone does not say',
    (condition) => {
      expect(verdictOn(error('local', '2-215', condition))).toBe('final');
      expect(verdictOn(error('refused', '2-215'))).toBe('again');
    },
  );

  test.each(['certificate refused', 'TLS not agreed'] as const)('final when TLS says so: %s', (condition) => {
    expect(verdictOn(error('transport', '3-310', condition))).toBe('final');
    expect(verdictOn(error('transport', '3-310'))).toBe('again');
  });

  test('whatever else is thrown is unexpected, and final', () => {
    const thrown = new TypeError('x is not a function');
    const made = toPesitError(thrown);
    expect(made).toMatchObject({ fault: 'local', diagnostic: '2-215', message: 'x is not a function', cause: thrown });
    expect(verdictOn(made)).toBe('final');
    expect(toPesitError('thrown text').message).toBe('thrown text');
    expect(toPesitError(made)).toBe(made);
  });

  test.each([
    [4, '2-216', 'again'],
    [4, '3-322', 'later'],
    [8, '2-216', 'final'],
    [12, '2-216', 'final'],
    [16, '2-216', 'final'],
  ] as const)('what the partner interrupts with end code %i and %s: %s', (endCode, diagnostic, verdict) => {
    expect(verdictOn(new PesitError('x', { fault: 'refused', diagnostic, endCode }))).toBe(verdict);
  });
});

test.each([
  ['SEND', 'refused', ['2-204', '2-214', '2-218', '2-233'], ['2-215', '2-226', '2-207', '3-304']],
  ['RECEIVE', 'refused', ['2-204', '2-214', '2-215', '2-218', '2-233'], ['2-205', '2-226']],
  ['SEND', 'local', [], ['2-214', '2-215', '2-204']],
  ['RECEIVE', 'local', [], ['2-214', '2-215']],
  ['SEND', 'transport', [], ['3-310']],
] as const)('a restart that is refused: %s, %s', (direction, fault, refuses, others) => {
  for (const code of [...refuses, ...others]) {
    const expected = (refuses as readonly string[]).includes(code);
    expect([code, refusesRestart(error(fault, code), direction)]).toEqual([code, expected]);
  }
});

test('a session that was proven is out of date when the partner refuses it: 3-304, and nothing of this side', () => {
  const outdating = Object.keys(OUTCOMES).filter((code) => outdatesSession(error('refused', code as DiagnosticCode)));
  expect(outdating).toEqual(['3-304']);
  expect(outdatesSession(error('local', '3-304'))).toBe(false);
});

test('a point that this side does not know any more: what it sends begins anew, what it receives does not', () => {
  const unknown = error('local', '2-214', 'point unknown');
  expect([refusesRestart(unknown, 'SEND'), refusesRestart(unknown, 'RECEIVE')]).toEqual([true, false]);
});

test('what is staged is not gone on with after wrong counts, nor by its receiver after damaged data', () => {
  const trusts = (code: DiagnosticCode) => [keepsTrust(code, 'SEND'), keepsTrust(code, 'RECEIVE')];
  expect(trusts('3-319')).toEqual([false, false]);
  expect(trusts('1-100')).toEqual([true, false]);
  expect(trusts('3-310')).toEqual([true, true]);
  expect(keepsTrust(UNLISTED, 'RECEIVE')).toBe(true);
});

test.each([
  ['timeout', '3-310', 'connecting', 'TIMEOUT'],
  ['timeout', '3-304', 'transferring', 'TIMEOUT'],
  ['refused', '3-304', 'connecting', 'AUTH_FAILED'],
  ['refused', '3-301', 'connecting', 'PARTNER_UNKNOWN'],
  ['refused', '2-205', 'transferring', 'FILE_NOT_FOUND'],
  ['refused', '3-308', 'connecting', 'TRANSFER_FAILED'],
  ['refused', '3-322', 'connecting', 'CONNECTION_FAILED'],
  ['refused', '3-322', 'transferring', 'TRANSFER_FAILED'],
  ['transport', '3-310', 'connecting', 'CONNECTION_FAILED'],
  ['transport', '3-310', 'transferring', 'TRANSFER_FAILED'],
  ['local', '2-215', 'connecting', 'TRANSFER_FAILED'],
  ['remote', '3-311', 'connecting', 'TRANSFER_FAILED'],
] as const)('the error code of %s %s while %s is %s', (fault, diagnostic, phase, code) => {
  expect(errorCodeOf(error(fault, diagnostic), phase)).toBe(code);
});
