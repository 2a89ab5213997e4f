/** Requests of a requester, in the words of the specification, and the parameters that say them. */
import type { CompressionMode } from './compression.js';
import { attributeParameters } from './file-attributes.js';
import type { FileAttributes } from './file-attributes.js';
import type { Parameters, SyncPointOptions } from './parameters.js';
import { free } from './texts.js';

export interface ConnectRequest {
  /** PI 3 and PI 4: the connection partners. */
  readonly requester: string;
  readonly server: string;
  /** PI 5; 1 to 8 characters. */
  readonly password?: string | undefined;
  /** PI 7; undefined = no sync points wanted. */
  readonly syncPoints?: SyncPointOptions | undefined;
  /** PI 22: 0 write, 1 read, 2 both. */
  readonly accessType: 0 | 1 | 2;
  /** PI 23: resynchronisation is wanted; it needs sync points. Default false. */
  readonly resynchronisation?: boolean | undefined;
  /** PI 1. */
  readonly crc?: boolean | undefined;
  /** PI 99, opaque. */
  readonly freeMessage?: Buffer | undefined;
  /** Interval for our own points when PI 7 stays undefined on both sides, in KB. Default 256. */
  readonly defaultIntervalKb?: number;
}

/** PGI 9: names of application and user, which never replace the identity of the connection. */
export interface FileIdentifier {
  readonly requester?: string | undefined;
  readonly server?: string | undefined;
  /** PI 11; 0 for files. */
  readonly fileType: number;
  /** PI 12, the virtual file. */
  readonly fileName: string;
}

export interface FileRequest {
  readonly fileIdentifier: FileIdentifier;
  /** PI 13. */
  readonly transferId: number;
  /** PI 15. */
  readonly restarted?: boolean;
  /** PI 17. */
  readonly priority?: number;
  /** PI 25: the largest entity that we propose. */
  readonly maxEntitySize: number;
  /** PI 21 of ORF: the compression that is wanted. Default 0, none. */
  readonly compression?: CompressionMode | 0 | undefined;
  readonly originalSender?: string | undefined;
  readonly finalReceiver?: string | undefined;
  readonly freeMessage?: Buffer | undefined;
}

export interface CreateRequest extends FileRequest, FileAttributes {}

export interface SelectRequest extends FileRequest {
  /** PI 14, default E0: all attributes. */
  readonly attributesWanted?: number;
}

/** CREATE (§4.4.4). */
export const createParameters = (request: CreateRequest): Parameters => ({
  ...fileParameters(request),
  ...attributeParameters(request),
});

/** SELECT (§4.4.6). */
export const selectParameters = (request: SelectRequest): Parameters => ({
  ...fileParameters(request),
  attributesWanted: request.attributesWanted ?? 0xe0,
});

const fileParameters = (request: FileRequest): Parameters => {
  const { fileIdentifier } = request;
  return {
    fileIdentifier: {
      ...(fileIdentifier.requester ? { requester: fileIdentifier.requester } : {}),
      ...(fileIdentifier.server ? { server: fileIdentifier.server } : {}),
      fileType: fileIdentifier.fileType,
      fileName: fileIdentifier.fileName,
    },
    transferId: request.transferId,
    ...(request.restarted === true ? { restarted: 1 } : {}),
    priority: request.priority ?? 0,
    maxEntitySize: request.maxEntitySize,
    ...(request.originalSender ? { originalSender: request.originalSender } : {}),
    ...(request.finalReceiver ? { finalReceiver: request.finalReceiver } : {}),
    ...free(request.freeMessage),
  };
};
