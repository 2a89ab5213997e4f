import { createPrivateKey, webcrypto } from 'node:crypto';

import { x509 } from './x509.js';

export const KEY_TYPES = ['EC', 'RSA'] as const;
export type KeyType = (typeof KEY_TYPES)[number];

const ALGORITHMS = {
  EC: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  RSA: { name: 'RSASSA-PKCS1-v1_5', modulusLength: 3072, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
} as const;

export interface KeyPair {
  readonly type: KeyType;
  readonly publicKey: webcrypto.CryptoKey;
  readonly privateKey: webcrypto.CryptoKey;
}

/** P-256, or RSA with 3072 bits. */
export const makeKeys = async (type: KeyType): Promise<KeyPair> => {
  const keys = await webcrypto.subtle.generateKey(ALGORITHMS[type], true, ['sign', 'verify']);
  return { type, ...keys };
};

/** PKCS#8 DER. */
export const exportKey = async (key: webcrypto.CryptoKey): Promise<Buffer> =>
  Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key));

/** The private key of the CA, from PEM. */
export const importKey = async (pem: string) => {
  const key = createPrivateKey(pem);
  const type: KeyType = key.asymmetricKeyType === 'rsa' ? 'RSA' : 'EC';
  const der = key.export({ format: 'der', type: 'pkcs8' });
  const signingKey = await webcrypto.subtle.importKey('pkcs8', der, ALGORITHMS[type], false, ['sign']);
  return { key, signingKey, signingAlgorithm: ALGORITHMS[type] };
};

export type CaKey = Awaited<ReturnType<typeof importKey>>;

export const { KeyUsageFlags } = x509;
