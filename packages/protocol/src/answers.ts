/** Answers of a server to the requests of a partner, in the words of the specification. */
import type { CompressionMode } from './compression.js';
import { SUCCESS } from './diagnostics.js';
import { attributeParameters } from './file-attributes.js';
import type { FileAttributes } from './file-attributes.js';
import type { Parameters, SyncPointOptions } from './parameters.js';
import type { SingleArticleStyle } from './receiving.js';
import { free } from './texts.js';

export interface ConnectAnswer {
  /** PI 7 as this side wants it; undefined = no sync points. */
  readonly syncPoints?: SyncPointOptions | undefined;
  /** PI 23: resynchronisation is allowed; it needs sync points. Default false. */
  readonly resynchronisation?: boolean | undefined;
  /** Interval for our own points when PI 7 stays undefined on both sides, in KB. Default 256. */
  readonly defaultIntervalKb?: number;
  /** How this partner writes single articles, as earlier connections have learned. */
  readonly singleArticle?: SingleArticleStyle | undefined;
  /** Whether this partner is sent several articles in one DTF; default that of the session. */
  readonly multiArticle?: boolean | undefined;
  /** Whether FPDUs of data share an entity; default that of the session. */
  readonly concatenation?: boolean | undefined;
  readonly freeMessage?: Buffer | undefined;
}

export interface CreateAnswer {
  /** PI 25: the largest entity of this side; the smaller of both is answered. */
  readonly maxEntitySize: number;
  /** PI 21: the compression that is allowed when the requester asks for one. Default 0, none. */
  readonly compression?: CompressionMode | 0 | undefined;
  readonly freeMessage?: Buffer | undefined;
}

export interface SelectAnswer extends CreateAnswer, FileAttributes {
  /** PI 12 of the file that was found. */
  readonly fileName: string;
  /** PI 13; kept when the requester gave one. */
  readonly transferId: number;
}

/**
 * A positive ACK(SELECT) (§4.4.7).
 * @param asked the parameters of SELECT
 */
export const selectedParameters = (asked: Parameters, answer: SelectAnswer, maxEntitySize: number): Parameters => {
  const file = asked.fileIdentifier ?? {};
  return {
    diagnostic: SUCCESS,
    fileIdentifier: {
      ...(file.requester ? { requester: file.requester } : {}),
      ...(file.server ? { server: file.server } : {}),
      fileType: file.fileType ?? 0,
      fileName: answer.fileName,
    },
    transferId: asked.transferId === 0 ? answer.transferId : (asked.transferId as number),
    maxEntitySize,
    ...attributeParameters(answer),
    ...free(answer.freeMessage),
  };
};
