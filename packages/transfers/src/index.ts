/**
 * The model of a transfer for both ends of it (design §2): the words, what an ending means, and where a restart begins. No
 * sockets, no SQL.
 *
 * `outcome.ts` is the heart: one table says what each diagnostic means for a transfer. Whether another attempt follows, whether
 * it begins at a point or at the start, which error code a record gets: a column there, never a comparison elsewhere. Failures
 * of this side are told apart by their `condition` (`ErrorCondition`), for several of them share a diagnostic.
 *
 * Restart: `restart-position.ts` finds the place of a point, `restartable-source.ts` sends a file over all its attempts with what
 * they placed (`sent-points.ts` where that has to be written down), `compressed-source.ts` in one, `first-answer.ts` keeps what continuing a file that is read
 * needs, and `retry-delay.ts` says when the next attempt is due.
 *
 * The apps keep what only one end has: the server app admission and answering, the client app its queue.
 */
export { CompressedSource } from './compressed-source.js';
export {
  connectionTest,
  negotiated,
  negotiatedOf,
  tenths,
  testedTls,
  testFailed,
  testSucceeded,
} from './connection-test.js';
export type { Negotiated, TestedTls, TestFailed, TestSucceeded } from './connection-test.js';
export { asPesitDate, isCreationDate, pesitDate, showDate } from './creation-date.js';
export {
  PEER_UNCHECKED,
  SESSION_ENDED,
  SESSION_FAILED,
  SESSION_OPENED,
  SESSION_REFUSED,
  SESSION_REVOKED,
  SESSION_TOLERATED,
  TRANSFER_BEGAN,
  TRANSFER_DELIVERED,
  TRANSFER_ENDED,
  TRANSFER_ASIDE,
  FILE_FLUSHED,
  TRANSFER_CONFIRMED,
  TRANSFER_POINT,
  TRANSFER_REFUSED,
  TRANSFER_REMARKED,
  TRANSFER_WENT_ON,
} from './events.js';
export type { EndStatus, Facts, Figures, ObservedSession, ObservedTransfer } from './events.js';
export {
  errorCodeOf,
  keepsTrust,
  outcomeOf,
  OUTCOMES,
  outdatesSession,
  refusesRestart,
  toPesitError,
  verdictOn,
} from './outcome.js';
export type { ContactErrorCode, Outcome, Phase, TransferErrorCode, Verdict } from './outcome.js';
export { firstAnswer, firstAnswerIn, firstAnswerOf, formatIn } from './first-answer.js';
export type { FirstAnswer, WantedCodePage } from './first-answer.js';
export { logAsides } from './aside-log.js';
export type { TransferAside } from './asides.js';
export { productOf, shownFreeMessage } from './partner-habits.js';
export type { PartnerHabits } from './partner-habits.js';
export { transferEventRoutes } from './live/routes.js';
export { LiveTransfers } from './live/live-transfers.js';
export type { LiveLook, LiveRow, LiveSource } from './live/live-transfers.js';
export { transferProgress } from './live/schema.js';
export { namesFor, receivedName } from './received-name.js';
export { goToPoint, hasCompressed, pacingsWith, pointToWrite } from './restart-position.js';
export { RestartableSource } from './restartable-source.js';
export type { PacingKeeper, SendingSession } from './restartable-source.js';
export { delayAfter } from './retry-delay.js';
export type { RetryPolicy } from './retry-delay.js';
export { SentPoints } from './sent-points.js';
export type { SentPoint } from './sent-points.js';
export { spaceReadings, storageHealth } from './space.js';
export { oneAtATime, volumeReadings, watchVolumes } from './volumes.js';
export type { VolumesFollowed, WatchVolumesOptions } from './volumes.js';
export {
  attemptAnswer,
  attemptsOf,
  attemptTerms,
  attemptTermsOf,
  diagnosticWords,
  diagnosticWordsFields,
  FORMER_ATTEMPTS,
  FORMER_REASON,
  pointsAnswer,
  pointsOf,
} from './attempts.js';
export type { AskedTerms, AttemptTerms, KeptAttempt } from './attempts.js';
export { freeMessageText, messageText } from './texts.js';
export { auditTransfers } from './audit-transfers.js';
export { spansStep } from './spans/step.js';
export type { SpansOptions } from './spans/options.js';
export { meterTransfers } from './transfer-meter.js';
export {
  compressionMode,
  compressionName,
  COMPRESSIONS,
  DATA_CODES,
  dataCodeOf,
  DIAGNOSTIC_TEXT,
  DIRECTIONS,
  TRANSFER_STATUSES,
  TRANSFER_TYPES,
} from './vocabulary.js';
export type { Compression, Direction, TransferStatus, TransferType } from './vocabulary.js';
