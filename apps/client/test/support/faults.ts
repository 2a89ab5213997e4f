import type { Database } from '@pesit-node/service';
import { loseAnswer } from '@pesit-node/service/testing';

/** The next statement that matches takes effect, but its answer never comes; resolves when that has happened. */
export const answerLost = (database: Database, statement: RegExp): Promise<void> =>
  new Promise((resolve) => {
    loseAnswer(database, statement, resolve);
  });
