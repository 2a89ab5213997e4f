import { EventEmitter } from 'node:events';

import { createLogger } from '../logging.js';
import type { Logger } from '../logging.js';

export const silentLogger: Logger = createLogger({ 'log.level': 'silent' }, { name: 'test' });

export interface CapturedLog {
  readonly logger: Logger;
  /** Every line so far, as written. */
  readonly lines: readonly string[];
  /** The lines parsed. */
  entries(): readonly Readonly<Record<string, unknown>>[];
  /** Resolves in the turn in which the next line with this message is written, with its fields. */
  next(message: string): Promise<Readonly<Record<string, unknown>>>;
  /** Forgets the lines so far. */
  clear(): void;
}

/** A logger at `trace` whose lines are kept: what the service would have printed, secrets masked as in production. */
export const captureLog = (): CapturedLog => {
  const lines: string[] = [];
  const written = new EventEmitter<{ line: [Readonly<Record<string, unknown>>] }>();
  const parse = (line: string) => JSON.parse(line) as Readonly<Record<string, unknown>>;
  const write = (line: string): void => {
    lines.push(line);
    if (written.listenerCount('line') > 0) written.emit('line', parse(line));
  };
  const destination = { write };
  return {
    logger: createLogger({ 'log.level': 'trace' }, { name: 'test', destination }),
    lines,
    entries: () => lines.map(parse),
    next: (message) =>
      new Promise((resolve) => {
        const look = (line: Readonly<Record<string, unknown>>): void => {
          if (line['msg'] !== message) return;
          written.off('line', look);
          resolve(line);
        };
        written.on('line', look);
      }),
    clear: () => void lines.splice(0),
  };
};
