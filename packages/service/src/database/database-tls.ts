/**
 * TLS with PostgreSQL, as `sslmode` of libpq means it. The driver means something else by it (every mode but `disable` checks chain and
 * name), and asks the environment where the URL says nothing; so it is never asked: the URL reaches it without these words, and it gets
 * the terms of TLS, made anew from their files for each connection, so that a renewed CA needs no restart.
 */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';

import { codeOf, reasonOf } from '@pesit-node/ground';

export const DATABASE_SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
export type DatabaseSslMode = (typeof DATABASE_SSL_MODES)[number];

/** Keys of the configuration; empty: as the URL says. */
export interface DatabaseSslKeys {
  readonly 'database.ssl.mode': DatabaseSslMode | '';
  readonly 'database.ssl.ca-file': string;
  readonly 'database.ssl.certificate-file': string;
  readonly 'database.ssl.key-file': string;
}

export interface DatabaseTls {
  readonly mode: DatabaseSslMode;
  /** Without what it says of TLS. */
  readonly url: string;
  /** Terms of the next connection. @throws {DatabaseTlsError} when their files cannot be read */
  readonly terms: () => ConnectionOptions | false;
}

/** TLS with PostgreSQL cannot be spoken as it is asked for; the message says why. */
export class DatabaseTlsError extends Error {
  override readonly name = 'DatabaseTlsError';
}

const NO_KEYS: DatabaseSslKeys = {
  'database.ssl.mode': '',
  'database.ssl.ca-file': '',
  'database.ssl.certificate-file': '',
  'database.ssl.key-file': '',
};

/** The older `ssl` of the driver, and the modes that promise nothing. */
const SAID_BY_SSL: Readonly<Record<string, DatabaseSslMode>> = {
  ...{ true: 'verify-full', '1': 'verify-full', false: 'disable', '0': 'disable', 'no-verify': 'require' },
};

/** @throws {DatabaseTlsError} for a mode that there is not */
const modeOf = (query: URLSearchParams, keys: DatabaseSslKeys, hasCa: boolean): DatabaseSslMode => {
  const said = query.get('sslmode');
  const asked = keys['database.ssl.mode'] || (said ?? SAID_BY_SSL[query.get('ssl') ?? '']);
  if (asked === undefined) return hasCa ? 'verify-full' : 'disable';
  const mode = asked === 'no-verify' ? 'require' : asked;
  if (mode === 'prefer' || mode === 'allow') {
    throw new DatabaseTlsError(
      `sslmode ${mode} promises nothing, for whoever is on the line can ask for plain text: expected ${DATABASE_SSL_MODES.join(', ')}`,
    );
  }
  const known = DATABASE_SSL_MODES.find((one) => one === mode);
  if (known === undefined) {
    throw new DatabaseTlsError(
      `sslmode: expected ${DATABASE_SSL_MODES.join(', ')}, got ${JSON.stringify(mode.slice(0, 50))}`,
    );
  }
  // As libpq does since it has these words: who names a CA wants it to be asked.
  return known === 'require' && hasCa ? 'verify-ca' : known;
};

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new DatabaseTlsError(`TLS with PostgreSQL cannot be spoken: ${reasonOf(error)}`, { cause: error });
  }
};

/** @throws {DatabaseTlsError} for words that mean nothing */
export const databaseTls = (url: string, keys: DatabaseSslKeys = NO_KEYS): DatabaseTls => {
  const whole = new URL(url);
  const query = whole.searchParams;
  const ca = keys['database.ssl.ca-file'] || (query.get('sslrootcert') ?? '');
  const cert = keys['database.ssl.certificate-file'] || (query.get('sslcert') ?? '');
  const key = keys['database.ssl.key-file'] || (query.get('sslkey') ?? '');
  if ((cert === '') !== (key === '')) {
    throw new DatabaseTlsError(
      'database.ssl.certificate-file and database.ssl.key-file: expected both of them, or none',
    );
  }
  // A socket of this machine: nobody is on that line.
  const isLocal = (query.get('host') ?? decodeURIComponent(whole.hostname)).startsWith('/');
  const mode = isLocal ? 'disable' : modeOf(query, keys, ca !== '');
  for (const name of ['sslmode', 'ssl', 'sslrootcert', 'sslcert', 'sslkey']) query.delete(name);
  const terms = (): ConnectionOptions | false =>
    mode === 'disable'
      ? false
      : {
          minVersion: 'TLSv1.2',
          rejectUnauthorized: mode !== 'require',
          ...(ca === '' ? {} : { ca: textOf(ca) }),
          ...(cert === '' ? {} : { cert: textOf(cert), key: textOf(key) }),
          ...(mode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
        };
  return { mode, url: whole.href, terms };
};

const UNKNOWN_CA =
  /^(?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE)$/;

/** Puts a handshake with PostgreSQL that failed into words; any other error stays as it is. */
export const explainTls = (error: unknown, description: string): unknown => {
  const [code = '', reason] = [codeOf(error), reasonOf(error)];
  const hint = UNKNOWN_CA.test(code)
    ? 'name the CA of its certificate in database.ssl.ca-file'
    : code === 'ERR_TLS_CERT_ALTNAME_INVALID'
      ? 'call it by a name of its certificate, or set database.ssl.mode to verify-ca'
      : code === 'CERT_HAS_EXPIRED'
        ? 'the database needs a new certificate'
        : reason === 'The server does not support SSL connections'
          ? 'switch ssl on there, or set database.ssl.mode to disable'
          : undefined;
  if (hint === undefined) return error;
  return new Error(`TLS with PostgreSQL at ${description} failed (${reason}): ${hint}`, { cause: error });
};
