import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { matchesGlob } from '../src/index.js';

describe('a pattern and the names that it takes', () => {
  test.each([
    ['*', ['', 'a', 'a.b', '.x'], []],
    ['*.csv', ['a.csv', '.csv', 'a.b.csv'], ['a.CSV', 'a.csv2', 'csv', 'a.csv ']],
    ['PAY_????.dat', ['PAY_2026.dat'], ['PAY_226.dat', 'pay_2026.dat', 'PAY_20261.dat']],
    ['a*b*c', ['abc', 'aXbYc', 'abbcc', 'aabbcbc'], ['abcd', 'acb', 'ab']],
    ['**', ['', 'x'], []],
    ['[abc]x', ['ax', 'cx'], ['dx', 'x', 'abx']],
    ['[a-c0-9]', ['b', '5'], ['d', '-', 'B']],
    ['[!a-c]', ['d', '-'], ['a', '']],
    ['[^a]', ['b'], ['a']],
    ['[]x]', [']', 'x'], ['[', 'a']],
    ['[a-]', ['a', '-'], ['b']],
    ['[a', ['[a'], ['a']],
    ['[]', ['[]'], ['']],
    ['[!]', ['[!]'], ['a']],
    ['*]', ['a]', ']'], ['a']],
    ['[*]', ['*'], ['a']],
    ['[?]', ['?'], ['a']],
    ['a.b', ['a.b'], ['axb']],
    ['(a|b)+', ['(a|b)+'], ['a']],
    ['?', ['é', '😀'], ['', 'ab']],
    ['', [''], ['a']],
  ])('%s', (pattern, takes, refuses) => {
    for (const name of takes) expect([pattern, name, matchesGlob(pattern, name)]).toEqual([pattern, name, true]);
    for (const name of refuses) expect([pattern, name, matchesGlob(pattern, name)]).toEqual([pattern, name, false]);
  });
});

test('agrees with a plain recursive reading', () => {
  const reads = (pattern: string, name: string): boolean => {
    if (pattern === '') return name === '';
    const [first, rest] = [pattern[0], pattern.slice(1)];
    if (first === '*') return reads(rest, name) || (name !== '' && reads(pattern, name.slice(1)));
    return name !== '' && (first === '?' || first === name[0]) && reads(rest, name.slice(1));
  };
  const text = (...letters: string[]) =>
    fc.array(fc.constantFrom(...letters), { maxLength: 9 }).map((all) => all.join(''));
  fc.assert(
    fc.property(text('a', 'b', '*', '?'), text('a', 'b'), (pattern, name) => {
      expect(matchesGlob(pattern, name)).toBe(reads(pattern, name));
    }),
    { numRuns: 2000 },
  );
});

test('any string is a pattern, and none takes long', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (pattern, name) => {
      matchesGlob(pattern, name);
    }),
  );
  const began = performance.now();
  expect(matchesGlob('*a'.repeat(500), 'a'.repeat(499) + 'b')).toBe(false);
  expect(matchesGlob('*a*b'.repeat(250) + 'c', 'ab'.repeat(5000))).toBe(false);
  expect(matchesGlob('['.repeat(20_000), 'x')).toBe(false);
  expect(performance.now() - began).toBeLessThan(2000);
});
