/**
 * PeSIT E, Hors-SIT profile, without I/O.
 *
 * Theory of operation. Three tables are the specification: `parameters.ts`, `fpdus.ts`, `automaton.ts`. `decoding.ts` reads
 * and `encoding.ts` writes every control FPDU by the first two; `framing.ts` finds FPDUs in a stream of bytes without copying
 * them; `receiving.ts` and `sending.ts` are the data path, articles to FPDUs and back. `session-core.ts` looks every event up
 * in the automaton and is driven by bytes and time; it holds the data of its file, `data-transfer.ts`, and `session.ts` adds their
 * interruption and resynchronisation, `RequesterSession` and `ServerSession` the verbs of their role. Sockets and clocks are in `net`,
 * files in `storage`; both meet here through the types of `articles.ts`.
 *
 * A peer's mistake is a `PesitError` with the diagnostic to send, never another error; a wrong call by the program throws.
 */
export type { ConnectAnswer, CreateAnswer, SelectAnswer } from './answers.js';
export { START } from './articles.js';
export type { ArticleBatch, ArticleSink, ArticleSource, Burst, SyncPoint } from './articles.js';
export { AUTOMATA, transitionOf } from './automaton.js';
export type { AutomatonEvent, Condition, Transition } from './automaton.js';
export { COMPRESSION_MODES, compressArticle, compressedBound, decompressArticle } from './compression.js';
export type { CompressionMode } from './compression.js';
export { CRC_LENGTH, checksum } from './crc.js';
export { decodeBody } from './decoding.js';
export type { Fpdu } from './decoding.js';
export {
  DIAGNOSTICS,
  SUCCESS,
  breaksProtocol,
  describeDiagnostic,
  diagnosticRow,
  endOf,
  endsForGood,
  refuses,
  retryOf,
} from './diagnostics.js';
export type { ActingParty, DiagnosticCode, DiagnosticRow, PeerDiagnostic } from './diagnostics.js';
export { diagnosticsMarkdown, fpdusMarkdown, parametersMarkdown, statesMarkdown } from './documentation.js';
export { CODE_PAGES, DEFAULT_CODE_PAGE, codePageTables, translate } from './code-pages.js';
export type { CodePage, CodePageTables } from './code-pages.js';
export { fromEbcdic, toEbcdic } from './ebcdic.js';
export { encodeFpdu } from './encoding.js';
export { burstBufferSize } from './entity-layout.js';
export { PesitError } from './errors.js';
export type { ErrorCondition, Fault, PesitErrorDetails } from './errors.js';
export { CONTENTS, FPDU_HEADER_LENGTH, FPDU_NAMES, FPDUS, MAX_FPDU_LENGTH, fpduByCodes, isDataFpdu } from './fpdus.js';
export type { ContentItem, DataFpduName, FpduName, Presence } from './fpdus.js';
export { ENTITY_PREFIX_LENGTH, FpduReader } from './framing.js';
export type { Dialect, RawFpdu } from './framing.js';
export { FILE_TYPE_MESSAGE, FILE_TYPE_REPLY, MAX_MESSAGE_LENGTH, REPLY_EXPECTED } from './messages.js';
export type { MessageAnswer, MessageRequest } from './messages.js';
export {
  NO_COMPRESSION,
  NO_SYNC,
  UNDEFINED_INTERVAL,
  intervalBytes,
  negotiateCompression,
  negotiateSync,
  negotiateVersion,
} from './negotiation.js';
export type { ConnectionTerms, FileTerms } from './negotiation.js';
export { PARAMETER_KEYS, PARAMETERS, describeParameter, parameterByCode } from './parameters.js';
export type { CompressionOptions, ParameterKey, Parameters, ParameterType, SyncPointOptions } from './parameters.js';
export type { SingleArticleStyle } from './receiving.js';
export { RequesterSession } from './requester-session.js';
export type { ConnectRequest, CreateRequest, FileIdentifier, FileRequest, SelectRequest } from './requests.js';
export { MAX_RESYNCHRONISATIONS } from './resynchronisation.js';
export { MAX_SYNC_POINT, nextSpacing, spacedInterval } from './spacing.js';
export { ServerSession } from './server-session.js';
export { END_CODES, Session } from './session.js';
export type { SessionEvent, SessionOptions } from './session-events.js';
export { SessionTrace } from './session-trace.js';
export type { TraceLine, WireDirection } from './session-trace.js';
export { STATES } from './states.js';
export type { Role, State, StateRow, Wait } from './states.js';
export { keptBytes, keptReason, printable, readable } from './texts.js';
export { adviseOn, explain, inOneLine, logWords, quoteDiagnostic } from './wording.js';
export { timersOf } from './timers.js';
export type { Timers } from './timers.js';
export { describeFpdu } from './trace.js';
