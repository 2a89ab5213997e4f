/**
 * The certificate of the REST interface. It is looked up at each handshake, so that nothing has to be told when it changes: files by
 * their inode, size and time (a Secret of Kubernetes is changed by a link), a keystore by asking for it. One that cannot be used changes
 * nothing: the last good one stays.
 *
 * A keystore is in the database, which opens after the port is taken, and it may be created through this very interface. Until it can
 * be used the service shows a certificate that it has made for itself: probes, which check none, are answered from the first moment,
 * and whoever checks it comes no further.
 */
import { X509Certificate } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import type { SecureContext } from 'node:tls';

import { reasonOf } from '@pesit-node/ground';

import type { CommonConfig } from '../config/keys.js';
import type { TlsProtocolConfig } from '../config/ssl-keys.js';
import type { HealthComponent } from '../health/registry.js';
import type { Logger } from '../logging.js';

/** PEM: the own certificate first, then those between it and its CA. */
export interface RestIdentity {
  readonly certificateChain: string;
  readonly privateKey: string;
}

/** TLS and certificates, from the packages that know them. */
export interface HttpsTools {
  /** @throws Error in words when they cannot be used together */
  readonly contextOf: (identity: RestIdentity, protocol: TlsProtocolConfig) => SecureContext;
  /** A certificate that nobody has signed, for as long as there is no other. */
  readonly makeProvisional: () => Promise<RestIdentity>;
}

/** The keystores of the app, once its database is open. */
export interface RestKeystores {
  /** The same object until the keystore holds something else. Rejects in words when it cannot be used. */
  readonly identity: (name: string) => Promise<RestIdentity>;
}

export type RestCertificateConfig = TlsProtocolConfig &
  Pick<CommonConfig, 'server.ssl.keystore-name' | 'server.ssl.certificate-file' | 'server.ssl.key-file'>;

export interface RestCertificateOptions {
  readonly config: RestCertificateConfig;
  readonly tools: HttpsTools;
  readonly logger: Logger;
  /** Clock, milliseconds. Default: one that nobody can set back. */
  readonly now?: () => number;
}

/** The files of the certificate cannot be used at the start; the message names them. */
export class CertificateFileError extends Error {
  override readonly name = 'CertificateFileError';
}

interface InUse {
  /** Which one it is: `of` is the identity of a keystore, or what files looked like. */
  readonly settings: string;
  readonly of: unknown;
  readonly context: SecureContext;
  readonly certificate: X509Certificate;
  readonly isProvisional: boolean;
}

/** An identity with what tells it from its next version. */
interface Found {
  readonly of: unknown;
  readonly read: () => Promise<RestIdentity>;
}

const MAX_FILE_BYTES = 1_048_576;
/** After a failure nobody is asked again for so long: a handshake costs a stranger nothing. */
const PATIENCE_MS = 1000;

export class RestCertificate {
  readonly #config: RestCertificateConfig;
  readonly #tools: HttpsTools;
  readonly #logger: Logger;
  readonly #now: () => number;
  #keystores: RestKeystores | undefined;
  #inUse: InUse;
  #looking: Promise<void> | undefined;
  #problem: string | undefined;
  #notBefore = 0;

  private constructor({ config, tools, logger, now = () => performance.now() }: RestCertificateOptions, inUse: InUse) {
    this.#config = config;
    this.#tools = tools;
    this.#logger = logger;
    this.#now = now;
    this.#inUse = inUse;
  }

  /** @throws {CertificateFileError} when the files cannot be used */
  static async open(options: RestCertificateOptions): Promise<RestCertificate> {
    const { config, tools } = options;
    const settings = settingsOf(config);
    try {
      if (config['server.ssl.certificate-file'] === '') {
        const identity = await tools.makeProvisional();
        const inUse = { settings, of: undefined, ...made(tools, identity, config), isProvisional: true };
        return new RestCertificate(options, inUse);
      }
      const { of, read } = await filesOf(config);
      const inUse = { settings, of, ...made(tools, await read(), config), isProvisional: false };
      return new RestCertificate(options, inUse);
    } catch (error) {
      throw new CertificateFileError(`HTTPS cannot be spoken: ${reasonOf(error)}`, { cause: error });
    }
  }

  /** From now on the keystore can be asked for. */
  useKeystores(keystores: RestKeystores): void {
    this.#keystores = keystores;
  }

  /** For the next handshake. */
  async context(): Promise<SecureContext> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    await this.#looking;
    return this.#inUse.context;
  }

  /** The end of the certificate where it is in files: keystores are watched over with the others. */
  async expiry(): Promise<readonly { readonly name: string; readonly expiresAt: number }[]> {
    await this.context();
    if (this.#config['server.ssl.certificate-file'] === '') return [];
    return [{ name: 'server.ssl.certificate-file', expiresAt: Date.parse(this.#inUse.certificate.validTo) }];
  }

  /** Component `https`. */
  async health(): Promise<HealthComponent> {
    await this.context();
    const { certificate, isProvisional } = this.#inUse;
    const details = { ...factsOf(certificate), from: isProvisional ? 'made at this start' : sourceOf(this.#config) };
    return { status: 'UP', details: { ...details, ...(this.#problem === undefined ? {} : { reason: this.#problem }) } };
  }

  async #look(): Promise<void> {
    if (this.#now() < this.#notBefore) return;
    try {
      const found = await this.#find();
      const settings = settingsOf(this.#config);
      if (found !== undefined && (found.of !== this.#inUse.of || settings !== this.#inUse.settings)) {
        const inUse = { settings, of: found.of, ...made(this.#tools, await found.read(), this.#config) };
        this.#inUse = { ...inUse, isProvisional: false };
        this.#logger.info(
          { ...factsOf(inUse.certificate), from: sourceOf(this.#config) },
          'REST interface: certificate in use',
        );
      }
      if (found !== undefined) this.#problem = undefined;
    } catch (error) {
      this.#notBefore = this.#now() + PATIENCE_MS;
      this.#failed(reasonOf(error));
    }
  }

  /** @returns undefined while the database is not open. */
  async #find(): Promise<Found | undefined> {
    const { 'server.ssl.keystore-name': keystore } = this.#config;
    if (this.#config['server.ssl.certificate-file'] !== '') return filesOf(this.#config);
    const identity = await this.#keystores?.identity(keystore);
    return identity && { of: identity, read: () => Promise.resolve(identity) };
  }

  #failed(reason: string): void {
    if (reason === this.#problem) return;
    this.#problem = reason;
    const { certificate, isProvisional } = this.#inUse;
    const facts = { ...factsOf(certificate), reason };
    if (isProvisional)
      this.#logger.warn(facts, 'REST interface: shows a certificate made at this start until there is another');
    else this.#logger.error(facts, 'REST interface: keeps the certificate that it has');
  }
}

const settingsOf = (config: RestCertificateConfig): string =>
  JSON.stringify([
    ...[config['server.ssl.keystore-name'], config['server.ssl.certificate-file'], config['server.ssl.key-file']],
    ...[config['ssl.protocol'], config['ssl.cipher-suites'], config['ssl.session-cache-size']],
    config['ssl.session-timeout'],
  ]);

const sourceOf = (config: RestCertificateConfig): string =>
  config['server.ssl.certificate-file'] || `keystore ${JSON.stringify(config['server.ssl.keystore-name'])}`;

const factsOf = ({ subject, fingerprint256: fingerprint, validTo }: X509Certificate) => ({
  // Undefined where the certificate has none, whatever its type says.
  subject: ((subject as string | undefined) ?? '').split('\n').reverse().join(','),
  fingerprint,
  notAfter: new Date(validTo).toISOString(),
});

const made = (tools: HttpsTools, identity: RestIdentity, config: RestCertificateConfig) => ({
  context: tools.contextOf(identity, config),
  certificate: new X509Certificate(identity.certificateChain),
});

const filesOf = async (config: RestCertificateConfig): Promise<Found> => {
  const paths = [config['server.ssl.certificate-file'], config['server.ssl.key-file']] as const;
  // One after the other: of two that are wrong it is always the certificate that is named, and nothing is read on behind the failure.
  const read = async (): Promise<RestIdentity> => ({
    certificateChain: await textOf(paths[0]),
    privateKey: await textOf(paths[1]),
  });
  return { of: [await looksOf(paths[0]), await looksOf(paths[1])].join('\n'), read };
};

const looksOf = async (path: string): Promise<string> => {
  const { ino, size, mtimeNs } = await stat(path, { bigint: true });
  return [path, ino, size, mtimeNs].join(' ');
};

const textOf = async (path: string): Promise<string> => {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(MAX_FILE_BYTES + 1) });
    if (bytesRead > MAX_FILE_BYTES) throw new Error(`${path} has more than ${MAX_FILE_BYTES} bytes: expected PEM`);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
};
