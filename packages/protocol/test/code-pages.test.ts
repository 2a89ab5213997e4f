import { describe, expect, test } from '@jest/globals';
import { CODE_PAGES, codePageTables, translate } from '../src/index.js';

describe('EBCDIC code pages', () => {
  test.each(CODE_PAGES)('%s: every byte there and back', (page) => {
    const { toLatin1, fromLatin1 } = codePageTables(page);
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const there = Buffer.from(all);
    translate(there, toLatin1);
    expect(new Set(there).size).toBe(256);
    translate(there, fromLatin1);
    expect(there.equals(all)).toBe(true);
  });

  test.each(CODE_PAGES)('%s: what all pages have in common', (page) => {
    const text = Buffer.from('Hello, World 0189\n', 'latin1');
    translate(text, codePageTables(page).fromLatin1);
    expect(text.toString('hex')).toBe('c8859393966b40e6969993844 0f0f1f8f925'.replace(' ', ''));
  });

  // From the character charts of the pages.
  test.each([
    ['037', '[', 'ba'],
    ['037', ']', 'bb'],
    ['037', '!', '5a'],
    ['500', '[', '4a'],
    ['500', ']', '5a'],
    ['500', '!', '4f'],
    ['1047', '[', 'ad'],
    ['1047', ']', 'bd'],
    ['297', '\u00e9', 'c0'],
    ['297', '\u00e8', 'd0'],
    ['297', '\u00e0', '7c'],
    ['297', '@', '44'],
    ['297', '\u00a3', '7b'],
    ['1147', '\u00e9', 'c0'],
    ['1140', '\u00a4', '9f'],
    ['1148', '\u00a4', '9f'],
  ] as const)('%s: %s is %s', (page, character, hex) => {
    const bytes = Buffer.from(character, 'latin1');
    translate(bytes, codePageTables(page).fromLatin1);
    expect(bytes.toString('hex')).toBe(hex);
  });
});
