import { describe, expect, test } from '@jest/globals';

import { isReadable, readBytes, showBytes } from '../src/opaque-text.js';

describe('opaque bytes as JSON has them', () => {
  test.each([
    ['616263', 'abc'],
    ['', ''],
    ['c3a90d0a09', 'é\r\n\t'],
    ['efbbbf61', '\ufeffa'],
    ['e9', 'base64:6Q=='],
    ['6100', 'base64:YQA='],
    ['1b5b32', 'base64:G1sy'],
    ['c285', 'base64:woU='],
    ['6261736536343a', 'base64:YmFzZTY0Og=='],
  ])('%s is shown as %j, and read as the same bytes', (hex, shown) => {
    expect(showBytes(Buffer.from(hex, 'hex'))).toBe(shown);
    expect(readBytes(shown).toString('hex')).toBe(hex);
    expect(isReadable(shown)).toBe(true);
  });

  test('what is not there is not shown, and what is no base64 is not read', () => {
    expect(showBytes(null)).toBeNull();
    expect(['base64:A', 'base64:YQ', 'base64: YQ=='].map(isReadable)).toEqual([false, false, false]);
  });
});
