import { describe, expect, test } from '@jest/globals';
import { DEFAULT_RECEIVE_PATTERN, expandPattern, sanitiseValue, validatePattern } from '../src/index.js';

const values = {
  partner: 'BANK01',
  virtualFile: 'PAYMENTS',
  transferId: 42,
  uuid: '3b241101-e2bb-4255-8caf-4136c566a962',
};
/** 7 March 2026, 04:05:06 in the zone of the process. */
const date = new Date(2026, 2, 7, 4, 5, 6);

describe('the path that a pattern gives', () => {
  test.each([
    [DEFAULT_RECEIVE_PATTERN, 'BANK01_PAYMENTS_20260307_040506_42'],
    ['${date}', '20260307'],
    ['${time}', '040506'],
    ['${year}/${month}/${day}/${partner}.dat', '2026/03/07/BANK01.dat'],
    ['${uuid}', '3b241101-e2bb-4255-8caf-4136c566a962'],
    ['$partner ${partner}${partner}', '$partner BANK01BANK01'],
    ['plain', 'plain'],
  ])('%s → %s', (pattern, path) => {
    expect(validatePattern(pattern)).toBeUndefined();
    expect(expandPattern(pattern, values, date)).toBe(path);
  });

  describe('by default', () => {
    const named = (partner: string, virtualFile: string): string =>
      expandPattern(DEFAULT_RECEIVE_PATTERN, { ...values, partner, virtualFile }, date);

    test.each([
      ['BANK-1', 'PAY.IN', 'BANK-1_PAY.IN_20260307_040506_42'],
      ['A', 'B_C', 'A_B%5FC_20260307_040506_42'],
      ['A_B', 'C', 'A%5FB_C_20260307_040506_42'],
      ['A%5FB', 'C', 'A%255FB_C_20260307_040506_42'],
      ['.A', 'nul', '%2EA_%6Eul_20260307_040506_42'],
    ])('%s and %s give %s', (partner, virtualFile, name) => {
      expect(named(partner, virtualFile)).toBe(name);
    });

    test('no two pairs of identifiers give one name, and each can be read back from its own', () => {
      const characters = ['a', '_', '%', '.', '5', 'F'];
      const pairs = characters.flatMap((first) => characters.map((second) => first + second));
      const others = ['a_a', '_._', '%5F', '%255F', 'con', '_con', '.con', '%63on', 'Con.x', '..a', 'NUL'];
      const identifiers = [...characters, ...pairs, ...others].filter((identifier) => !/^\.{1,2}$/.test(identifier));
      const wrong = [];
      const names = new Set<string>();
      for (const partner of identifiers) {
        for (const virtualFile of identifiers) {
          const name = named(partner, virtualFile);
          names.add(name);
          const read = name.split('_').map(decodeURIComponent);
          if (read.join() !== [partner, virtualFile, '20260307', '040506', '42'].join()) wrong.push(name);
        }
      }
      expect(wrong).toEqual([]);
      expect(names.size).toBe(identifiers.length ** 2);
    });

    test('a pattern that was configured writes identifiers as they are', () => {
      const pattern = '${partner}_${virtualFile}';
      expect(expandPattern(pattern, { ...values, partner: 'A_B', virtualFile: '50%' }, date)).toBe('A_B_50%');
    });
  });

  test('values of peers stay within their component', () => {
    expect(
      expandPattern('${partner}/${virtualFile}', { ...values, partner: '../../etc', virtualFile: '/a\\b' }, date),
    ).toBe('___.._etc/_a_b');
    expect(expandPattern('in/${partner}', { ...values, partner: '..' }, date)).toBe('in/__');
    expect(expandPattern('in/${partner}', { ...values, partner: '' }, date)).toBe('in/_');
    expect(expandPattern('${partner}/x', { ...values, partner: '.pesit' }, date)).toBe('_pesit/x');
  });

  test('a replacement mark in a value is only text', () => {
    expect(expandPattern('a${partner}b', { ...values, partner: "$&$1$'" }, date)).toBe("a$&$1$'b");
  });

  test('a component too long for the file system is cut, and two long ones stay two', () => {
    const pattern = '${virtualFile}${virtualFile}${virtualFile}${virtualFile}-${transferId}';
    const virtualFile = 'x'.repeat(76);
    const [first, second] = [1, 2].map((transferId) =>
      expandPattern(pattern, { ...values, virtualFile, transferId }, date),
    );
    expect(first).toHaveLength(255);
    expect(second).toHaveLength(255);
    expect(first).not.toBe(second);
  });
});

describe('a pattern that cannot be used, and the sentence about it', () => {
  test.each([
    ['', /empty/],
    ['${file}', /unknown placeholder \$\{file\}: available are \$\{partner\}, .*\$\{uuid\}/],
    ['${basename}.${ext}', /unknown placeholder \$\{basename\}/],
    ['${constructor}', /unknown placeholder/],
    ['${Partner}', /unknown placeholder/],
    ['${}', /unknown placeholder/],
    ['${partner', /not closed/],
    ['${${partner}}', /not closed/],
    ['/abs/${partner}', /relative/],
    ['C:/x', /relative/],
    ['../x', /must not begin with a dot/],
    ['a/../x', /must not begin with a dot/],
    ['a/./x', /must not begin with a dot/],
    ['.hidden', /must not begin with a dot/],
    ['.pesit/${partner}', /must not begin with a dot/],
    ['a//b', /empty directory or file name/],
    ['a/', /empty directory or file name/],
    ['a\\b', /use "\/"/],
    ['a\0b', /control character/],
    ['a\nb', /control character/],
    ['a\u202Eb', /control character/],
    ['x'.repeat(256), /longer than 255 bytes/],
    ['x/'.repeat(600), /longer than 1024/],
  ])('%j', (pattern, sentence) => {
    expect(validatePattern(pattern)).toMatch(sentence);
    expect(() => expandPattern(pattern, values, date)).toThrow(RangeError);
  });
});

describe('a value as part of a name', () => {
  test.each([
    ['BANK-01.x', 'BANK-01.x'],
    ['a/b\\c:d*e?f"g<h>i|j', 'a_b_c_d_e_f_g_h_i_j'],
    ['..', '__'],
    ['.x', '_x'],
    ['', '_'],
    ['  ', '_'],
    [' a b ', 'a b'],
    ['a\0b\u001f\u007f\u0085\u200b\ufeff', 'a_b_____'],
    ['\ud800x', '_x'],
    ['CON', '_CON'],
    ['nul.txt', '_nul.txt'],
    ['Com1', '_Com1'],
    ['CONTACT', 'CONTACT'],
    ['été', 'été'],
  ])('%j → %j', (value, name) => {
    expect(sanitiseValue(value)).toBe(name);
  });

  test('is at most 255 bytes, characters whole, whatever its length', () => {
    for (const letter of ['x', 'é', '€', '😀']) {
      const name = sanitiseValue(letter.repeat(100_000));
      expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
      expect(Buffer.byteLength(name)).toBeGreaterThan(250);
      expect(name).toMatch(new RegExp(`^(${letter})+~[0-9a-f]{8}$`, 'u'));
    }
  });
});
