/** Keystores and truststores, which both apps have alike, and the local CA of the server app. */
import { Failure } from './failure.ts';
import { answerOf, serverApp } from './rest.ts';
import { app } from './session.ts';
import type { components } from './generated/server.ts';

export type Keystore = components['schemas']['Keystore'];
export type Truststore = components['schemas']['Truststore'];
export type Certificate = components['schemas']['Certificate'];
export type Authority = components['schemas']['Authority'];
export type Issued = components['schemas']['IssuedCertificateState'];
export type NewIssued = components['schemas']['IssuedCertificate'];
export type Reason = NonNullable<Issued['reason']>;
export type Kind = 'keystores' | 'truststores';

export const REASONS = [
  ...(['unspecified', 'keyCompromise', 'superseded', 'cessationOfOperation', 'affiliationChanged'] as const),
  ...(['privilegeWithdrawn', 'cACompromise'] as const),
] as const satisfies readonly Reason[];

export const keystores = (signal: AbortSignal): Promise<readonly Keystore[]> =>
  answerOf(serverApp.GET('/api/v1/certificates/keystores', { signal }));

export const truststores = (signal: AbortSignal): Promise<readonly Truststore[]> =>
  answerOf(serverApp.GET('/api/v1/certificates/truststores', { signal }));

/** Null: there is none; the client app never has one. */
export const authority = async (signal: AbortSignal): Promise<Authority | null> => {
  if (app.value === 'client') return null;
  try {
    return await answerOf(serverApp.GET('/api/v1/certificates/ca', { signal }));
  } catch (error) {
    if (error instanceof Failure && error.status === 404) return null;
    throw error;
  }
};

/** More are not shown: the newest ones. */
const MOST = '200';

export interface IssuedOnes {
  readonly content: readonly Issued[];
  readonly total: number;
}

export const issued = async (signal: AbortSignal): Promise<IssuedOnes> => {
  if (app.value === 'client') return { content: [], total: 0 };
  const query = { page: '0', size: MOST };
  const { content, totalElements: total } = await answerOf(
    serverApp.GET('/api/v1/certificates/issued', { params: { query }, signal }),
  );
  return { content, total };
};

export interface Upload {
  readonly name: string;
  readonly file: File;
  /** Of a keystore: opens it. */
  readonly password?: string | undefined;
}

/** PEM, or of a keystore PKCS#12. The fields come before the file, as the service reads them. */
const formOf = ({ name, file, password }: Upload): { name: string; file: string } => {
  const form = new FormData();
  form.set('name', name);
  if (password !== undefined) form.set('password', password);
  form.set('file', file);
  return form as unknown as { name: string; file: string };
};

/** @param old in whose place it comes; undefined: it is a new one. @returns what the service has to say of it */
export const putStore = async (kind: Kind, upload: Upload, old?: string): Promise<readonly string[]> => {
  const body = formOf(upload);
  if (kind === 'keystores') {
    const made =
      old === undefined
        ? serverApp.POST('/api/v1/certificates/keystores', { body })
        : serverApp.PUT('/api/v1/certificates/keystores/{name}', { params: { path: { name: old } }, body });
    return (await answerOf<Keystore>(made)).warnings;
  }
  const made =
    old === undefined
      ? serverApp.POST('/api/v1/certificates/truststores', { body })
      : serverApp.PUT('/api/v1/certificates/truststores/{name}', { params: { path: { name: old } }, body });
  return (await answerOf<Truststore>(made)).warnings;
};

/** The certificates of a truststore. */
export const certificatesIn = ({ certificates }: Pick<Truststore, 'certificates'>): readonly Certificate[] =>
  typeof certificates === 'string' ? [] : certificates;

const NAME_OF_PARTNERS = 'partners';
/** A certificate in PEM, told from another one whatever its line ends. */
const plain = (pem: string): string => pem.replace(/\s/g, '');

/**
 * Has a truststore believe one more certificate.
 * @param name undefined: the one of the configuration, else `partners`, which is made where there is none
 * @returns the truststore, and the certificate as the service reads it
 */
export const believe = async (
  pem: string,
  name: string | undefined,
): Promise<{ readonly truststore: string; readonly certificate: Certificate | undefined }> => {
  const all = await answerOf(serverApp.GET('/api/v1/certificates/truststores', {}));
  const asked = name ?? configured(all) ?? NAME_OF_PARTNERS;
  const store = all.find((one) => one.name === asked);
  const inside = store === undefined ? [] : certificatesIn(store);
  const read = (ones: readonly Certificate[]): Certificate | undefined =>
    ones.find((one) => plain(one.pem) === plain(pem));
  if (read(inside) !== undefined) return { truststore: asked, certificate: read(inside) };
  const certificates = [...inside.map((one) => one.pem.trim()), pem.trim(), ''].join('\n');
  const after = await answerOf(
    store === undefined
      ? serverApp.POST('/api/v1/certificates/truststores', { body: { name: asked, certificates, crlUrls: [] } })
      : serverApp.PUT('/api/v1/certificates/truststores/{name}', {
          params: { path: { name: asked } },
          body: { certificates },
        }),
  );
  return { truststore: asked, certificate: read(certificatesIn(after)) };
};

interface Store {
  readonly name: string;
  readonly usedBy: Keystore['usedBy'];
}

/** The store that the configuration names for whoever names none. */
export const configured = (all: readonly Store[]): string | undefined =>
  all.find(({ usedBy }) => usedBy.some(({ name }) => /^ssl\.(?:key|trust)store-name$/.test(name)))?.name;

/** Where the leader fetches the CRLs of a truststore. */
export const setCrlUrls = async (name: string, crlUrls: string[]): Promise<void> => {
  const params = { path: { name } };
  await answerOf(serverApp.PUT('/api/v1/certificates/truststores/{name}', { params, body: { crlUrls } }));
};

export const deleteStore = async (kind: Kind, name: string): Promise<void> => {
  const of = { params: { path: { name } } };
  if (kind === 'keystores') await answerOf(serverApp.DELETE('/api/v1/certificates/keystores/{name}', of));
  else await answerOf(serverApp.DELETE('/api/v1/certificates/truststores/{name}', of));
};

/** Of a keystore that the local CA manages. */
export const rotate = async (name: string): Promise<void> => {
  await answerOf(serverApp.POST('/api/v1/certificates/keystores/{name}/rotate', { params: { path: { name } } }));
};

type NewAuthority = Partial<components['schemas']['CreateAuthority']> & { readonly commonName: string };

export const createAuthority = (given: NewAuthority): Promise<Authority> =>
  answerOf(
    serverApp.POST('/api/v1/certificates/ca', {
      body: { validityDays: 3650, keyType: 'EC', permittedDomains: [], ...given },
    }),
  );

export interface Wanted {
  readonly name: string;
  readonly commonName: string;
  readonly sans: string[];
  readonly ttlDays: number;
  readonly kind: 'server' | 'partner';
  /** Default: EC, which is P-256. */
  readonly keyType?: KeyType;
  /** PEM: it is signed, and no key is made. */
  readonly csr?: string;
}

export type KeyType = components['schemas']['CreateAuthority']['keyType'];

export const issue = (wanted: Wanted): Promise<NewIssued> =>
  answerOf(serverApp.POST('/api/v1/certificates/issue', { body: { keyType: 'EC', ...wanted } }));

export const revoke = async (serial: string, reason: Reason): Promise<void> => {
  await answerOf(serverApp.POST('/api/v1/certificates/revoked', { body: { serial, reason } }));
};

/** The bytes of a PKCS#12 that was issued. */
export const pkcs12Bytes = ({ pkcs12 = '' }: NewIssued): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(pkcs12), (letter) => letter.charCodeAt(0));

/** Days from now, less than one counts as none; negative: it has ended. */
export const daysLeft = (notAfter: string, now = Date.now()): number =>
  Math.floor((Date.parse(notAfter) - now) / 86_400_000);

/** When the first of these ends; undefined: there is none. */
export const firstEnd = (certificates: readonly Certificate[]): string | undefined =>
  certificates.map(({ notAfter }) => notAfter).sort()[0];
