import { logWords, PesitError } from '@pesit-node/protocol';
import type { EventStream, Logger } from '@pesit-node/service';
import {
  logAsides,
  PEER_UNCHECKED,
  SESSION_ENDED,
  SESSION_OPENED,
  SESSION_REFUSED,
  SESSION_TOLERATED,
} from '@pesit-node/transfers';

import {
  ATTEMPT_ENDED,
  ATTEMPT_STARTED,
  ATTEMPT_STARTED_OVER,
  CIRCUIT_CHANGED,
  CONNECTION_TESTED,
  SESSION_TAKEN,
} from './events.js';

const ENDS = {
  completed: ['info', 'transfer completed'],
  failed: ['warn', 'transfer failed'],
  'put off': ['warn', 'transfer will be tried again'],
  interrupted: ['warn', 'transfer interrupted'],
} as const;

/**
 * The lines of the log about sessions with remote servers and about attempts of transfers, from their events: at `info` one for each
 * transfer, which says all; how it came about is at `debug`.
 */
export const logExchange = (events: EventStream, logger: Logger): void => {
  logAsides(events, logger, 'transferId');
  events.subscribe(SESSION_OPENED, ({ session, facts }) => {
    logger.debug({ ...session.facts, ...facts }, 'session opened');
  });
  events.subscribe(SESSION_TAKEN, ({ session, transfer: transferId, reused }) => {
    logger.debug({ ...session.facts, transferId, reused }, 'session taken');
  });
  events.subscribe(SESSION_ENDED, ({ session }) => {
    logger.debug(session.facts, 'session closed');
  });
  events.subscribe(CONNECTION_TESTED, ({ session: { facts }, latency, error }) => {
    const { server } = facts;
    if (error === undefined) logger.info({ server, latency }, 'connection test succeeded');
    else logger.warn({ server, ...logWords(error) }, 'connection test failed');
  });
  events.subscribe(CIRCUIT_CHANGED, ({ server, state, reason }) => {
    if (state === 'open')
      logger.warn({ server, reason }, 'circuit opened: transfers of the remote server wait, one at a time tries it');
    else logger.info({ server }, 'circuit closed: transfers of the remote server go again');
  });
  events.subscribe(ATTEMPT_STARTED, (facts) => {
    logger.debug(facts, 'transfer started');
  });
  events.subscribe(ATTEMPT_STARTED_OVER, (facts) => {
    logger.warn(facts, 'partner refused the restart: sending the whole file as a new transfer');
  });
  events.subscribe(ATTEMPT_ENDED, ({ outcome, facts }) => {
    const [level, text] = ENDS[outcome];
    logger[level](facts, text);
  });
  events.subscribe(PEER_UNCHECKED, ({ facts, text }) => {
    logger.warn(facts, `the remote server was accepted, for revocation is soft: ${text}`);
  });
  events.subscribe(SESSION_TOLERATED, ({ session, text }) => {
    logger.info({ ...session.facts, notice: text }, 'tolerated a deviation of the partner');
  });
  events.subscribe(SESSION_REFUSED, ({ session, error, facts }) => {
    const words = error instanceof PesitError ? logWords(error) : {};
    logger.warn({ ...session.facts, ...facts, ...words }, 'session refused by the remote server, or not opened');
  });
};
