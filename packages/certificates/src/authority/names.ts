import { isIP } from 'node:net';

import { AsnConvert } from '@peculiar/asn1-schema';
import { AttributeTypeAndValue, AttributeValue, Name as AsnName, RelativeDistinguishedName } from '@peculiar/asn1-x509';
import { plainText } from '@pesit-node/service';
import { z } from 'zod';

const COMMON_NAME = '2.5.4.3';
const ORGANIZATION = '2.5.4.10';

/** RFC 5280 §A.1: ub-common-name and ub-organization-name. */
export const nameText = () =>
  plainText(64)
    .min(1)
    .regex(/^[^\t\r\n]*$/, 'control characters are not allowed')
    .refine((value) => value.trim() === value, 'a blank at either end is not allowed');

/** A name as DER: each part in UTF-8, the organization first. */
export const nameDer = ({
  commonName,
  organization,
}: {
  commonName: string;
  organization?: string | null;
}): ArrayBuffer => {
  const part = (type: string, text: string) =>
    new RelativeDistinguishedName([
      new AttributeTypeAndValue({ type, value: new AttributeValue({ utf8String: text }) }),
    ]);
  const parts = organization === undefined || organization === null ? [] : [part(ORGANIZATION, organization)];
  return AsnConvert.serialize(new AsnName([...parts, part(COMMON_NAME, commonName)]));
};

export interface AltName {
  readonly type: 'dns' | 'ip' | 'url' | 'email';
  readonly value: string;
}

const KINDS = { DNS: 'dns', IP: 'ip', URI: 'url', EMAIL: 'email' } as const;
const DNS_NAME =
  /^(?=.{1,253}$)(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i;
const EMAIL = /^[\x21-\x3f\x41-\x7e]{1,64}@[a-z0-9.-]{1,190}$/i;
const URI = /^[a-z][a-z0-9+.-]*:[\x21-\x7e]+$/i;

const isValid = { dns: DNS_NAME, url: URI, email: EMAIL } as const;

/** `DNS:`, `IP:`, `URI:`, `email:`, or bare: an address, a mail address, a URI or a host name. */
const readAltName = (text: string): AltName | undefined => {
  const [, kind = '', rest = ''] = /^(DNS|IP|URI|email):(.*)$/i.exec(text) ?? [];
  const named = KINDS[kind.toUpperCase() as keyof typeof KINDS] as AltName['type'] | undefined;
  const value = named === undefined ? text : rest;
  const type = named ?? (isIP(text) !== 0 ? 'ip' : text.includes('://') ? 'url' : text.includes('@') ? 'email' : 'dns');
  const fits = type === 'ip' ? isIP(value) !== 0 : isValid[type].test(value);
  return fits ? { type, value } : undefined;
};

/** Names of the subject in another form (RFC 5280 §4.2.1.6). */
export const sanList = () =>
  z
    .array(
      z
        .string()
        .max(300)
        .refine(
          (text) => readAltName(text) !== undefined,
          'expected DNS:name, IP:address, URI:uri, email:address, or one of them bare',
        ),
    )
    .max(100);

export const altNames = (sans: readonly string[]): readonly AltName[] =>
  sans.map(readAltName).filter((name) => name !== undefined);

/** A domain that a CA may issue for (RFC 5280 §4.2.1.10): itself, and every name below it. */
export const domain = () =>
  z.string().regex(DNS_NAME, 'expected a domain').regex(/^[^*]/, 'expected a domain without *');

export const isWithin = (name: string, domains: readonly string[]): boolean => {
  const plain = name.replace(/^\*\./, '').toLowerCase();
  return domains.some((one) => plain === one.toLowerCase() || plain.endsWith(`.${one.toLowerCase()}`));
};
