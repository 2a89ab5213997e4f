import { describe, expect, test } from '@jest/globals';

import { productOf, shownFreeMessage } from '@pesit-node/transfers';

describe('the product behind the habits of a partner', () => {
  test.each([
    ['single articles without a prefix are of Connect:Express alone', { singleArticle: 'plain' }, 'Connect:Express'],
    ['a prefix may be of either', { singleArticle: 'prefixed' }, 'PeSIT Wizard or Connect:Express'],
    ['an article that looks like both says nothing', { singleArticle: 'unknown' }, null],
    ['flags beside the version are of Axway', { version: 0xc2 }, 'an Axway product'],
    ['one flag is enough', { version: 0x42, singleArticle: 'plain' }, 'an Axway product'],
    ['the marker says which of them', { version: 0xc2, preconnection: 'CFTPSITX' }, 'Transfer CFT'],
    ['the marker of the specification says nothing', { version: 2, preconnection: 'PESIT' }, null],
    ['nothing is known', {}, null],
  ] as const)('%s', (_, habits, product) => {
    expect(productOf(habits)).toBe(product);
  });

  test('PI 99 of a connection is shown without its blanks, and at most 512 bytes of it', () => {
    expect(shownFreeMessage(undefined)).toBeNull();
    expect(shownFreeMessage(Buffer.from('    '))).toBeNull();
    expect(shownFreeMessage(Buffer.from('CX4 '))).toBe('CX4');
    expect(shownFreeMessage(Buffer.alloc(900, 'x'))).toHaveLength(512);
  });
});
