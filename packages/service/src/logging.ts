import { pino } from 'pino';
import type { DestinationStream, LogFn, Logger } from 'pino';

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

/** Bytes of lines that are written together. */
const TOGETHER = 4096;
/** How long a line waits for others, milliseconds. */
const WAIT_MS = 250;
/** Lines of this level and above wait for nothing, nor does what was written before them: the process may end with them. */
const AT_ONCE = pino.levels.values['warn'] ?? 40;

/**
 * Lines gather for a while, and pino writes what is left when the process ends by itself, or because of an error. Only with a
 * `minLength` does `flush` wait for what is being written, which `Lifecycle` needs.
 */
const standardOutput = (): { readonly stream: DestinationStream; readonly writeNow: () => void } => {
  const stream = pino.destination({ dest: 1, sync: false, minLength: TOGETHER, periodicFlush: WAIT_MS });
  let isAwaited = false;
  const writeNow = (): void => {
    stream.flush();
    if (isAwaited) return;
    isAwaited = true;
    // While it writes `flush` does nothing, and what came meanwhile would gather again.
    stream.once('drain', () => {
      isAwaited = false;
      stream.flush();
    });
  };
  return { stream, writeNow };
};

/** JSON lines with ISO times; `log.level` of the configuration; secrets masked whatever is logged. */
export const createLogger = (config: Pick<CommonConfig, 'log.level'>, { name, destination }: LoggerOptions): Logger => {
  const { stream, writeNow } =
    destination === undefined ? standardOutput() : { stream: destination, writeNow: () => undefined };
  const options = {
    name,
    level: config['log.level'],
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    hooks: {
      streamWrite: redact,
      logMethod(this: Logger, args: Parameters<LogFn>, method: LogFn, level: number): void {
        method.apply(this, args);
        if (level >= AT_ONCE) writeNow();
      },
    },
  };
  return pino(options, stream);
};
