import { describe, expect, test } from '@jest/globals';
import { formatOf, receivedFormat } from '../src/index.js';

describe('the format of a file to send', () => {
  test.each([
    [{}, 'BU', 128, 4096, false],
    [{ recordLength: 80 }, 'BU', 128, 80, false],
    [{ recordFormat: 128 }, 'BV', 128, 4096, false],
    [{ recordFormat: 0, recordLength: 80 }, 'BF', 0, 80, false],
    [{ recordFormat: 128, text: true }, 'TV', 128, 4096, true],
    [{ text: true }, 'TV', 128, 4096, true],
    [{ recordFormat: 0, text: true, recordLength: 65_535 }, 'TF', 0, 65_535, true],
  ] as const)('%j is %s', (settings, name, recordFormat, recordLength, text) => {
    expect(formatOf(settings)).toEqual({ name, recordFormat, recordLength, text });
  });

  test.each([
    [{ recordLength: 0 }, 'record length 0'],
    [{ recordLength: 65_536 }, 'record length 65536'],
    [{ recordLength: 1.5 }, 'record length 1.5'],
    [{ recordFormat: 1 }, 'record format 1'],
  ])('%j is refused as unfit attributes', (settings, text) => {
    expect(() => formatOf(settings)).toThrow(
      expect.objectContaining({ diagnostic: '2-200', fault: 'local', message: expect.stringContaining(text) }),
    );
  });
});

describe('the format in which a file is received', () => {
  test.each([
    [{ recordFormat: 128, recordLength: 1024 }, {}, 'BV', 1024],
    [{ recordFormat: 0, recordLength: 80 }, {}, 'BF', 80],
    [{ recordFormat: 128, recordLength: 132 }, { text: true }, 'TV', 132],
    [{ recordFormat: 0, recordLength: 132 }, { text: true }, 'TF', 132],
    [{ recordLength: 132 }, {}, 'BU', 132],
    [{ recordLength: 132 }, { recordFormat: 0 }, 'BF', 132],
    [{ recordLength: 132 }, { text: true }, 'TV', 132],
    [{ recordFormat: 0, recordLength: 80 }, { recordFormat: 0, recordLength: 80 }, 'BF', 80],
  ] as const)('announced %j for %j is %s %i', (announced, virtualFile, name, recordLength) => {
    expect(receivedFormat(announced, virtualFile)).toMatchObject({ name, recordLength });
  });

  test.each([
    [{ recordFormat: 128, recordLength: 0 }, {}, '2-200'],
    [{ recordFormat: 64, recordLength: 80 }, {}, '2-200'],
    [{ recordFormat: 128, recordLength: 4097 }, { recordLength: 4096 }, '2-220'],
    [{ recordFormat: 128, recordLength: 80 }, { recordFormat: 0 }, '2-226'],
    [{ recordFormat: 0, recordLength: 80 }, { recordFormat: 128 }, '2-226'],
  ] as const)('announced %j for %j is refused with %s', (announced, virtualFile, diagnostic) => {
    expect(() => receivedFormat(announced, virtualFile)).toThrow(
      expect.objectContaining({ diagnostic, fault: 'remote' }),
    );
  });
});
