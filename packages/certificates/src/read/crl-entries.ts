import * as asn1 from 'asn1js';

import { REASON_NAMES } from '../authority/reasons.js';
import type { Reason } from '../authority/reasons.js';
import { bytesOf, DerError, itemsOf, oidOf, readDer } from './der.js';
import type { DerSlice } from './der.js';

/** One entry of a CRL. */
export interface Revoked {
  /** Milliseconds since 1970; undefined: it cannot be read. */
  readonly at: number | undefined;
  readonly reason: Reason;
}

/** An extension (RFC 5280 §4.1). */
export interface CrlExtension {
  readonly oid: string;
  readonly critical: boolean;
  readonly value: Buffer;
}

const REASON_CODE = '2.5.29.21';
const CERTIFICATE_ISSUER = '2.5.29.29';

/** Reads a UTCTime or GeneralizedTime: milliseconds since 1970. */
export const timeOf = (block: asn1.BaseBlock | undefined): number | undefined => {
  if (!(block instanceof asn1.UTCTime || block instanceof asn1.GeneralizedTime)) return undefined;
  const time = block.toDate().getTime();
  return Number.isNaN(time) ? undefined : time;
};

/** @throws {DerError} */
export const extensionsOf = (block: asn1.BaseBlock | undefined): readonly CrlExtension[] =>
  block === undefined
    ? []
    : itemsOf(block).map((extension) => {
        const items = itemsOf(extension);
        const isCritical = items[1] instanceof asn1.Boolean && items[1].valueBlock.value;
        return { oid: oidOf(items[0]), critical: isCritical, value: bytesOf(items.at(-1)) };
      });

const reasonOf = (extensions: readonly CrlExtension[]): Reason => {
  const value = extensions.find(({ oid }) => oid === REASON_CODE)?.value;
  if (value === undefined) return 'unspecified';
  const code = readDer(value);
  const number = code instanceof asn1.Enumerated ? code.valueBlock.valueDec : 0;
  // RFC 5280 §5.3.1: 7 is not used, and what comes behind it counts from 8.
  if (number === 7) return 'unspecified';
  return REASON_NAMES[number > 7 ? number - 1 : number] ?? 'unspecified';
};

export const TIMES: readonly (number | undefined)[] = [0x17, 0x18];
/** The identifier of an extension as it stands in an entry. */
const CERTIFICATE_ISSUER_DER = Buffer.from('0603551d1d', 'hex');

/** RFC 5280 §5.3.3: such an entry and those behind it are certificates of another CA. */
export const isOfAnotherCa = (entry: DerSlice): boolean =>
  entry.content.includes(CERTIFICATE_ISSUER_DER) && extensionsIn(entry).some(({ oid }) => oid === CERTIFICATE_ISSUER);

const extensionsIn = (entry: DerSlice): readonly CrlExtension[] => extensionsOf(itemsOf(readDer(entry.whole))[2]);

/** @returns undefined: the certificate was released. An entry that cannot be read whole revokes nevertheless. */
export const revokedOf = (entry: DerSlice): Revoked | undefined => {
  try {
    const at = timeOf(itemsOf(readDer(entry.whole))[1]);
    const reason = reasonOf(extensionsIn(entry));
    return reason === 'removeFromCRL' ? undefined : { at, reason };
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    return { at: undefined, reason: 'unspecified' };
  }
};
