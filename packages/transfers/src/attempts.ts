/** The attempts of a transfer one by one, as its own record shows them: where, over which terms, how far, and how each ended. */
import { diagnosticRow } from '@pesit-node/protocol';
import type { ConnectionTerms, FileTerms } from '@pesit-node/protocol';
import { z } from 'zod';

import { compressionName, COMPRESSIONS, TRANSFER_STATUSES } from './vocabulary.js';
import type { Compression } from './vocabulary.js';

/** Attempts that are kept beside the last one: of more the oldest go. `attempts` of the record counts all of them. */
export const FORMER_ATTEMPTS = 50;

/** Characters of the reason that a former attempt keeps. */
export const FORMER_REASON = 500;

/** Values that one side asked for; null: it did not say. */
export interface AskedTerms {
  /** PI 25. */
  readonly maxEntitySize: number | null;
  /** PI 7, in KB. */
  readonly syncInterval: number | null;
  readonly syncWindow: number | null;
  /** PI 21. */
  readonly compression: Compression | null;
  /** PI 23. */
  readonly resync: boolean | null;
}

const nullable = {
  maxEntitySize: z.int().nullable().meta({ description: 'PI 25, bytes.' }),
  syncInterval: z.number().nullable().meta({ description: 'PI 7, in KB; 0 = no points.' }),
  syncWindow: z.int().nullable().meta({ description: 'PI 7, points without acknowledgement.' }),
  compression: z.enum(COMPRESSIONS).nullable().meta({ description: 'PI 21.' }),
  resync: z.boolean().nullable().meta({ description: 'PI 23.' }),
};

/** Terms of an attempt, as records keep them. */
export const attemptTerms = z
  .object({
    fromPoint: z.int().meta({ description: 'The sync point that it continued at; 0 = from the start.' }),
    asked: z.object(nullable).meta({ description: 'By the requester; null: it did not say.' }),
    agreed: z.object({
      dialect: z.string(),
      version: z.int().meta({ description: 'PI 6: 1 = D, 2 = E.' }),
      crc: z.boolean(),
      ...nullable,
    }),
  })
  .meta({ id: 'AttemptTerms' });

export type AttemptTerms = Readonly<z.output<typeof attemptTerms>>;

/** Undefined before a session was agreed on. */
export const attemptTermsOf = (
  session: { readonly terms: ConnectionTerms | undefined; readonly fileTerms: FileTerms | undefined },
  asked: AskedTerms,
  fromPoint: number,
): AttemptTerms | undefined => {
  const { terms, fileTerms } = session;
  if (terms === undefined) return undefined;
  const { dialect, version, crc, syncInterval, syncWindow, resynchronisation: resync } = terms;
  const file = fileTerms && { entity: fileTerms.maxEntitySize, compression: compressionName(fileTerms.compression) };
  return {
    fromPoint,
    asked,
    agreed: {
      ...{ dialect, version, crc, maxEntitySize: file?.entity ?? null },
      ...{ syncInterval: syncInterval / 1024, syncWindow, compression: file?.compression ?? null, resync },
    },
  };
};

/** PI 2 in words: null where there is none, or none that the specification knows. */
export const diagnosticWords = (
  diagnostic: string | null,
): { readonly diagnosticText: string | null; readonly whatToDo: string | null } => {
  const row = diagnostic === null ? undefined : diagnosticRow(diagnostic);
  return { diagnosticText: row?.text ?? null, whatToDo: diagnostic === '0-000' ? null : (row?.advice ?? null) };
};

export const diagnosticWordsFields = {
  diagnosticText: z.string().nullable().meta({ description: '`diagnostic` in words.' }),
  whatToDo: z.string().nullable().meta({ description: 'What an operator can do about `diagnostic`.' }),
};

const time = () => z.iso.datetime().nullable();

/** One attempt in answers. */
export const attemptAnswer = z
  .object({
    number: z.int().min(1),
    status: z.enum(TRANSFER_STATUSES).meta({ description: 'How it ended; IN_PROGRESS: it runs.' }),
    startTime: time().meta({ description: 'null in records of older versions.' }),
    endTime: time(),
    duration: z.int().nullable().meta({ description: 'Milliseconds.' }),
    node: z.string().nullable(),
    sessionId: z.string().nullable(),
    remoteAddress: z.string().nullable(),
    diagnostic: z.string().nullable().meta({ description: 'PI 2.' }),
    ...diagnosticWordsFields,
    errorMessage: z.string().nullable(),
    bytesTransferred: z
      .int()
      .nullable()
      .meta({ description: 'Reached at its end, over all attempts, as PI 27 counts.' }),
    articles: z.int().nullable(),
    syncPoint: z.int().nullable().meta({ description: 'The last sync point that it reached.' }),
    terms: attemptTerms.nullable().meta({ description: 'null before its end, and when no session was agreed on.' }),
  })
  .meta({ id: 'Attempt' });

export type AttemptAnswer = Readonly<z.output<typeof attemptAnswer>>;

/** An attempt as a record keeps it: times as JSON has them, without what follows from the rest. */
export type KeptAttempt = Readonly<
  Omit<AttemptAnswer, 'number' | 'duration' | 'diagnosticText' | 'whatToDo' | 'terms'> & {
    terms: AttemptTerms | null;
  }
>;

const iso = (value: string | Date | null): string | null => (value === null ? null : new Date(value).toISOString());

/**
 * @param kept oldest first
 * @param made attempts that there were, those that are no longer kept included
 */
export const attemptsOf = (kept: readonly KeptAttempt[], made = kept.length): readonly AttemptAnswer[] =>
  kept.map((one, index) => {
    const [startTime, endTime] = [iso(one.startTime), iso(one.endTime)];
    return {
      number: Math.max(made, kept.length) - kept.length + index + 1,
      ...one,
      ...{ startTime, endTime },
      duration: startTime === null || endTime === null ? null : Date.parse(endTime) - Date.parse(startTime),
      ...diagnosticWords(one.diagnostic),
    };
  });

/** Sync points of a transfer in answers. */
export const pointsAnswer = z
  .object({
    last: z.int().meta({ description: 'The last one; 0 = none.' }),
    dataBytes: z.int().nullable().meta({ description: 'Bytes up to it, as PI 27 counts; null: not kept.' }),
    articles: z.int().nullable(),
    placed: z
      .array(
        z.object({ from: z.int(), interval: z.int().meta({ description: 'Bytes between two points; 0 = none.' }) }),
      )
      .nullable()
      .meta({ description: 'For a file that is read: how attempts placed them, from which point on.' }),
  })
  .meta({ id: 'SyncPoints' });

/** @param pacings how attempts placed them; null: the partner did */
export const pointsOf = (
  last: number | null,
  at: { readonly dataBytes: number; readonly articles: number } | undefined,
  pacings: readonly { readonly from: number; readonly interval: number }[] | null,
): z.output<typeof pointsAnswer> => {
  const isKept = last !== null && last > 0 && at !== undefined && at.dataBytes > 0;
  return {
    last: last ?? 0,
    dataBytes: isKept ? at.dataBytes : null,
    articles: isKept ? at.articles : null,
    placed: pacings?.map(({ from, interval }) => ({ from, interval })) ?? null,
  };
};
