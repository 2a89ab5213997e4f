import { describe, expect, test } from '@jest/globals';

import { identifier, plainText, rowId } from '@pesit-node/service';

describe('identifier', () => {
  test.each(['A', 'PARTNER-01', 'a b', 'x.y', '...', "~!@#$%^&()_+{}[];',=`", 'x'.repeat(24)])('%j is one', (value) => {
    expect(identifier(24).parse(value)).toBe(value);
  });

  test.each([
    '',
    'x'.repeat(25),
    ' a',
    'a ',
    '.',
    '..',
    '../etc',
    'a/b',
    'a\\b',
    'a:b',
    'a*',
    'a?',
    'a"b',
    '<a',
    'a>',
    'a|b',
    'a\0b',
    'a\nb',
    'é',
    '\u007f',
    7,
    null,
    undefined,
    ['A'],
  ])('%j is none', (value) => {
    expect(identifier(24).safeParse(value).success).toBe(false);
  });
});

test('plain text may have line ends, but no NUL and no other control character', () => {
  expect(plainText(20).safeParse('Zürich\n\tline').success).toBe(true);
  for (const value of ['a\0b', 'a\u001bb', 'x'.repeat(21)]) expect(plainText(20).safeParse(value).success).toBe(false);
});

test('a row number is a positive integer that PostgreSQL can hold', () => {
  expect(rowId().parse('2147483647')).toBe(2_147_483_647);
  for (const value of ['0', '-1', '1.5', '01', '2147483648', '99999999999', 'x', '', '9'.repeat(17), '../1']) {
    expect(rowId().safeParse(value).error?.issues).toMatchObject([
      { message: 'expected a positive integer up to 2147483647' },
    ]);
  }
});

test('a row number of 64 bits is one that a JSON number holds exactly', () => {
  const id = rowId(Number.MAX_SAFE_INTEGER);
  expect(id.parse('9007199254740991')).toBe(9_007_199_254_740_991);
  for (const value of ['9007199254740992', '9999999999999999', '18446744073709551616']) {
    expect(id.safeParse(value).error?.issues).toMatchObject([
      { message: 'expected a positive integer up to 9007199254740991' },
    ]);
  }
});
