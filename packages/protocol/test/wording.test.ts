import { describe, expect, test } from '@jest/globals';

import { DIAGNOSTICS, PesitError, adviseOn, explain, inOneLine, logWords, quoteDiagnostic } from '../src/index.js';
import type { DiagnosticCode, PeerDiagnostic } from '../src/index.js';

const count = (text: string, part: string): number =>
  text.toLowerCase().split(part.toLowerCase().replace(/,/g, '')).length - 1;

/** As a session makes it of an answer that says no. */
const refused = (diagnostic: DiagnosticCode, said: string): PesitError =>
  new PesitError(`the partner refused the connection: ${quoteDiagnostic(diagnostic, said)}`, {
    fault: 'refused',
    diagnostic,
  });

describe('a text says nothing twice', () => {
  const rows = Object.entries(DIAGNOSTICS).map(
    ([code, { text, advice }]) => [code as DiagnosticCode, text, advice] as const,
  );

  test.each(rows)('%s, whatever of it the partner repeats: %s', (code, text, advice) => {
    for (const said of [
      '',
      text,
      text.toUpperCase(),
      `${code} ${text}`,
      `${text}: ${advice}`,
      advice,
      `Sorry: ${text}.`,
    ]) {
      const sentence = explain(refused(code, said)).replaceAll(',', '');
      // `wait` is part of other words, and `nothing` of no use to look for.
      expect([said, count(sentence, text)]).toEqual([said, 1]);
      if (advice.length > 8) expect([said, count(sentence, advice)]).toEqual([said, 1]);
      expect(count(sentence, code)).toBe(1);
    }
  });

  test('the refusal of a node of this product', () => {
    expect(explain(refused('3-304', adviseOn('3-304')))).toBe(
      'the partner refused the connection: 3-304 requester not authorised (check identifier, password and that the partner is enabled)',
    );
  });

  test.each([
    ['3-304', 'bad password', '3-304 requester not authorised (bad password)'],
    ['3-309', 'too many connections of this partner', '3-309 too many connections (of this partner)'],
    ['2-205', 'file does not existent', '2-205 (file does not existent)'],
    ['2-777', 'disk full', '2-777 diagnostic of the partner, not in the specification (disk full)'],
    ['2-777', '2-777', '2-777 diagnostic of the partner, not in the specification'],
    ['3-322', '...', '3-322 call later'],
  ] as const)('%s with %j', (code, said, quoted) => {
    expect(quoteDiagnostic(code as PeerDiagnostic, said)).toBe(quoted);
  });

  test('in one line, for a trace', () => {
    expect(`connection ended: ${inOneLine(refused('3-304', 'bad password'))}`).toBe(
      'connection ended: 3-304 requester not authorised: the partner refused the connection (bad password)',
    );
    expect(inOneLine(refused('2-205', 'the file does not exist'))).toBe(
      '2-205 file does not exist: the partner refused the connection (the file does not exist)',
    );
    const own = new PesitError('the password (PI 5) of ACME is wrong', { fault: 'local', diagnostic: '3-304' });
    expect(inOneLine(own)).toBe('3-304 requester not authorised: the password (PI 5) of ACME is wrong');
    expect(logWords(own)).toEqual({
      diagnostic: '3-304 requester not authorised',
      reason: 'the password (PI 5) of ACME is wrong',
      fault: 'local',
    });
  });

  test('what this node found itself has no advice for its partner', () => {
    const own = new PesitError('the file is not there', { fault: 'local', diagnostic: '2-205' });
    expect(explain(own)).toBe('the file is not there');
  });
});
