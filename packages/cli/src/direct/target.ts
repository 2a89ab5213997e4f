/** With whom a command talks PeSIT, and how: from its flags. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';

import { NO_SYNC, SessionTrace } from '@pesit-node/protocol';
import type { Dialect } from '@pesit-node/protocol';
import { connectTls, TlsClientTerms, TlsMaterialError } from '@pesit-node/net';
import type { RequesterOptions, TlsIdentity, WireObserver } from '@pesit-node/net';

import type { Environment, Given } from '../frame/command.js';
import { CliError, usageError } from '../frame/exit-codes.js';
import { DEFAULTS } from './flags.js';

const LONGEST_PASSWORD_FILE = 4096;

/** @throws CliError local */
const readText = async (flag: string, path: string): Promise<string> => {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new CliError('local', `--${flag}: ${path} cannot be read (${(error as Error).message})`, { cause: error });
  }
};

/** The first line of standard input. */
const readLine = async (input: Environment['input']): Promise<string> => {
  let text = '';
  for await (const chunk of input) {
    text += chunk.toString();
    if (text.includes('\n') || text.length > LONGEST_PASSWORD_FILE) break;
  }
  return text;
};

/** @returns undefined: none was given */
const passwordFrom = async (given: Given, { directory, input }: Environment): Promise<string | undefined> => {
  const file = given.text('password-file');
  if (file === undefined) return given.text('password');
  const text = file === '-' ? await readLine(input) : await readText('password-file', resolve(directory, file));
  const [line = ''] = text.split(/\r?\n/);
  if (line === '') throw usageError('--password-file: its first line is empty');
  return line;
};

const FINGERPRINT = /^(?:[0-9A-F]{2}:?){31}[0-9A-F]{2}$/;

const fingerprintsIn = (given: Given): readonly string[] =>
  given.list('pin').map((text) => {
    const upper = text.toUpperCase();
    if (!FINGERPRINT.test(upper)) {
      throw usageError(`--pin: expected a SHA-256 fingerprint, 32 bytes in hex, got ${JSON.stringify(text)}`);
    }
    return (upper.replaceAll(':', '').match(/../g) ?? []).join(':');
  });

const identityFrom = async (given: Given, directory: string): Promise<TlsIdentity | undefined> => {
  const cert = given.text('cert');
  const key = given.text('key') ?? cert;
  if (cert === undefined || key === undefined) {
    if (key !== undefined) throw usageError('--key needs --cert: the certificate that it belongs to');
    return undefined;
  }
  return {
    certificateChain: await readText('cert', resolve(directory, cert)),
    privateKey: await readText('key', resolve(directory, key)),
  };
};

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

const tlsFrom = async (given: Given, directory: string): Promise<TlsClientTerms | undefined> => {
  if (!given.has('tls')) {
    const stray = ['ca', 'cert', 'key', 'tls-name'].find((name) => given.text(name) !== undefined);
    if (stray !== undefined || given.list('pin').length > 0) throw usageError(`--${stray ?? 'pin'} needs --tls`);
    return undefined;
  }
  const ca = given.text('ca');
  const trusted = ca === undefined ? undefined : (await readText('ca', resolve(directory, ca))).match(PEM_CERTIFICATE);
  if (trusted === null) throw new CliError('local', `--ca: there is no certificate (PEM) in ${ca ?? ''}`);
  const identity = await identityFrom(given, directory);
  const fingerprints = fingerprintsIn(given);
  try {
    return new TlsClientTerms({
      identity,
      trust: trusted === undefined ? undefined : { certificates: trusted },
      serverName: given.text('tls-name'),
      fingerprints,
    });
  } catch (error) {
    if (!(error instanceof TlsMaterialError)) throw error;
    throw new CliError('local', `TLS cannot be used: ${error.message}`, { cause: error });
  }
};

/** Says each message of a session. */
const tracer = (dialect: Dialect, { terminal }: Environment): WireObserver => {
  const trace = new SessionTrace(dialect);
  return (direction, bytes) => {
    for (const { text } of trace.take(direction, bytes, 0))
      terminal.note(`${direction === 'sent' ? '-->' : '<--'} ${text}`);
  };
};

/** With whom a command talks, and how. */
export interface Target {
  /** Made anew for each session, as a trace is of one. */
  readonly options: () => RequesterOptions;
  /** Tells one server and partner from another. */
  readonly identity: readonly (string | number)[];
}

/**
 * @param accessType PI 22
 * @throws CliError usage or local
 */
export const targetOf = async (given: Given, environment: Environment, accessType: 0 | 1 | 2): Promise<Target> => {
  const isSecured = given.has('tls');
  const host = given.required('host');
  const port = given.number('port') ?? (isSecured ? DEFAULTS.tlsPort : DEFAULTS.port);
  const server = given.required('server-id');
  const requester = given.required('partner');
  const dialect = (given.text('dialect') ?? 'length-prefixed') as Dialect;
  const milliseconds = (given.number('timeout') ?? DEFAULTS.timeoutSeconds) * 1000;
  const intervalKb = given.number('sync-interval') ?? DEFAULTS.syncIntervalKb;
  const window = given.number('sync-window') ?? DEFAULTS.syncWindow;
  const password = await passwordFrom(given, environment);
  const terms = await tlsFrom(given, environment.directory);
  const identifier = given.text('preconnect-id');
  return {
    identity: [host, port, server, requester],
    options: () => ({
      ...{ host, port, dialect, connectTimeout: milliseconds },
      timers: { response: milliseconds, write: milliseconds },
      ...(terms === undefined ? {} : { transport: connectTls(() => terms) }),
      ...(identifier === undefined
        ? {}
        : { preconnection: { identifier, password: given.text('preconnect-password') ?? '' } }),
      ...(given.has('trace') ? { observer: tracer(dialect, environment) } : {}),
      connect: {
        ...{ requester, server, password, accessType },
        syncPoints: intervalKb === 0 ? NO_SYNC : { intervalKb, window },
        crc: given.has('crc'),
      },
    }),
  };
};
