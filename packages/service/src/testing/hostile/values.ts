/** Values that no field expects, as texts of JSON: what a type system would refuse, what a parser or a regular expression might not survive. */
import fc from 'fast-check';

const deep = (depth: number, open: string, inner: string, close: string): string =>
  open.repeat(depth) + inner + close.repeat(depth);

const VALUES: readonly string[] = [
  ...['null', 'true', 'false', '0', '-0', '-1', '1.5', '65536', '2147483648', '9007199254740993', '1e308', '1e400'],
  ...['99999999999999999999', '""', '" "', '[]', '{}', '[[]]', '[null]', '[{}]', '[0,"",null,{}]'],
  ...['"\\u0000"', '"a\\u0000b"', '"\\ud800"', '"\\u202e"', '"\\r\\nSet-Cookie: a=b"', '"."', '".."'],
  ...['"../../etc/passwd"', '"/etc/passwd"', '"%00"', '"${uuid}/../../x"', '"\'; drop table partners; --"'],
  ...['"*a*a*a*a*a*a*a*a*a*a*a*a*b"', '"((((a+)+)+)+)$"', '"[[[[["', '"constructor"', '"__proto__"'],
  ...['{"__proto__":{"admin":true}}', '{"constructor":{"prototype":{}}}', '{"toString":1}', '{"length":1e9}'],
  ...['"2026-02-30"', '"0000-00-00T99:99:99Z"', '"-----BEGIN CERTIFICATE-----"', '"AA=="', '"::ffff:0:0/129"'],
  JSON.stringify('x'.repeat(100_000)),
  JSON.stringify(`${'a'.repeat(50_000)}!`),
  JSON.stringify('\u00e9'.repeat(3_000)),
  JSON.stringify('\u{1f600}'.repeat(77)),
  JSON.stringify(Array.from({ length: 20_000 }, () => 0)),
  JSON.stringify(Array.from({ length: 2_000 }, (_, index) => `name-${index}`)),
  JSON.stringify(Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`name-${index}`, index]))),
  deep(2_000, '[', '', ']'),
  deep(20_000, '[', '0', ']'),
  deep(20_000, '{"a":', '0', '}'),
];

/** One value, as a text of JSON. */
export const hostileValue: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...VALUES) },
  fc.string({ unit: 'binary', maxLength: 100 }).map((text) => JSON.stringify(text)),
  fc.json({ maxDepth: 3 }),
);

/** Names that no request has; those of what every object of JavaScript has by itself are among them. */
export const unknownName: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty', '', ' ', 'a.b', 'a[0]', '$where', '\0'),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }),
  fc.constant('n'.repeat(5_000)),
);

/** With U+FFFD in the place of half a character. */
export const wellFormed = (text: string): string => Buffer.from(text).toString();

/** Texts for a URL between two slashes, or behind the sign of equality, as it goes over the line. */
export const hostileSegment: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    ...[
      '%00',
      'a%00b',
      '%2F',
      '%2e%2e%2Fetc%2Fpasswd',
      '..%2f..',
      '..',
      '.',
      '%2e%2e',
      '%',
      '%z',
      '%zz',
      '%ff',
      '%c0%af',
    ],
    ...[
      '%ed%a0%80',
      '%F0%9F%98%80',
      '%20',
      '%0d%0aX:1',
      '%25',
      '%252e',
      ';',
      'a;b=c',
      '+',
      '*',
      '"',
      '<x>',
      '{id}',
      ':id',
    ],
    ...[
      '0',
      '-1',
      '1.5',
      '1e9',
      '0x10',
      '2147483648',
      '9'.repeat(16),
      '9'.repeat(400),
      'NaN',
      'null',
      'true',
      '\\',
      '|',
    ],
    ...['__proto__', 'constructor', '[object%20Object]', 'x'.repeat(4_000), '%41'.repeat(1_000), '2026-02-30'],
    ...[
      '00000000-0000-0000-0000-000000000000',
      '00000000-0000-0000-0000-00000000000g',
      "'%20or%201=1--",
      '*a*a*a*a*a*b',
    ],
  ),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }).map((text) => encodeURIComponent(wellFormed(text))),
);

/** Bytes in place of a body of JSON. */
export const brokenJson: fc.Arbitrary<Buffer> = fc.oneof(
  fc
    .constantFrom(
      ...['{', '{"a":', '{"a":1,}', "{'a':1}", '{a:1}', '{"a":NaN}', '{"a":01}', '{"a":"\n"}', '{}{}', '{"a":1}x'],
      ...['nul', '[1,', '"', '\\', '<a/>', 'a=1', '{"a":"\\x"}', '{"a":"\\u12"}', '\ufeff\ufeff{}', '/**/{}'],
      '['.repeat(100_000),
      '{"a":'.repeat(50_000),
    )
    .map((text) => Buffer.from(text)),
  fc.constantFrom(
    Buffer.from('7b2261223a22ff227d'.slice(0, 14), 'hex'),
    Buffer.from('{"a":1}', 'utf16le'),
    Buffer.from('0000007b0000007d', 'hex'),
    Buffer.from('7bff7d', 'hex'),
  ),
);

/** A body of JSON that is whole, and is no object. */
export const noObject: fc.Arbitrary<string> = fc.constantFrom(
  ...['[]', '[{}]', '[1]', 'null', 'true', '1', '"text"', '[[[]]]'],
  deep(20_000, '[', '', ']'),
);

export const contentType: fc.Arbitrary<string> = fc.constantFrom(
  ...['text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'text/json', 'application/jsonx', 'json'],
  ...[
    'application',
    '/',
    ';',
    'multipart/form-data',
    'multipart/mixed; boundary=a',
    'application/json; charset=utf-16',
  ],
  ...['application/json; charset=nonsense', 'application/json; charset=', 'application/json;;;', 'x'.repeat(2_000)],
  'image/png',
);
