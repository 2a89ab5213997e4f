/** Finds out from its first bytes what a partner speaks (pesit-e.md §1): a server must not need to be told. Pure: bytes in, verdict out. */
import { fromEbcdic, toEbcdic } from '@pesit-node/protocol';
import type { Dialect } from '@pesit-node/protocol';
import type { Preconnection } from './handler.js';

export type Detection =
  | { readonly kind: 'more' }
  | { readonly kind: 'connect'; readonly dialect: Dialect }
  /** `length` bytes belong to it; `ack` and `nak` are the answers in the partner's own framing. */
  | {
      readonly kind: 'preconnection';
      readonly length: number;
      readonly preconnection: Preconnection;
      readonly ack: Buffer;
      readonly nak: Buffer;
    }
  | { readonly kind: 'tls' }
  | { readonly kind: 'unknown' };

const PESIT = Buffer.from('d7c5e2c9e3', 'hex');
const CFTPSITX = Buffer.from('c3c6e3d7e2c9e3e7', 'hex');
const ACK0 = toEbcdic('ACK0');
const NAK0 = toEbcdic('NAK0');
/** `PESIT   `, identifier, password: 8 bytes each. */
const PESIT_LENGTH = 24;
/** `CFTPSITX`, login, password, 0D25. */
const CFTPSITX_LENGTH = 26;
/** When length-prefixed, with two zero bytes behind it or without; 0D25 and they count in the announced length. */
const CFTPSITX_PREFIXED_LENGTHS: readonly number[] = [28, 26];

/** @param bytes all that was received so far */
export const detect = (bytes: Buffer): Detection => {
  if (startsLike(bytes, PESIT)) return pesit(bytes, 0);
  if (startsLike(bytes, CFTPSITX)) return cftpsitx(bytes, 0, CFTPSITX_LENGTH);
  if (bytes.length >= 2 && bytes[0] === 0x16 && bytes[1] === 0x03) return { kind: 'tls' };
  if (bytes.length < 4) return { kind: 'more' };
  if (bytes[2] === 0x40 && bytes[3] === 0x20) return { kind: 'connect', dialect: 'raw' };
  const length = bytes.readUInt16BE(0);
  const rest = bytes.subarray(2);
  if (length === PESIT_LENGTH && startsLike(rest, PESIT)) return pesit(rest, 2);
  if (CFTPSITX_PREFIXED_LENGTHS.includes(length) && startsLike(rest, CFTPSITX)) return cftpsitx(rest, 2, length);
  if (bytes.length < 6) return { kind: 'more' };
  return bytes[4] === 0x40 && bytes[5] === 0x20 ? { kind: 'connect', dialect: 'length-prefixed' } : { kind: 'unknown' };
};

/** The bytes of a pre-connection as a requester sends it, without length prefix (§3.8.2). */
export const encodePreconnection = (identifier: string, password: string): Buffer =>
  toEbcdic(['PESIT', identifier, password].map((text) => text.slice(0, 8).padEnd(8)).join(''));

/** @returns true for ACK0, false for NAK0, undefined for anything else or too few bytes (bare answer, 4 bytes) */
export const decodePreconnectionAnswer = (bytes: Buffer): boolean | undefined => {
  if (bytes.subarray(0, 4).equals(ACK0)) return true;
  return bytes.subarray(0, 4).equals(NAK0) ? false : undefined;
};

/** True when `bytes`, however short, may be the start of `marker`; at least one byte must be there. */
const startsLike = (bytes: Buffer, marker: Buffer): boolean => {
  const length = Math.min(bytes.length, marker.length);
  return length > 0 && bytes.subarray(0, length).equals(marker.subarray(0, length));
};

const field = (bytes: Buffer, start: number): string => fromEbcdic(bytes.subarray(start, start + 8)).trimEnd();

const pesit = (bytes: Buffer, prefix: 0 | 2): Detection => {
  if (bytes.length < PESIT_LENGTH) return { kind: 'more' };
  const answer = (text: Buffer): Buffer => (prefix === 0 ? text : Buffer.concat([Buffer.from([0, 4]), text]));
  return {
    kind: 'preconnection',
    length: prefix + PESIT_LENGTH,
    preconnection: { marker: 'PESIT', identifier: field(bytes, 8), password: field(bytes, 16) },
    ack: answer(ACK0),
    nak: answer(NAK0),
  };
};

/** The answer echoes 0D25, and has the two zero bytes of the trailer where they came. */
const cftpsitx = (bytes: Buffer, prefix: 0 | 2, length: number): Detection => {
  if (bytes.length < length) return { kind: 'more' };
  const echo = bytes.subarray(PESIT_LENGTH, CFTPSITX_LENGTH);
  const trailer = Buffer.alloc(length - CFTPSITX_LENGTH);
  const announced = Buffer.from([0, ACK0.length + echo.length + trailer.length]);
  const answer = (text: Buffer): Buffer =>
    prefix === 0 ? Buffer.concat([text, echo]) : Buffer.concat([announced, text, echo, trailer]);
  return {
    kind: 'preconnection',
    length: prefix + length,
    preconnection: { marker: 'CFTPSITX', identifier: field(bytes, 8), password: field(bytes, 16) },
    ack: answer(ACK0),
    nak: answer(NAK0),
  };
};
