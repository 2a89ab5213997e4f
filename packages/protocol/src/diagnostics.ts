/**
 * The diagnostics of PI 2 (annex D, pesit-e.md §9): code, the specification's reason in English, who has to act,
 * what to do, and whether the same request may succeed later.
 */

/**
 * Who has to act: `answering` the side that sent the code, `asking` the side that it was sent to, `both` when their settings
 * have to agree, `network` what lies between them.
 */
export type ActingParty = 'nobody' | 'asking' | 'answering' | 'both' | 'network';

export interface DiagnosticRow {
  readonly text: string;
  /** Advice for the operator of either side: what to look at or change. */
  readonly advice: string;
  /** Where the fault is to be looked for. */
  readonly fault: ActingParty;
  /** `later`: come again, without counting an attempt as failed. `yes`: worth a retry. `no`: refused for good. */
  readonly retry: 'no' | 'yes' | 'later';
  /** The same file would fail in the same way: an IDT that bears the code says that no restart follows (PI 19, §4.5.19). */
  readonly endsForGood: boolean;
  /** Found in the data of a running transfer, it ends the transfer alone (IDT), or the connection (ABORT). */
  readonly ends: 'transfer' | 'connection';
  /** The peer sent no FPDU that may come now, whatever it was about: perhaps it speaks another language. */
  readonly breaksProtocol: boolean;
}

type Row = (text: string, advice: string, fault: ActingParty, retry?: DiagnosticRow['retry']) => DiagnosticRow;

const rowOf =
  (also: Pick<DiagnosticRow, 'endsForGood' | 'ends' | 'breaksProtocol'>): Row =>
  (text, advice, fault, retry = 'no') => ({ text, advice, fault, retry, ...also });

const connection = rowOf({ endsForGood: false, ends: 'connection', breaksProtocol: false });
const transfer = rowOf({ endsForGood: false, ends: 'transfer', breaksProtocol: false });
const forGood = rowOf({ endsForGood: true, ends: 'transfer', breaksProtocol: false });
const breach = rowOf({ endsForGood: false, ends: 'connection', breaksProtocol: true });

export const DIAGNOSTICS = {
  '0-000': connection('success', 'nothing to do', 'nobody'),
  '1-100': transfer('transmission error', 'check the line; the transfer can be restarted', 'network', 'yes'),
  '2-200': forGood('file attributes insufficient', 'compare record format and record length on both sides', 'both'),
  '2-201': transfer('system resources insufficient for now', 'wait; reduce parallel transfers', 'answering', 'later'),
  '2-202': transfer(
    'user resources insufficient for now',
    'wait, or raise the quota of the partner',
    'answering',
    'yes',
  ),
  '2-203': transfer('transfer has no priority', 'wait, or raise the priority', 'asking', 'yes'),
  '2-204': transfer('file exists already', 'remove the file, change its name, or allow overwriting', 'both'),
  '2-205': transfer('file does not exist', 'check the virtual file and the name of the file to send', 'asking'),
  '2-206': transfer('reception would exceed the disk quota', 'free space or raise the quota', 'answering', 'yes'),
  '2-207': transfer('file busy', 'wait until the other transfer of this file has ended', 'answering', 'later'),
  '2-208': transfer('file not old', 'send an older file (SIT)', 'asking'),
  '2-209': transfer('message of this type not accepted', 'do not send this type of message to this partner', 'asking'),
  '2-210': transfer('presentation context could not be negotiated', 'switch compression off', 'both'),
  '2-211': transfer('file cannot be opened', 'check that the directory exists and may be written', 'answering', 'yes'),
  '2-212': transfer('file cannot be closed normally', 'check the disk of the side that answered', 'answering', 'yes'),
  '2-213': transfer('blocking input/output error', 'check the disk of the side that answered', 'answering', 'yes'),
  '2-214': transfer('restart point could not be agreed', 'send the file again from the start', 'asking', 'yes'),
  '2-215': transfer('error of the local system', 'see the log of the side that answered', 'answering', 'yes'),
  '2-216': transfer('transfer stopped on purpose', 'ask the administrator who stopped it', 'answering'),
  '2-217': transfer(
    'too many sync points without acknowledgement',
    'compare the acknowledgement window (PI 7) on both sides',
    'both',
    'yes',
  ),
  '2-218': transfer('resynchronisation impossible', 'restart the transfer', 'answering', 'yes'),
  '2-219': transfer('file space exhausted', 'free disk space, then restart the transfer', 'answering', 'yes'),
  '2-220': forGood(
    'article longer than expected',
    'raise the record length (PI 32), change the record format, or, for a partner that takes one article a DTF, set multiArticle to false',
    'both',
  ),
  '2-221': transfer('transfer was not ended in time', 'check the load of the side that was late', 'both', 'yes'),
  '2-222': transfer('too much data without a sync point', 'compare the sync interval (PI 7) on both sides', 'both'),
  '2-223': transfer('abnormal end of transfer', 'see the log of the other side', 'answering', 'yes'),
  '2-224': forGood('file larger than announced', 'announce the real size (PI 42)', 'asking'),
  '2-225': transfer(
    'congestion of the receiving application',
    'the file arrived; ask the partner to look at its application',
    'answering',
  ),
  '2-226': forGood(
    'transfer refused',
    'check the rights of the partner and the direction and name rules of the virtual file',
    'both',
  ),
  '2-233': transfer('no restart context', 'send the file again from the start', 'asking', 'yes'),
  '2-250': transfer('file already transferred', 'nothing; the other side has the file', 'nobody'),
  '2-299': transfer('other file error', 'see the log of the other side', 'answering', 'yes'),
  '3-300': connection('congestion of the local communication system', 'wait', 'answering', 'later'),
  '3-301': connection(
    'called or calling identification unknown',
    'check partner and server identifiers (PI 3, PI 4)',
    'both',
  ),
  '3-302': connection('called party not attached', 'ask the partner to start its service', 'answering', 'yes'),
  '3-303': connection('congestion of the remote communication system', 'wait', 'answering', 'later'),
  '3-304': connection('requester not authorised', 'check identifier, password and that the partner is enabled', 'both'),
  '3-305': connection(
    'negotiation failed: SELECT or CREATE outside the access type',
    'connect with the access type (PI 22) of the transfer',
    'asking',
  ),
  '3-306': connection('negotiation of resynchronisation failed', 'switch resynchronisation off', 'both'),
  '3-307': connection('negotiation of sync points failed', 'compare PI 7 on both sides', 'both'),
  '3-308': connection('version not supported', 'use PeSIT E (version 2)', 'asking'),
  '3-309': connection('too many connections', 'wait, or raise maxConnections', 'answering', 'later'),
  '3-310': connection('network incident', 'check the line; the transfer can be restarted', 'network', 'yes'),
  '3-311': breach(
    'protocol error of the other side',
    "take a trace and show it to both products' support",
    'asking',
    'yes',
  ),
  '3-312': connection('closed by the user', 'nothing', 'answering', 'yes'),
  '3-313': connection('idle connection closed', 'nothing; open a new connection', 'nobody', 'yes'),
  '3-314': connection('unused connection closed for a new one', 'nothing; open a new connection', 'nobody', 'yes'),
  '3-315': connection('negotiation failed', 'compare the connection options on both sides', 'both'),
  '3-316': connection('closed by the administration', 'ask the administrator', 'answering', 'yes'),
  '3-317': connection('timer expired', 'the other side was silent too long: check it and the line', 'asking', 'yes'),
  '3-318': connection(
    'mandatory parameter missing, or illegal value',
    'compare the parameter named in the text on both sides',
    'both',
  ),
  '3-319': connection(
    'byte or article count wrong',
    'send the file again; if it happens twice, take a trace',
    'both',
    'yes',
  ),
  '3-320': connection('too many resynchronisations', 'check the line', 'network', 'yes'),
  '3-321': connection('call the backup number', 'use the backup address of the partner', 'asking'),
  '3-322': connection('call later', 'wait', 'answering', 'later'),
  '3-399': connection('other connection error', 'see the log of the other side', 'answering', 'yes'),
} as const satisfies Readonly<Record<string, DiagnosticRow>>;

/** PI 2 as three digits after the type, `'2-205'`: the codes of the table. This node sends no other. */
export type DiagnosticCode = keyof typeof DIAGNOSTICS;

declare const unlisted: unique symbol;

/** A code that a partner may say: one of the table, or any other number, of which nothing is known. */
export type PeerDiagnostic = DiagnosticCode | (string & { readonly [unlisted]: true });

/** PI 2 as it stands on the wire: the type, 0 to 3, and the reason. */
export const diagnosticOf = (type: number, reason: number): PeerDiagnostic =>
  `${type}-${String(reason).padStart(3, '0')}` as PeerDiagnostic;

export const SUCCESS = '0-000' satisfies DiagnosticCode;

/** The row of `code`; undefined for a partner's own number. */
export const diagnosticRow = (code: string): DiagnosticRow | undefined =>
  Object.hasOwn(DIAGNOSTICS, code) ? DIAGNOSTICS[code as DiagnosticCode] : undefined;

/** §4.8.1.3: a positive answer may bear a warning, type 1; types 2 and 3 say no. */
export const refuses = (code: PeerDiagnostic): boolean => code.startsWith('2-') || code.startsWith('3-');

/** `3-304 requester not authorised`: code and words, for logs, records and answers. */
export const describeDiagnostic = (code: PeerDiagnostic): string =>
  `${code} ${diagnosticRow(code)?.text ?? 'diagnostic of the partner, not in the specification'}`;

/** Whether an interruption for `code` would happen again to the same file; false for a code of which nothing is known. */
export const endsForGood = (code: PeerDiagnostic): boolean => diagnosticRow(code)?.endsForGood ?? false;

/** Whether an error with `code` in the data of a running transfer ends the transfer alone, or the connection. */
export const endOf = (code: PeerDiagnostic): DiagnosticRow['ends'] =>
  diagnosticRow(code)?.ends ?? (code.startsWith('2-') ? 'transfer' : 'connection');

export const breaksProtocol = (code: PeerDiagnostic): boolean => diagnosticRow(code)?.breaksProtocol ?? false;

/** Unknown codes are final: nothing is known that would make a second try better. */
export const retryOf = (code: PeerDiagnostic): DiagnosticRow['retry'] => diagnosticRow(code)?.retry ?? 'no';
