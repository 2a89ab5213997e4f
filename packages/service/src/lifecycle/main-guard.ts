import { ConfigError } from '../config/load.js';
import { DatabaseTlsError } from '../database/database-tls.js';
import { DirectoryLockedError } from '../database/directory-lock.js';
import { EmbeddedDatabaseError } from '../database/embedded/error.js';
import { isError } from '@pesit-node/ground';
import { DataDirectoryError } from './data-directory.js';
import { ListenError } from './listen.js';

export type ErrorClass = abstract new (...args: never[]) => Error;

/** The part of `process` that `main.ts` needs. */
export interface MainProcess {
  readonly stderr: { write(text: string): unknown };
  exit(code: number): void;
}

/**
 * Runs the start of an app; when it fails, ends the process with code 1. An error that an operator can correct is printed as a sentence;
 * anything else keeps its stack.
 * @param explained classes of such errors besides those of this package
 */
export const runMain = async (
  process: MainProcess,
  explained: readonly ErrorClass[],
  start: () => Promise<void>,
): Promise<void> => {
  try {
    await start();
  } catch (error) {
    const sentences: readonly ErrorClass[] = [
      ConfigError,
      DataDirectoryError,
      DatabaseTlsError,
      DirectoryLockedError,
      EmbeddedDatabaseError,
      ListenError,
      ...explained,
    ];
    const isSentence = sentences.some((one) => error instanceof one);
    const text = isError(error) ? (isSentence ? error.message : (error.stack ?? error.message)) : String(error);
    process.stderr.write(`${text}\n`);
    process.exit(1);
  }
};
