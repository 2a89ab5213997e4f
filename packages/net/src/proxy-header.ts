/**
 * The header of the PROXY protocol, versions 1 and 2 (haproxy.org, proxy-protocol.txt): a balancer writes it before everything
 * else, and says from where the connection came to it. Pure: the same bytes give the same answer, however they arrive.
 */

/** A header of version 1 with its CRLF (§2.1). */
const V1_MAX = 107;
const V1_START = Buffer.from('PROXY ');
const V2_START = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
/** Signature, version and command, family and protocol, length (§2.2). */
const V2_FIXED = 16;
/** Addresses and TLVs that are taken of the 65,535 bytes that a header may name: those of balancers have a few hundred. */
const V2_MAX = 4096;
/** Bytes after which it is known what comes. */
export const MAX_PROXY_HEADER = V2_FIXED + V2_MAX;

const LOCAL = 0;
const CRC32C = 0x03;

/** Bytes of the addresses of a family (§2.2); 0: unspecified, 3: UNIX. */
const FAMILIES: Readonly<Record<number, number>> = { 0: 0, 1: 12, 2: 36, 3: 216 };

export type ProxyHeader =
  | { readonly kind: 'more' }
  /** There is no header. */
  | { readonly kind: 'none' }
  /** @param address undefined: the balancer speaks for itself, or does not know; the address of the connection counts */
  | { readonly kind: 'header'; readonly length: number; readonly address: string | undefined }
  /** It began as a header. */
  | { readonly kind: 'malformed'; readonly reason: string };

const MORE: ProxyHeader = { kind: 'more' };

const malformed = (reason: string): ProxyHeader => ({ kind: 'malformed', reason });

/** @param bytes the first of a connection, as many as have come. `more` is never said of `MAX_PROXY_HEADER` bytes. */
export const readProxyHeader = (bytes: Buffer): ProxyHeader => {
  for (const [start, read] of [[V1_START, readV1] as const, [V2_START, readV2] as const]) {
    const length = Math.min(start.length, bytes.length);
    if (bytes.compare(start, 0, length, 0, length) !== 0) continue;
    return length < start.length ? MORE : read(bytes);
  }
  return { kind: 'none' };
};

const readV1 = (bytes: Buffer): ProxyHeader => {
  const end = bytes.subarray(0, V1_MAX).indexOf('\r\n');
  if (end < 0) return bytes.length < V1_MAX ? MORE : malformed(`no end of line within ${V1_MAX} bytes`);
  const [, family = '', ...told] = bytes.toString('latin1', 0, end).split(' ');
  const length = end + 2;
  if (family === 'UNKNOWN') return { kind: 'header', length, address: undefined };
  if (family !== 'TCP4' && family !== 'TCP6') return malformed('expected TCP4, TCP6 or UNKNOWN');
  const addressOf = family === 'TCP4' ? ipv4Of : ipv6Of;
  const [source, destination, ...ports] = told;
  const address = addressOf(source ?? '');
  if (address === undefined) return malformed(`the source is no address of ${family}`);
  if (addressOf(destination ?? '') === undefined) return malformed(`the destination is no address of ${family}`);
  if (ports.length !== 2 || !ports.every(isPort)) return malformed('expected two ports at its end');
  return { kind: 'header', length, address };
};

const isPort = (text: string): boolean => /^(0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 0xffff;

const ipv4Of = (text: string): string | undefined => {
  const numbers = text.split('.');
  const isAddress =
    numbers.length === 4 && numbers.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255);
  return isAddress ? text : undefined;
};

/** In its shortest form (RFC 5952); one that stands for an IPv4 address as that (RFC 4291 §2.5.5.2). */
const ipv6Of = (text: string): string | undefined => {
  if (!/^[\da-f:.]{2,45}$/i.test(text) || !URL.canParse(`http://[${text}]`)) return undefined;
  const address = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/.exec(address);
  if (mapped === null) return address;
  const [high, low] = [Number.parseInt(mapped[1] ?? '', 16), Number.parseInt(mapped[2] ?? '', 16)];
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
};

const readV2 = (bytes: Buffer): ProxyHeader => {
  if (bytes.length < V2_FIXED) return MORE;
  const [version, command] = [bytes.readUInt8(12) >> 4, bytes.readUInt8(12) & 0xf];
  const [family, protocol] = [bytes.readUInt8(13) >> 4, bytes.readUInt8(13) & 0xf];
  const size = bytes.readUInt16BE(14);
  if (version !== 2) return malformed(`its version is ${version}, expected 2`);
  if (command > 1) return malformed(`its command is ${command}, expected 0 (LOCAL) or 1 (PROXY)`);
  if (size > V2_MAX) return malformed(`it has ${size} bytes of addresses and TLVs, expected ${V2_MAX} at most`);
  const length = V2_FIXED + size;
  if (command === LOCAL) {
    // Whatever it names, the receiver takes the connection's own address (§2.2).
    return bytes.length < length ? MORE : { kind: 'header', length, address: undefined };
  }
  const addresses = FAMILIES[family];
  if (addresses === undefined) return malformed(`its address family is ${family}, expected 0 to 3`);
  if (protocol !== (family === 0 ? 0 : 1)) return malformed(`its protocol is ${protocol}, and this is a stream (1)`);
  if (size < addresses) return malformed(`it has ${size} bytes of addresses, expected ${addresses} or more`);
  if (bytes.length < length) return MORE;
  const fault = faultOfTlvs(bytes.subarray(0, length), V2_FIXED + addresses);
  if (fault !== undefined) return malformed(fault);
  return { kind: 'header', length, address: sourceOf(family, bytes.subarray(V2_FIXED, length)) };
};

/** UNIX sockets have no address that counts here. */
const sourceOf = (family: number, block: Buffer): string | undefined => {
  if (family === 1) return [...block.subarray(0, 4)].join('.');
  if (family !== 2) return undefined;
  return ipv6Of(Array.from({ length: 8 }, (_, index) => block.readUInt16BE(2 * index).toString(16)).join(':'));
};

/** TLVs are passed over, but for a checksum, which has to be right (§2.2.3). */
const faultOfTlvs = (header: Buffer, from: number): string | undefined => {
  let at = from;
  while (at < header.length) {
    const value = at + 3;
    const end = value > header.length ? value : value + header.readUInt16BE(at + 1);
    if (end > header.length) return 'a TLV is longer than the header';
    if (header[at] === CRC32C) {
      if (end - value !== 4) return `its CRC32c has ${end - value} bytes, expected 4`;
      const told = header.readUInt32BE(value);
      const copy = Buffer.from(header).fill(0, value, end);
      if (crc32c(copy) !== told) return 'its CRC32c is wrong';
    }
    at = end;
  }
  return undefined;
};

/** Castagnoli's, reflected (RFC 9260, appendix A). */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  return crc >>> 0;
});

const crc32c = (bytes: Buffer): number => {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (CRC_TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
};
