/** The header of the PROXY protocol by literal bytes (proxy-protocol.txt §2): whole, byte by byte, and anything else. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MAX_PROXY_HEADER, readProxyHeader } from '../src/proxy-header.js';
import { hex } from './support/wire.js';

const SIGNATURE = '0d0a0d0a 000d0a51 5549540a';
/** 192.0.2.7:40000 to 192.0.2.1:6502 */
const IPV4 = 'c0000207 c0000201 9c40 1966';
/** 2001:db8::7 to 2001:db8::1 */
const IPV6 = '20010db8 00000000 00000000 00000007 20010db8 00000000 00000000 00000001 9c40 1966';
const MAPPED = '00000000 00000000 0000ffff c0000207 00000000 00000000 0000ffff c0000201 9c40 1966';
const UNIX = '2f'.repeat(216);

const line = (text: string): Buffer => Buffer.from(`${text}\r\n`);
const v2 = (rest: string): Buffer => hex(`${SIGNATURE} ${rest}`);

const TOLD: readonly (readonly [string, Buffer, string | undefined])[] = [
  ['v1, IPv4', line('PROXY TCP4 192.0.2.7 192.0.2.1 40000 6502'), '192.0.2.7'],
  ['v1, IPv6', line('PROXY TCP6 2001:DB8:0:0:0:0:0:7 2001:db8::1 40000 6502'), '2001:db8::7'],
  ['v1, an IPv4 address as IPv6', line('PROXY TCP6 ::ffff:192.0.2.7 ::1 0 65535'), '192.0.2.7'],
  ['v1, UNKNOWN', line('PROXY UNKNOWN'), undefined],
  ['v1, UNKNOWN with anything', line(`PROXY UNKNOWN ${'f'.repeat(91)}`), undefined],
  ['v2, IPv4', v2(`21 11 000c ${IPV4}`), '192.0.2.7'],
  ['v2, IPv6', v2(`21 21 0024 ${IPV6}`), '2001:db8::7'],
  ['v2, an IPv4 address as IPv6', v2(`21 21 0024 ${MAPPED}`), '192.0.2.7'],
  ['v2, UNIX', v2(`21 31 00d8 ${UNIX}`), undefined],
  ['v2, unspecified', v2('21 00 0000'), undefined],
  ['v2, LOCAL', v2('20 00 0000'), undefined],
  ['v2, LOCAL with anything', v2('20 ff 0003 ffffff'), undefined],
  ['v2, TLVs that nobody needs', v2(`21 11 0017 ${IPV4} 01 0002 6832 04 0000 ea 0000`), '192.0.2.7'],
  // CRC32c (check value of 123456789: e3069283) of the header with four zero bytes in its place.
  ['v2, with CRC32c', v2(`21 11 0013 ${IPV4} 03 0004 8273f793`), '192.0.2.7'],
  ['v2, as large as is taken', v2(`21 11 1000 ${IPV4} 04 0ff1 ${'00'.repeat(4081)}`), '192.0.2.7'],
];

describe.each(TOLD)('%s', (_, bytes, address) => {
  const header = { kind: 'header', length: bytes.length, address };

  test('whole, and what follows is not of it', () => {
    expect(readProxyHeader(bytes)).toEqual(header);
    expect(readProxyHeader(Buffer.concat([bytes, hex('0018 0006 4020')]))).toEqual(header);
  });

  test('byte by byte: no verdict before its last', () => {
    for (let length = 0; length < bytes.length; length++) {
      expect([length, readProxyHeader(bytes.subarray(0, length))]).toEqual([length, { kind: 'more' }]);
    }
  });
});

test.each([
  ['v1 that does not end', Buffer.from(`PROXY UNKNOWN ${'f'.repeat(92)}\r\n`), 'no end of line within 107 bytes'],
  ['v1 of no family', line('PROXY TCP5 192.0.2.7 192.0.2.1 1 2'), 'expected TCP4, TCP6 or UNKNOWN'],
  ['v1 of a family that objects know', line('PROXY constructor a b 1 2'), 'expected TCP4, TCP6 or UNKNOWN'],
  ['v1 in small letters', line('PROXY tcp4 192.0.2.7 192.0.2.1 1 2'), 'expected TCP4, TCP6 or UNKNOWN'],
  ['v1 with a number too large', line('PROXY TCP4 192.0.2.256 192.0.2.1 1 2'), 'the source is no address of TCP4'],
  ['v1 with an octal number', line('PROXY TCP4 192.0.2.07 192.0.2.1 1 2'), 'the source is no address of TCP4'],
  ['v1 of another family', line('PROXY TCP4 2001:db8::7 192.0.2.1 1 2'), 'the source is no address of TCP4'],
  ['v1 with a zone', line('PROXY TCP6 fe80::1%eth0 ::1 1 2'), 'the source is no address of TCP6'],
  ['v1 with two ::', line('PROXY TCP6 1::2::3 ::1 1 2'), 'the source is no address of TCP6'],
  ['v1 without destination', line('PROXY TCP6 ::1'), 'the destination is no address of TCP6'],
  ['v1 with one port', line('PROXY TCP4 192.0.2.7 192.0.2.1 1'), 'expected two ports at its end'],
  ['v1 with a port too large', line('PROXY TCP4 192.0.2.7 192.0.2.1 1 65536'), 'expected two ports at its end'],
  ['v1 with two blanks', line('PROXY TCP4 192.0.2.7  192.0.2.1 1 2'), 'the destination is no address of TCP4'],
  ['v2 of version 1', v2(`11 11 000c ${IPV4}`), 'its version is 1, expected 2'],
  ['v2 of command 2', v2(`22 11 000c ${IPV4}`), 'its command is 2, expected 0 (LOCAL) or 1 (PROXY)'],
  ['v2 of family 4', v2(`21 41 000c ${IPV4}`), 'its address family is 4, expected 0 to 3'],
  ['v2 of datagrams', v2(`21 12 000c ${IPV4}`), 'its protocol is 2, and this is a stream (1)'],
  ['v2 too short for its family', v2('21 21 000c'), 'it has 12 bytes of addresses, expected 36 or more'],
  ['v2 too large', v2('21 11 1001'), 'it has 4097 bytes of addresses and TLVs, expected 4096 at most'],
  ['LOCAL too large', v2('20 00 ffff'), 'it has 65535 bytes of addresses and TLVs, expected 4096 at most'],
  ['a TLV beyond the end', v2(`21 11 0010 ${IPV4} 04 0002 00`), 'a TLV is longer than the header'],
  ['a TLV without its length', v2(`21 11 000e ${IPV4} 04 00`), 'a TLV is longer than the header'],
  ['a CRC32c of two bytes', v2(`21 11 0011 ${IPV4} 03 0002 0000`), 'its CRC32c has 2 bytes, expected 4'],
  ['a wrong CRC32c', v2(`21 11 0013 ${IPV4} 03 0004 00000001`), 'its CRC32c is wrong'],
])('%s is malformed', (_, bytes, reason) => {
  expect(readProxyHeader(bytes)).toEqual({ kind: 'malformed', reason });
});

test.each([
  ['length-prefixed CONNECT', hex('0018 0006 4020 0007')],
  ['raw CONNECT', hex('0010 4020 0007')],
  ['a pre-connection', hex('d7c5e2c9e3404040')],
  ['TLS', hex('1603 0100')],
  ['HTTP that begins alike', Buffer.from('PROPFIND / HTTP/1.1')],
  ['a signature with its last byte wrong', hex('0d0a0d0a 000d0a51 5549540b')],
])('%s is no header', (_, bytes) => {
  expect(readProxyHeader(bytes)).toEqual({ kind: 'none' });
});

test('whatever comes: nothing is thrown, a verdict stays, and there is one as soon as the bound is reached', () => {
  const starts = fc.constantFrom(
    '',
    '50524f585920',
    '50524f585920544350342031',
    SIGNATURE,
    `${SIGNATURE} 2111`,
    `${SIGNATURE} 21110010 ${IPV4}`,
  );
  const rest = fc.uint8Array({ maxLength: 300 });
  fc.assert(
    fc.property(starts, rest, fc.nat(), (start, tail, cut) => {
      const bytes = Buffer.concat([hex(start), tail]);
      const part = readProxyHeader(bytes.subarray(0, cut % (bytes.length + 1)));
      const whole = readProxyHeader(bytes);
      if (part.kind !== 'more') expect(whole).toEqual(part);
      if (whole.kind === 'header') expect(whole.length).toBeLessThanOrEqual(Math.min(bytes.length, MAX_PROXY_HEADER));
      const full = Buffer.concat([bytes, Buffer.alloc(MAX_PROXY_HEADER)]).subarray(0, MAX_PROXY_HEADER);
      expect(readProxyHeader(full).kind).not.toBe('more');
    }),
    { numRuns: 2000 },
  );
});
