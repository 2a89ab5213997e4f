import { createCipheriv, createHmac, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

import * as asn1 from 'asn1js';

import { HashBudget, passwordForms, pkcs12Key, PURPOSE } from '../read/derivation.js';

const derive = promisify(pbkdf2);
/** The password has 128 random bits: more rounds would add nothing, and programs such as .NET open no file with many more. */
const ITERATIONS = 100_000;
/** The integrity check costs us more: it is no secret that an attacker saves by skipping it. */
const MAC_ITERATIONS = 10_000;

const OID = {
  data: '1.2.840.113549.1.7.1',
  encryptedData: '1.2.840.113549.1.7.6',
  shroudedKeyBag: '1.2.840.113549.1.12.10.1.2',
  certificateBag: '1.2.840.113549.1.12.10.1.3',
  x509: '1.2.840.113549.1.9.22.1',
  localKeyId: '1.2.840.113549.1.9.21',
  pbes2: '1.2.840.113549.1.5.13',
  pbkdf2: '1.2.840.113549.1.5.12',
  hmacSha256: '1.2.840.113549.2.9',
  aes256: '2.16.840.1.101.3.4.1.42',
  sha256: '2.16.840.1.101.3.4.2.1',
} as const;

type Block = asn1.BaseBlock;

const seq = (...value: readonly Block[]): Block => new asn1.Sequence({ value: [...value] as never });
const set = (...value: readonly Block[]): Block => new asn1.Set({ value: [...value] as never });
const oid = (value: string): Block => new asn1.ObjectIdentifier({ value });
const int = (value: number): Block => new asn1.Integer({ value });
const octets = (bytes: Uint8Array): Block => new asn1.OctetString({ valueHex: new Uint8Array(bytes).buffer });
const explicit = (value: Block): Block =>
  new asn1.Constructed({ idBlock: { tagClass: 3, tagNumber: 0 }, value: [value] as never });
const der = (block: Block): Buffer => Buffer.from(block.toBER());

/** PBES2 with AES-256 and PBKDF2 (RFC 8018 §6.2). */
const encrypt = async (
  plain: Buffer,
  password: string,
): Promise<{ readonly algorithm: Block; readonly data: Buffer }> => {
  const [salt, iv] = [randomBytes(16), randomBytes(16)];
  const key = await derive(Buffer.from(password, 'utf8'), salt, ITERATIONS, 32, 'sha256');
  const cipher = createCipheriv('aes-256-cbc', key, iv);
  const prf = seq(oid(OID.hmacSha256), new asn1.Null());
  const kdf = seq(oid(OID.pbkdf2), seq(octets(salt), int(ITERATIONS), prf));
  return {
    algorithm: seq(oid(OID.pbes2), seq(kdf, seq(oid(OID.aes256), octets(iv)))),
    data: Buffer.concat([cipher.update(plain), cipher.final()]),
  };
};

/**
 * A PKCS#12 (RFC 7292) with one key and its chain, encrypted as OpenSSL 3 does.
 * @param key PKCS#8 DER
 * @param chain DER, leaf first
 */
export const writePkcs12 = async (key: Buffer, chain: readonly Buffer[], password: string): Promise<Buffer> => {
  const ownKey = seq(oid(OID.localKeyId), set(octets(Buffer.from([1]))));
  const bags = chain.map((certificate, index) => {
    const bag = explicit(seq(oid(OID.x509), explicit(octets(certificate))));
    return seq(oid(OID.certificateBag), bag, ...(index === 0 ? [set(ownKey)] : []));
  });
  const certificates = await encrypt(der(seq(...bags)), password);
  const content = new asn1.Primitive({
    idBlock: { tagClass: 3, tagNumber: 0 },
    valueHex: new Uint8Array(certificates.data).buffer,
  });
  const encrypted = seq(int(0), seq(oid(OID.data), certificates.algorithm, content));
  const shrouded = await encrypt(key, password);
  const keyBag = seq(oid(OID.shroudedKeyBag), explicit(seq(shrouded.algorithm, octets(shrouded.data))), set(ownKey));
  const safe = der(
    seq(seq(oid(OID.encryptedData), explicit(encrypted)), seq(oid(OID.data), explicit(octets(der(seq(keyBag)))))),
  );
  const salt = randomBytes(16);
  const [form = Buffer.alloc(0)] = passwordForms(password);
  const how = { purpose: PURPOSE.mac, salt, iterations: MAC_ITERATIONS, hash: 'sha256' };
  const macKey = await pkcs12Key(new HashBudget('pkcs12'), form, how, 32);
  const mac = createHmac('sha256', macKey).update(safe).digest();
  const digest = seq(seq(oid(OID.sha256), new asn1.Null()), octets(mac));
  return der(seq(int(3), seq(oid(OID.data), explicit(octets(safe))), seq(digest, octets(salt), int(MAC_ITERATIONS))));
};
