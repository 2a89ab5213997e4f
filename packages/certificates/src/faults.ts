import { unprocessable, validation } from '@pesit-node/service';
import type { ApiError } from '@pesit-node/service';

/** Fields of requests that bring certificates. */
export type UploadField =
  'certificate' | 'privateKey' | 'pkcs12' | 'password' | 'certificates' | 'crls' | 'csr' | 'file';

/**
 * Something that was given is not what it should be. The message says what was expected and what came, never a piece of it.
 * `unreadable`: it is not in the form that is expected; `unfit`: it is, and cannot be used.
 */
export class UploadError extends Error {
  override readonly name = 'UploadError';
  readonly field: UploadField;
  readonly fault: 'unreadable' | 'unfit';

  constructor(field: UploadField, message: string, fault: 'unreadable' | 'unfit' = 'unreadable', cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.field = field;
    this.fault = fault;
  }
}

export const unreadable = (field: UploadField, message: string, cause?: unknown): UploadError =>
  new UploadError(field, message, 'unreadable', cause);

export const unfit = (field: UploadField, message: string): UploadError => new UploadError(field, message, 'unfit');

/** The answer to a request that brought it: 400 for what cannot be read, 422 for what cannot be used. */
export const uploadAnswer = ({ field, message, fault }: UploadError): ApiError =>
  fault === 'unreadable'
    ? validation([{ field, message }])
    : unprocessable(`${field}: ${message}`, [{ field, message }]);
