/**
 * Texts about a diagnostic, put together from what the specification, a partner and this node have to say of it. A partner's
 * product often repeats the words of its own diagnostic, or the advice that stands in our table as well: each thing is said once.
 */
import { describeDiagnostic, diagnosticRow } from './diagnostics.js';
import type { DiagnosticCode, PeerDiagnostic } from './diagnostics.js';
import type { PesitError } from './errors.js';

/** The text without case, blanks and punctuation, for comparing. */
const gist = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');

const says = (text: string, part: string): boolean => gist(text).includes(gist(part));

/** `text` without `beginning` and what divides the two. */
const after = (text: string, beginning: string): string => {
  if (beginning === '' || !text.toLowerCase().startsWith(beginning.toLowerCase())) return text;
  const rest = text.slice(beginning.length);
  return /^[\p{L}\p{N}]/u.test(rest) ? text : rest.replace(/^[\s:;,.-]+/, '');
};

/** `3-304 requester not authorised (what the partner says besides)`. @param said PI 29 or PI 99, printable */
export const quoteDiagnostic = (code: PeerDiagnostic, said: string): string => {
  const words = diagnosticRow(code)?.text ?? '';
  const besides = after(after(said, code), words);
  if (gist(besides) === '') return describeDiagnostic(code);
  return words !== '' && says(besides, words) ? `${code} (${besides})` : `${describeDiagnostic(code)} (${besides})`;
};

/** Code, words and what happened, in one line: for a trace, or an end that has no fields. */
export const inOneLine = ({ diagnostic, message }: Pick<PesitError, 'diagnostic' | 'message'>): string => {
  const words = describeDiagnostic(diagnostic);
  const [named] = [`: ${words}`, `: ${diagnostic}`].filter((part) => message.includes(part));
  return `${words}: ${named === undefined ? message : message.replace(named, '')}`;
};

/** The same for a log, field by field. */
export const logWords = ({ diagnostic, message, fault }: PesitError) => ({
  diagnostic: describeDiagnostic(diagnostic),
  reason: message,
  fault,
});

/** Says what happened and, when a partner has refused, what to do about it. */
export const explain = ({ message, fault, diagnostic }: PesitError): string => {
  const advice = fault === 'refused' ? diagnosticRow(diagnostic)?.advice : undefined;
  return advice === undefined || says(message, advice) ? message : `${message}: ${advice}`;
};

/** The text for a partner that wants more than a code: the words of the table, and what to do. */
export const adviseOn = (code: DiagnosticCode): string => {
  const { text = code, advice = 'see the log' } = diagnosticRow(code) ?? {};
  return `${text}: ${advice}`;
};
