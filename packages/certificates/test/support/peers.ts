/**
 * Every certificate that a peer may show, with an EC and with an RSA key, and what `openssl verify` says of it: one table for the partners
 * of the server app and for the remote servers of the client app.
 */
import { X509Certificate } from 'node:crypto';

import { beforeAll } from '@jest/globals';
import { TestCa, selfSigned } from '@pesit-node/net/testing/certificates';
import type { TestCertificate, TestCertificateOptions } from '@pesit-node/net/testing/certificates';

import { P256 } from './openssl.js';
import type { Issued, OpenSsl } from './openssl.js';
import { REVOKED, Responder, VALID } from './responder.js';

const DAY_MS = 86_400_000;
const days = (count: number): Date => new Date(Date.now() + count * DAY_MS);

export const KEYS = ['EC', 'RSA'] as const;
export type KeyType = (typeof KEYS)[number];

/** What is shown, and the words of OpenSSL; of a name it says nothing, nor of what a responder knows. */
export const SHOWN = {
  good: 'OK',
  byIntermediate: 'OK',
  otherName: 'OK',
  goodByOcsp: 'OK',
  revokedByOcsp: 'OK',
  revoked: 'certificate revoked',
  belowRevoked: 'certificate revoked',
  expired: 'certificate has expired',
  belowExpired: 'certificate has expired',
  early: 'certificate is not yet valid',
  foreign: 'unable to get local issuer certificate',
  withoutBetween: 'unable to get local issuer certificate',
  selfSigned: 'self-signed certificate',
  otherUse: 'unsuitable certificate purpose',
} as const;
export type Shown = keyof typeof SHOWN;

export interface Peers {
  /** Of which a truststore is made: a root and a CA below it, with their CRLs, and a CA that is asked by OCSP. */
  readonly trust: { readonly certificates: string; readonly crls: string };
  /** The root. */
  readonly ca: TestCa;
  readonly shown: Readonly<Record<Shown, Readonly<Record<KeyType, TestCertificate>>>>;
}

type Pair = Readonly<Record<KeyType, TestCertificate>>;

/** Makes them before the tests of a file, with a responder that stays until its end. @param use what the peers are */
export const usePeers = (openssl: OpenSsl, use: 'client' | 'server'): (() => Peers) => {
  const asked = openssl.ca('asked');
  const responder = new Responder(openssl, asked);
  let peers: Peers;
  beforeAll(async () => {
    await responder.listen();
    peers = await createPeers(openssl, use, asked, responder);
  });
  return () => peers;
};

const both = async (make: (keyType: KeyType) => TestCertificate | Promise<TestCertificate>): Promise<Pair> => ({
  EC: await make('EC'),
  RSA: await make('RSA'),
});
const by = (issuer: TestCa, name: string, options: TestCertificateOptions = {}): Promise<Pair> =>
  both((keyType) => issuer.issue(`${name}-${keyType}`, { keyType, ...options }));

const createPeers = async (
  openssl: OpenSsl,
  use: 'client' | 'server',
  asked: Issued,
  responder: Responder,
): Promise<Peers> => {
  const [ca, other] = [await TestCa.create('Bank CA'), await TestCa.create('Other CA', 'RSA')];
  const issuing = await ca.intermediate('Issuing CA', 'RSA');
  const closed = await ca.intermediate('Closed CA');
  const over = await ca.intermediate('Former CA', 'EC', days(-1));
  const unsent = await ca.intermediate('Unsent CA');
  const byOcsp = (name: string, status: string): Promise<Pair> =>
    both((keyType) => {
      const path = `${name}-${keyType}`;
      const extensions = ['subjectAltName = IP:127.0.0.1', `extendedKeyUsage = ${use}Auth`, responder.at(path)];
      const newKey = keyType === 'EC' ? P256 : ['rsa:2048'];
      const issued = openssl.issue({ name: path, newKey, issuer: asked, extensions });
      responder.says.set(path, responder.ready(issued, status));
      const { serialNumber: serial, fingerprint256: fingerprint } = new X509Certificate(issued.pem);
      return { certificateChain: issued.pem, privateKey: issued.keyPem, serial, fingerprint };
    });

  const shown = {
    good: await by(ca, 'good'),
    byIntermediate: await by(issuing, 'below'),
    otherName: await by(ca, 'elsewhere', { sans: [{ type: 'dns', value: 'elsewhere.example' }] }),
    goodByOcsp: await byOcsp('known', VALID),
    revokedByOcsp: await byOcsp('withdrawn', REVOKED),
    revoked: await by(ca, 'revoked'),
    belowRevoked: await by(closed, 'below-closed'),
    expired: await by(ca, 'expired', { notBefore: days(-20), notAfter: days(-10) }),
    belowExpired: await by(over, 'below-former'),
    early: await by(ca, 'early', { notBefore: days(10), notAfter: days(20) }),
    foreign: await by(other, 'foreign'),
    withoutBetween: await both(async (keyType) => {
      const made = await unsent.issue(`unsent-${keyType}`, { keyType });
      const [leaf = ''] = eachOf(made.certificateChain);
      return { ...made, certificateChain: leaf };
    }),
    selfSigned: await both((keyType) => selfSigned(`alone-${keyType}`, { keyType })),
    otherUse: await by(ca, 'other-use', { usages: [use === 'client' ? 'serverAuth' : 'clientAuth'] }),
  };
  const { EC, RSA } = shown.revoked;
  const crls = [await ca.crl([EC.serial, RSA.serial, closed.serial]), await issuing.crl([])];
  const certificates = [ca.certificate, issuing.certificate, asked.pem].join('');
  openssl.write('closed.crl', await closed.crl([]));
  return { trust: { certificates, crls: crls.join('') }, ca, shown };
};

const OF_LISTS: readonly Shown[] = ['good', 'byIntermediate', 'revoked', 'belowRevoked'];
const eachOf = (pem: string): readonly string[] => pem.split(/(?<=-----END CERTIFICATE-----\n)/);

/** What `openssl verify` says of each, by `<shown>-<key type>`: `OK`, or its first error. Lists are asked where they decide. */
export const verdictsOfOpenSsl = (
  openssl: OpenSsl,
  { trust, shown }: Pick<Peers, 'trust' | 'shown'>,
  use: 'client' | 'server',
): Readonly<Record<string, string>> => {
  const certificates = (Object.keys(SHOWN) as Shown[]).flatMap((name) =>
    KEYS.map((keyType) => ({ name, file: `${name}-${keyType}`, pem: shown[name][keyType].certificateChain })),
  );
  const between = certificates.flatMap(({ pem }) => eachOf(pem).slice(1)).join('');
  const about = [
    '-CAfile',
    openssl.write('trusted', trust.certificates),
    '-untrusted',
    openssl.write('between', between),
  ];
  const lists = openssl.write('lists', `${trust.crls}${openssl.bytes('closed.crl').toString()}`);
  const verdicts: Record<string, string> = {};
  for (const isListed of [false, true]) {
    const asked = certificates.filter(({ name }) => OF_LISTS.includes(name) === isListed);
    for (const { file, pem } of asked) openssl.write(file, pem);
    const said = openssl.tell(
      ...['verify', '-purpose', `ssl${use}`, ...about, ...(isListed ? ['-crl_check_all', '-CRLfile', lists] : [])],
      ...asked.map(({ file }) => file),
    );
    let words = '';
    for (const line of said.split('\n')) {
      const [, good, why, bad] =
        /^(?:(\S+): OK|error \d+ at \d+ depth lookup: (.+)|error (\S+): verification failed)$/.exec(line) ?? [];
      words ||= why ?? '';
      if (good !== undefined) verdicts[good] = 'OK';
      if (bad === undefined) continue;
      verdicts[bad] = words;
      words = '';
    }
  }
  return verdicts;
};
