import { createHash } from 'node:crypto';

import { CODE_PAGES } from '@pesit-node/protocol';
import type { CodePage, Parameters } from '@pesit-node/protocol';
import { receivedFormat } from '@pesit-node/storage';
import type { RecordFormat, StagedFacts } from '@pesit-node/storage';
import { z } from 'zod';

import { DATA_CODES } from './vocabulary.js';

/** The code page of EBCDIC lines, and whether lines are EBCDIC whatever the partner says. */
export interface WantedCodePage {
  readonly codePage: CodePage;
  readonly always: boolean;
}

/** The part of the answer to the first SELECT that a restart needs: kept in the journal of the staged file, and in the note of its delivery. */
export const firstAnswer = z.strictObject({
  /** PI 13 as the server allocated it. */
  transferId: z.int(),
  recordFormat: z.int().optional(),
  recordLength: z.int(),
  text: z.boolean().optional(),
  codePage: z.enum(CODE_PAGES).optional(),
  /** Tells one version of the partner's file from another. */
  file: z.string(),
});

export type FirstAnswer = z.output<typeof firstAnswer>;

/** PI 32 when the partner leaves it out: no limit but that of the wire. */
const ANY_LENGTH = 65_535;

/** Name, attributes, announced size and date; not the date of the last extraction, which every SELECT may change. */
const fingerprint = ({
  fileIdentifier,
  dataCode,
  logicalAttributes,
  physicalAttributes,
  historicalAttributes,
}: Parameters) =>
  createHash('sha256')
    .update(
      JSON.stringify([
        fileIdentifier?.fileName,
        dataCode,
        logicalAttributes,
        physicalAttributes,
        historicalAttributes?.creationDate,
      ]),
    )
    .digest('base64url');

export const firstAnswerOf = (
  answer: Parameters,
  text: boolean | undefined,
  { codePage, always }: WantedCodePage,
): FirstAnswer => {
  const isEbcdic = always || answer.dataCode === DATA_CODES.ebcdic;
  const { recordFormat, recordLength = ANY_LENGTH } = answer.logicalAttributes ?? {};
  return {
    transferId: answer.transferId ?? 0,
    ...(recordFormat === undefined ? {} : { recordFormat }),
    recordLength,
    ...(text === undefined ? {} : { text }),
    ...(text === true && isEbcdic ? { codePage } : {}),
    file: fingerprint(answer),
  };
};

export const formatIn = ({ recordFormat, recordLength, text, codePage }: FirstAnswer): RecordFormat =>
  receivedFormat({ recordFormat, recordLength }, { text, codePage });

/** Undefined when there is none that this version can read. */
export const firstAnswerIn = (staged: StagedFacts | undefined): FirstAnswer | undefined => {
  if (staged?.memo === undefined || staged.delivered) return undefined;
  try {
    return firstAnswer.parse(JSON.parse(staged.memo));
  } catch {
    return undefined;
  }
};
