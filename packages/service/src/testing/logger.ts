import { createLogger } from '../logging.js';
import type { Logger } from '../logging.js';

export const silentLogger: Logger = createLogger({ 'log.level': 'silent' }, { name: 'test' });

export interface CapturedLog {
  readonly logger: Logger;
  /** Every line so far, as written. */
  readonly lines: readonly string[];
  /** The lines parsed. */
  entries(): readonly Readonly<Record<string, unknown>>[];
  /** Forgets the lines so far. */
  clear(): void;
}

/** A logger at `trace` whose lines are kept: what the service would have printed, secrets masked as in production. */
export const captureLog = (): CapturedLog => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return {
    logger: createLogger({ 'log.level': 'trace' }, { name: 'test', destination }),
    lines,
    entries: () => lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>),
    clear: () => void lines.splice(0),
  };
};
