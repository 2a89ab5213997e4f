import { logWords, PesitError, printable } from '@pesit-node/protocol';
import type { EventStream, Logger } from '@pesit-node/service';
import {
  logAsides,
  PEER_UNCHECKED,
  SESSION_ENDED,
  SESSION_FAILED,
  SESSION_OPENED,
  SESSION_REFUSED,
  SESSION_REVOKED,
  SESSION_TOLERATED,
  TRANSFER_BEGAN,
  TRANSFER_ENDED,
  TRANSFER_REFUSED,
  TRANSFER_REMARKED,
  TRANSFER_WENT_ON,
} from '@pesit-node/transfers';
import type { Facts, ObservedSession } from '@pesit-node/transfers';

import { revocationText } from '../admission/revocation.js';
import { PARTNER_TESTED, RECORD_LOST } from '../exchange/events.js';
import { StrangerLog } from './stranger-log.js';

/**
 * Every line of the log about sessions and transfers, from their events: at `info` one for each transfer, which says all; how it came
 * about is at `debug`.
 */
export const logExchange = (events: EventStream, logger: Logger): void => {
  const strangers = new StrangerLog();
  /** Facts with which sessions were opened, until a line has shown them: the first about a transfer, or the last of the session. */
  const unshown = new WeakMap<ObservedSession, Facts>();
  const factsOf = (session: ObservedSession | undefined): Facts => {
    if (session === undefined) return {};
    const opened = unshown.get(session) ?? {};
    unshown.delete(session);
    return { ...session.facts, ...opened };
  };
  logAsides(events, logger, 'transfer');

  events.subscribe(SESSION_OPENED, ({ session, facts }) => {
    unshown.set(session, facts);
    logger.debug({ ...session.facts, ...facts }, 'partner connected');
  });
  events.subscribe(PEER_UNCHECKED, ({ facts, text }) => {
    logger.warn(facts, `a partner was let in, for revocation is soft: ${text}`);
  });
  events.subscribe(SESSION_TOLERATED, ({ session, text }) => {
    logger.info({ ...session.facts, notice: text }, 'tolerated a deviation of the partner');
  });
  events.subscribe(SESSION_FAILED, ({ session, error }) => {
    logger.error({ ...session.facts, err: error }, 'session failed because of an error in this node');
  });
  events.subscribe(SESSION_REFUSED, ({ session, diagnostic, error, named, facts }) => {
    // A fault of this program is reported by the session itself.
    if (diagnostic !== undefined && !(error instanceof PesitError)) return;
    // A refused pre-connection has its words in the facts.
    const words = diagnostic !== undefined && error instanceof PesitError ? logWords(error) : {};
    const stranger = { remoteAddress: String(session.facts['remoteAddress']), partnerId: named };
    const text = diagnostic === undefined ? 'connection rejected' : 'connection refused';
    strangers.warn(logger, stranger, { ...session.facts, ...facts, ...words }, text);
  });
  events.subscribe(SESSION_REVOKED, ({ session, transfer, error }) => {
    const file = transfer === undefined ? {} : { transfer: transfer.id, filename: transfer.name };
    logger.warn({ ...session.facts, ...file, ...logWords(error) }, revocationText(transfer));
  });
  events.subscribe(SESSION_ENDED, ({ session, opened, error }) => {
    if (!opened && error !== undefined) {
      logger.debug({ ...session.facts, ...logWords(error) }, 'connection ended before a partner was known');
    } else if (opened && error !== undefined) {
      logger.warn({ ...factsOf(session), ...logWords(error) }, 'connection ended');
    } else if (opened && unshown.has(session)) {
      logger.info(factsOf(session), 'partner connected and disconnected without a transfer');
    } else if (opened) logger.debug(session.facts, 'partner disconnected');
  });
  events.subscribe(TRANSFER_BEGAN, ({ session, transfer: { id, type, direction }, facts }) => {
    if (type === 'FILE') logger.debug({ ...session?.facts, transfer: id, direction, ...facts }, 'transfer begins');
  });
  events.subscribe(TRANSFER_WENT_ON, ({ session, transfer: { id }, from, attempt, facts }) => {
    if (attempt === 'first') return;
    const { syncPoint: point, dataBytes } = from;
    const text =
      attempt === 'next'
        ? 'transfer continues from a sync point'
        : 'the partner restarts a transfer that is complete here: dropping the data that it sends again';
    logger.info({ ...session?.facts, transfer: id, point, dataBytes, ...facts }, text);
  });
  events.subscribe(PARTNER_TESTED, ({ partnerId, listener, latency, error }) => {
    const facts = { partner: partnerId, listener, latency };
    if (error === undefined) logger.info(facts, 'login of the partner tried: it is let in');
    else logger.warn({ ...facts, ...logWords(error) }, 'login of the partner tried: it is not let in');
  });
  events.subscribe(RECORD_LOST, ({ what, why, waiting, error }) => {
    if (why === 'full')
      logger.error({ what, waiting }, 'lost the record of a transfer: too many wait for the database');
    else logger.error({ what, err: error }, 'could not write the record of a transfer');
  });
  events.subscribe(TRANSFER_REMARKED, ({ session, id, at, complement }) => {
    logger.info(
      { ...session.facts, transfer: id, at, partnerSaid: printable(complement) },
      'partner sent a text with its answer (PI 29)',
    );
  });
  events.subscribe(TRANSFER_ENDED, ({ session, transfer: { id, type, direction }, status, error, facts }) => {
    const all = { ...factsOf(session), transfer: id, direction, ...facts };
    if (type === 'MESSAGE') logger.info(all, 'message received');
    else if (error === undefined) logger.info(all, 'transfer completed');
    else logger.warn({ ...all, ...logWords(error) }, status === 'CANCELLED' ? 'transfer cancelled' : 'transfer failed');
  });
  events.subscribe(TRANSFER_REFUSED, ({ session, type, peer, error, counted, facts }) => {
    // A fault of this program is reported by the session itself.
    if (!(error instanceof PesitError) || counted) return;
    const all = { ...factsOf(session), ...facts, ...logWords(error) };
    if (type === 'FILE') logger.warn(all, 'transfer refused');
    // Refused files are counted in their records, which messages have not.
    else strangers.warnOfPartner(logger, peer, all, 'message refused');
  });
};
