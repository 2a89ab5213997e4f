import { logWords, PesitError } from '@pesit-node/protocol';
import type { EventStream, Logger } from '@pesit-node/service';
import { SESSION_OPENED, SESSION_REFUSED, SESSION_TOLERATED } from '@pesit-node/transfers';

/** The lines of the log about sessions with remote servers, from their events. */
export const logExchange = (events: EventStream, logger: Logger): void => {
  events.subscribe(SESSION_OPENED, ({ session, facts }) => {
    logger.info({ ...session.facts, ...facts }, 'session opened');
  });
  events.subscribe(SESSION_TOLERATED, ({ session, text }) => {
    logger.info({ ...session.facts, notice: text }, 'tolerated a deviation of the partner');
  });
  events.subscribe(SESSION_REFUSED, ({ session, error, facts }) => {
    const words = error instanceof PesitError ? logWords(error) : {};
    logger.warn({ ...session.facts, ...facts, ...words }, 'session refused by the remote server, or not opened');
  });
};
