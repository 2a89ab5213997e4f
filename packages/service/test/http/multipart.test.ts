import { describe, expect, test } from '@jest/globals';
import { formParts } from '@pesit-node/service';

/** As curl writes it; literal, so that nothing but the parser is tested. */
const FORM = [
  '--------------------------d74496d66958873e',
  'Content-Disposition: form-data; name="server"',
  '',
  'bank',
  '--------------------------d74496d66958873e',
  'Content-Disposition: form-data; name="file"; filename="a; name=\\"x\\".txt"',
  'Content-Type: application/octet-stream',
  '',
  'one\r\ntwo\n--------------------------d74496d66958873e\r\n--\r',
  '--------------------------d74496d66958873e--',
  '',
].join('\r\n');
const TYPE = 'multipart/form-data; boundary=------------------------d74496d66958873e';

async function* inPieces(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text, 'latin1');
  for (let at = 0; at < bytes.length; at += size) {
    await Promise.resolve();
    yield bytes.subarray(at, at + size);
  }
}

const read = async (type: string, text: string, size = 65_536): Promise<(readonly [string, string])[]> => {
  const parts: (readonly [string, string])[] = [];
  for await (const { name, content } of formParts(type, inPieces(text, size))) {
    const pieces: Buffer[] = [];
    for await (const piece of content) pieces.push(Buffer.from(piece));
    parts.push([name, Buffer.concat(pieces).toString('latin1')]);
  }
  return parts;
};

describe('the parts of a form', () => {
  const parts = [
    ['server', 'bank'],
    ['file', 'one\r\ntwo\n--------------------------d74496d66958873e\r\n--\r'],
  ];

  test('however the bytes are split', async () => {
    for (let size = 1; size <= 200; size++) expect([size, await read(TYPE, FORM, size)]).toEqual([size, parts]);
  });

  test('with a preamble, blanks behind a delimiter, and what follows the last one', async () => {
    const form = `ignored\r\n--B\r\nContent-Disposition:form-data;name=a\r\n\r\n\r\n--B \t\r\nX: y\r\ncontent-disposition: FORM-DATA; filename=f; name="b"\r\n\r\n1\r\n--B--\r\nignored`;
    for (const size of [1, 2, 3, 1000]) {
      expect(await read('Multipart/Form-Data; charset=utf-8; Boundary="B"', form, size)).toEqual([
        ['a', ''],
        ['b', '1'],
      ]);
    }
  });

  test('a part that nobody reads is skipped', async () => {
    const names: string[] = [];
    for await (const { name } of formParts(TYPE, inPieces(FORM, 7))) names.push(name);
    expect(names).toEqual(['server', 'file']);
  });

  test('no more is held than a chunk, whatever the size of a part', async () => {
    let longest = 0;
    let bytes = 0;
    const head = Buffer.from('--B\r\nContent-Disposition: form-data; name="file"\r\n\r\n');
    async function* large(): AsyncGenerator<Buffer> {
      yield head;
      for (let n = 0; n < 500; n++) {
        await Promise.resolve();
        yield Buffer.alloc(65_536, '\r\n-');
      }
      yield Buffer.from('\r\n--B--');
    }
    for await (const { content } of formParts('multipart/form-data; boundary=B', large())) {
      for await (const piece of content) {
        longest = Math.max(longest, piece.length);
        bytes += piece.length;
      }
    }
    expect(bytes).toBe(500 * 65_536);
    expect(longest).toBeLessThanOrEqual(65_536 + 10);
  });
});

describe('what is no form: 400, and why', () => {
  test.each([
    ['no boundary', 'multipart/form-data', FORM, 'boundary'],
    ['a boundary of 71 characters', `multipart/form-data; boundary=${'b'.repeat(71)}`, FORM, 'boundary'],
    ['another boundary', 'multipart/form-data; boundary=B', 'x'.repeat(100_000), 'have no delimiter'],
    ['nothing', 'multipart/form-data; boundary=B', '', 'ends before its last delimiter'],
    ['cut in the file', TYPE, FORM.slice(0, -60), 'ends before its last delimiter'],
    ['cut in the headers', TYPE, FORM.slice(0, 60), 'ends before its last delimiter'],
    ['cut in the last delimiter', TYPE, FORM.slice(0, -4), 'ends before its last delimiter'],
    ['headers without end', 'multipart/form-data; boundary=B', `--B\r\n${'x'.repeat(20_000)}`, 'more than 8192 bytes'],
    ['no name', 'multipart/form-data; boundary=B', '--B\r\nContent-Type: text/plain\r\n\r\n1\r\n--B--', 'with a name'],
    ['no headers', 'multipart/form-data; boundary=B', '--B\r\n\r\n1\r\n--B--', 'with a name'],
    ['a boundary that goes on', 'multipart/form-data; boundary=B', '--Bc\r\n\r\n1\r\n--B--', 'behind a delimiter'],
    [
      'an encoding',
      'multipart/form-data; boundary=B',
      '--B\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64\r\n\r\nMQ==\r\n--B--',
      'Content-Transfer-Encoding',
    ],
  ])('%s', async (_, type, text, why) => {
    for (const size of [1, 65_536]) {
      await expect(read(type, text, size)).rejects.toMatchObject({
        ...{ code: 'VALIDATION_ERROR', status: 400 },
        message: expect.stringContaining(why),
      });
    }
  });
});
