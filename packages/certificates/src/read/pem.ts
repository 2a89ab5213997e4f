import { BOUNDS } from '../bounds.js';
import { unreadable } from '../faults.js';
import type { UploadField } from '../faults.js';

/** One block of a PEM text (RFC 7468). */
export interface PemBlock {
  readonly label: string;
  readonly der: Buffer;
  /** As it stands in the text, with its headers. */
  readonly text: string;
}

const BEGIN = '-----BEGIN ';
const LABEL = /^-----BEGIN ([A-Z0-9 ]{1,40})-----/;
/** No blank can be read in two ways: a megabyte of them before a wrong character would take minutes. */
const BASE64 = /^[A-Za-z0-9+/\s]*(?:=\s*){0,2}$/;
/** RFC 1421 §4.6.1, as OpenSSL writes it before a key in its own encryption. */
const HEADERS = /^(?:[\w-]+: .*\r?\n)+\r?\n/;

/**
 * The blocks of a PEM text, in one pass; text around them, as `openssl pkcs12` writes it, is ignored.
 * @param most blocks
 * @param bytes of the text, at most
 * @throws {UploadError} naming `field`
 */
export const readPem = (
  text: string,
  field: UploadField,
  most: number = BOUNDS.certificates,
  bytes: number = BOUNDS.storeBytes,
): readonly PemBlock[] => {
  if (text.length > bytes) {
    throw unreadable(field, `expected at most ${bytes} bytes, got ${text.length}`);
  }
  const blocks: PemBlock[] = [];
  for (let from = text.indexOf(BEGIN); from !== -1; from = text.indexOf(BEGIN, from + 1)) {
    const label = LABEL.exec(text.slice(from, from + 64))?.[1];
    const number = blocks.length + 1;
    if (label === undefined) throw unreadable(field, `block ${number} has no line -----BEGIN …-----`);
    const end = `-----END ${label}-----`;
    const until = text.indexOf(end, from);
    if (until === -1) throw unreadable(field, `block ${number} (${label}) has no line ${end}: is it cut off?`);
    const inside = text.slice(from + BEGIN.length + label.length + 5, until).trimStart();
    const base64 = inside.replace(HEADERS, '');
    if (!BASE64.test(base64)) throw unreadable(field, `block ${number} (${label}) is not base64`);
    if (number > most) throw unreadable(field, `expected at most ${most} blocks, got more`);
    blocks.push({ label, der: Buffer.from(base64, 'base64'), text: text.slice(from, until + end.length) });
    from = until;
  }
  return blocks;
};

/** A block of PEM, lines of 64 characters (RFC 7468 §2). */
export const writePem = (label: string, der: Uint8Array): string => {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
};
