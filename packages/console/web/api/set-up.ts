/** What "Set up a partner" makes: a listener with what TLS needs, a virtual file, the partner. */
import { authority, believe, configured, createAuthority, issue, keystores } from './certificates.ts';
import type { Authority, Certificate, Keystore, NewIssued } from './certificates.ts';
import { files, listeners, partners } from './configuration.ts';
import type { Listener, VirtualFile } from './configuration.ts';

/** How a partner proves over TLS who it is: by its password alone, or by a certificate besides. */
export const PROOFS = ['password', 'issued', 'own'] as const;
export type Proof = (typeof PROOFS)[number];

export interface Wish {
  readonly partnerId: string;
  readonly name: string;
  readonly password: string;
  readonly operations: readonly ('READ' | 'WRITE')[];
  /** By which the partner reaches the listener; in the certificate that is issued for it. */
  readonly host: string;
  /** Undefined: a new one. */
  readonly file: VirtualFile | undefined;
  readonly newFile: string;
  /** Undefined: a new one. */
  readonly listener: Listener | undefined;
  readonly newListener: string;
  readonly port: number;
  readonly withTls: boolean;
  /** Of the new listener; empty: one that the local CA issues. */
  readonly keystore: string;
  readonly proof: Proof;
  /** `own`: the certificate of the partner in PEM. */
  readonly own: string;
}

/** What the partner has to know of our side of TLS, and has of its own. */
export interface MadeTls {
  readonly certificate: Certificate | undefined;
  /** The CA at the end of our chain; undefined: the chain does not hold it. */
  readonly ca: Certificate | undefined;
  /** To which the partner is bound; undefined: to none. */
  readonly fingerprint: string | undefined;
  /** Its secrets are here, and never again. */
  readonly issued: NewIssued | undefined;
}

export interface Made extends Omit<Wish, 'file' | 'listener'> {
  readonly file: VirtualFile;
  readonly listener: Listener;
  /** Undefined: without TLS. */
  readonly tls: MadeTls | undefined;
}

export const directionOf = (operations: Wish['operations']): VirtualFile['direction'] =>
  operations.length === 2 ? 'BOTH' : operations[0] === 'READ' ? 'SEND' : 'RECEIVE';

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/;

/** The first certificate of a text: that of the partner, where a chain was given. */
export const certificateIn = (text: string): string | undefined => PEM.exec(text)?.[0];

const LONGEST_NAME = 64;

/** The local CA, made where there is none. */
const authorityFor = async (host: string): Promise<Authority> => {
  const there = await authority(new AbortController().signal);
  return there ?? createAuthority({ commonName: `PeSIT CA ${host}`.slice(0, LONGEST_NAME) });
};

const allKeystores = (): Promise<readonly Keystore[]> => keystores(new AbortController().signal);

/** Of a listener, what it presents. */
const presented = async ({ keystoreName }: Listener): Promise<Pick<MadeTls, 'certificate' | 'ca'>> => {
  const all = await allKeystores();
  const name = keystoreName ?? configured(all);
  const chain = all.find((one) => one.name === name)?.certificates ?? [];
  const top = chain.at(-1);
  return { certificate: chain[0], ca: top !== undefined && top.subject === top.issuer ? top : undefined };
};

/** Makes what a wish takes; what was made already is not made again when a later step is refused. */
export class SetUp {
  #keystore: { readonly host: string; readonly name: string } | undefined;
  #listener: Listener | undefined;
  #file: VirtualFile | undefined;
  #issued: NewIssued | undefined;

  /** @throws {Failure} */
  async make(wish: Wish): Promise<Made> {
    const isTls = wish.withTls && wish.listener?.sslEnabled !== false;
    const trust = isTls && wish.proof !== 'password' ? await this.#trustFor(wish) : undefined;
    const listener = await this.#listenerFor(wish, isTls, trust?.truststore);
    const file = await this.#fileFor(wish);
    const issued = isTls && wish.proof === 'issued' ? await this.#certificateFor(wish) : undefined;
    const fingerprint = issued?.fingerprint ?? trust?.certificate?.fingerprint;
    const { partnerId, name, password, operations } = wish;
    await partners.create({
      ...{ partnerId, password, allowedOperations: operations, tlsRequired: isTls },
      ...{ allowedFiles: [file.fileId], allowedListeners: [listener.serverId] },
      ...(name === '' ? {} : { name }),
      ...(fingerprint === undefined ? {} : { certificateFingerprint: [fingerprint] }),
    });
    const tls = isTls ? { ...(await presented(listener)), fingerprint, issued } : undefined;
    return { ...wish, file, listener, tls };
  }

  /** The truststore that believes the certificate of the partner, or the CA that issues it; `certificate` is the partner's own. */
  async #trustFor({ proof, own, host, listener }: Wish) {
    const name = listener?.truststoreName ?? undefined;
    if (proof === 'own') return believe(certificateIn(own) ?? own, name);
    const { certificate } = await authorityFor(host);
    return { truststore: (await believe(certificate, name)).truststore, certificate: undefined };
  }

  async #listenerFor(wish: Wish, isTls: boolean, truststoreName: string | undefined): Promise<Listener> {
    const { listener, newListener: serverId, port } = wish;
    const asks = truststoreName === undefined ? {} : { truststoreName };
    if (listener !== undefined) {
      const { sslClientAuth, truststoreName: before } = listener;
      if (truststoreName === undefined || (sslClientAuth !== 'NONE' && before !== null)) return listener;
      return listeners.change(listener.serverId, {
        ...asks,
        ...(sslClientAuth === 'NONE' ? { sslClientAuth: 'WANT' } : {}),
      });
    }
    if (this.#listener?.serverId === serverId) return this.#listener;
    const body = isTls
      ? {
          ...{ port: null, tlsPort: port, sslEnabled: true, keystoreName: await this.#keystoreFor(wish), ...asks },
          ...(truststoreName === undefined ? {} : { sslClientAuth: 'WANT' }),
        }
      : { port };
    return (this.#listener = await listeners.create({ serverId, ...body }));
  }

  async #keystoreFor({ keystore, host, newListener }: Wish): Promise<string> {
    if (keystore !== '') return keystore;
    if (this.#keystore?.host === host) return this.#keystore.name;
    await authorityFor(host);
    const taken = new Set((await allKeystores()).map((one) => one.name));
    let name = newListener;
    for (let next = 2; taken.has(name); next += 1) name = `${newListener}-${next}`;
    const commonName = host.length <= LONGEST_NAME ? host : newListener;
    await issue({ name, commonName, sans: [host], ttlDays: 365, kind: 'server' });
    this.#keystore = { host, name };
    return name;
  }

  async #fileFor({ file, newFile, partnerId, operations }: Wish): Promise<VirtualFile> {
    if (file !== undefined) {
      const { allowedPartners } = file;
      if (allowedPartners === null || allowedPartners.includes(partnerId)) return file;
      return files.change(file.fileId, { allowedPartners: [...allowedPartners, partnerId] });
    }
    const fileId = newFile === '' ? partnerId : newFile;
    if (this.#file?.fileId === fileId) return this.#file;
    return (this.#file = await files.create({
      ...{ fileId, direction: directionOf(operations), allowedPartners: [partnerId] },
    }));
  }

  async #certificateFor({ partnerId }: Wish): Promise<NewIssued> {
    if (this.#issued?.name === partnerId) return this.#issued;
    const wanted = { name: partnerId, commonName: partnerId, sans: [], ttlDays: 365, kind: 'partner' } as const;
    return (this.#issued = await issue({ ...wanted, sans: [] }));
  }
}
