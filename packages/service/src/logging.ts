import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';

import type { CommonConfig } from './config/keys.js';

export type { Logger } from 'pino';

const NAMES =
  '(?:[\\w.-]{0,60}(?:password|passphrase|passwd)|authorization|proxy-authorization|cookie|set-cookie|secret|secrets\\.key|privateKey|private_key|x-api-key|fileContent)';

/** `"password":"…"` as JSON writes it, and once more escaped, as it looks inside a logged text. */
const FIELD = new RegExp(`("${NAMES}"\\s*:\\s*)(?:"(?:[^"\\\\]|\\\\.)*"|-?[0-9.]+)`, 'gi');
const ESCAPED_FIELD = new RegExp(
  `(\\\\"${NAMES}\\\\"\\s*:\\s*)\\\\"(?:\\\\\\\\(?:\\\\.|[^\\\\])|[^"\\\\]|\\\\[^"\\\\])*\\\\"`,
  'gi',
);
/** `Basic dXNlcjpwYXNz` wherever it stands. */
const CREDENTIALS = /\b(Basic|Bearer) +[A-Za-z0-9+/=._~-]{4,}/gi;
/** `scheme://user:password@host`, for example in a driver's error. */
const USERINFO = /(\b[a-z][a-z0-9+.-]{0,30}:\/\/[^\s:/@"\\]*:)[^\s/"\\]+@/gi;

/**
 * Masks secrets in one finished log line. Done on the text, not on known paths, so that a secret is caught at any depth
 * and inside an error's message too.
 */
export const redact = (line: string): string =>
  line
    .replace(FIELD, '$1"[redacted]"')
    .replace(ESCAPED_FIELD, '$1\\"[redacted]\\"')
    .replace(CREDENTIALS, '$1 [redacted]')
    .replace(USERINFO, '$1[redacted]@');

export interface LoggerOptions {
  /** Name of the service, on every line. */
  readonly name: string;
  /** Default: standard output. */
  readonly destination?: DestinationStream;
}

/** As pino's own. Only with a `minLength` does `flush` wait for what is being written, which `Lifecycle` needs. */
const standardOutput = (): DestinationStream => pino.destination({ dest: 1, sync: false, minLength: 1 });

/** JSON lines with ISO times; `log.level` of the configuration; secrets masked whatever is logged. */
export const createLogger = (config: Pick<CommonConfig, 'log.level'>, { name, destination }: LoggerOptions): Logger => {
  const options = {
    name,
    level: config['log.level'],
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    hooks: { streamWrite: redact },
  };
  return pino(options, destination ?? standardOutput());
};
