import type { Parameters } from './parameters.js';

/** Attributes of a file in CREATE and ACK(SELECT), as its owner states them. */
export interface FileAttributes {
  /** PI 16. */
  readonly dataCode?: number;
  /** PGI 30. */
  readonly recordFormat: number;
  readonly recordLength: number;
  readonly fileLabel?: string | undefined;
  /** PGI 40: kilobytes, rounded up. */
  readonly maxReservationKb: number;
  /** PI 51, `YYMMDDhhmmss`. */
  readonly creationDate?: string | undefined;
}

export const attributeParameters = (file: FileAttributes): Parameters => ({
  ...(file.dataCode === undefined ? {} : { dataCode: file.dataCode }),
  logicalAttributes: {
    recordFormat: file.recordFormat,
    recordLength: file.recordLength,
    ...(file.fileLabel ? { fileLabel: file.fileLabel } : {}),
  },
  physicalAttributes: { reservationUnit: 0, maxReservation: Math.min(file.maxReservationKb, 0xffff_ffff) },
  ...(file.creationDate === undefined ? {} : { historicalAttributes: { creationDate: file.creationDate } }),
});
