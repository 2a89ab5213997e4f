/** The answer of a command that talked PeSIT: words, or one JSON document. */
import type { PesitRequester } from '@pesit-node/net';
import { printable } from '@pesit-node/protocol';

import type { Environment, Given } from '../frame/command.js';
import { causeOf, CliError, exitCode } from '../frame/exit-codes.js';
import { TransferFailure } from './attempts.js';

const DAY_MS = 86_400_000;

/** Terms of a session for the answer. */
export const negotiatedIn = ({ terms, fileTerms }: PesitRequester) => ({
  dialect: terms.dialect,
  version: terms.version,
  crc: terms.crc,
  syncIntervalKb: terms.syncInterval / 1024,
  syncWindow: terms.syncWindow,
  resync: terms.resynchronisation,
  ...(fileTerms === undefined ? {} : { maxEntitySize: fileTerms.maxEntitySize, compression: fileTerms.compression }),
});

export const tlsIn = ({ security }: PesitRequester) => {
  if (security === undefined) return null;
  const { protocol, cipher, peerCertificate } = security;
  if (peerCertificate === undefined) return { protocol, cipher, certificate: null };
  const { subject, issuer, serial, fingerprint, notAfter } = peerCertificate;
  const daysRemaining = Math.floor((notAfter.getTime() - Date.now()) / DAY_MS);
  return { protocol, cipher, certificate: { subject, issuer, serial, fingerprint, notAfter, daysRemaining } };
};

/** Free text in the partner's answers; absent: it said none. */
export const saidIn = ({ texts }: PesitRequester): { readonly partnerSaid?: string } => {
  const said = printable(texts.freeMessage) || printable(texts.diagnosticComplement);
  return said === '' ? {} : { partnerSaid: said };
};

/**
 * Runs the work of a command and answers for it.
 * @param words the answer for a person, a line each
 * @returns the exit code
 */
export const report = async <T extends object>(
  given: Given,
  { terminal, signal }: Environment,
  work: () => Promise<T>,
  words: (result: T) => readonly string[],
): Promise<number> => {
  try {
    const result = await work();
    if (given.has('json')) terminal.json({ status: 'COMPLETED', ...result });
    else for (const line of words(result)) terminal.say(line);
    return exitCode('done');
  } catch (thrown) {
    const failure = thrown instanceof TransferFailure ? thrown : undefined;
    const error = failure?.error ?? thrown;
    const cause = signal.aborted ? 'interrupted' : await causeOf(error, failure?.connecting === true);
    if (cause === 'unexpected') throw thrown;
    const message = (thrown as Error).message;
    const diagnostic = failure?.error.diagnostic;
    if (given.has('json')) {
      terminal.json({
        status: 'FAILED',
        error: cause,
        exitCode: exitCode(cause),
        diagnostic,
        attempts: failure?.attempts,
        message,
      });
    } else {
      terminal.note(`pesit: ${message}`);
      if (failure !== undefined && failure.attempts > 1 && cause !== 'interrupted')
        terminal.note(`       given up after ${failure.attempts} attempts`);
    }
    return exitCode(thrown instanceof CliError ? thrown.reason : cause);
  }
};
