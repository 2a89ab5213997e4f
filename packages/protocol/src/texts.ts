/** Texts that go to a peer as PI 29 and PI 99, and those that come from one into a log. */
import { diagnosticRow } from './diagnostics.js';
import type { PesitError } from './errors.js';
import { PARAMETERS } from './parameters.js';
import type { Parameters } from './parameters.js';

/** PI 29, cut to its maximum; what goes to a peer is ISO 8859-1. */
export const complement = (text: string | undefined): Parameters => {
  if (text === undefined || text === '') return {};
  return { diagnosticComplement: Buffer.from(text.replace(/[^\u0020-\u00ff]/g, '?'), 'latin1').subarray(0, 254) };
};

/** The part of a peer's PI 29 or PI 99 that a record keeps: what the specification allows. A copy, for it outlives the FPDU. */
export const keptBytes = (said: Buffer): Buffer => Buffer.from(said.subarray(0, PARAMETERS.freeMessage.max));

/** Characters of a reason that a record keeps: it may quote what a peer has said. */
const MAX_REASON = 2000;

/** Why something failed, as a record keeps it: readable, and bounded. */
export const keptReason = (text: string): string => readable(text, MAX_REASON);

/** PI 99; none that is empty. */
export const free = (freeMessage: Buffer | undefined): Parameters =>
  freeMessage === undefined || freeMessage.length === 0 ? {} : { freeMessage };

/** The text for a partner: its own mistakes in full; for ours, which may name paths, the words of the diagnostic alone. */
export const textForPeer = (error: PesitError): Parameters =>
  complement(error.peerText ?? (error.fault === 'local' ? diagnosticRow(error.diagnostic)?.text : error.message));

/** Text of a peer for a log or a record: control characters become dots. @param max characters; default: all */
export const readable = (text: string, max?: number): string =>
  text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '.').slice(0, max);

/** Bytes of a peer as text for a log or a record: `readable`, and without blanks at the end. */
export const printable = (bytes: Buffer | undefined): string =>
  bytes === undefined ? '' : readable(bytes.toString('latin1')).trimEnd();
