import { ApiError, formParts, validation } from '@pesit-node/service';
import type { Request, Response } from 'express';

import { BOUNDS } from './bounds.js';

/** Name of the part that is the file. */
const FILE = 'file';
/** More than a request has fields. */
const MAX_PARTS = 8;

export const FORM_DATA = 'multipart/form-data';

export const isForm = (req: Request): boolean =>
  req.get('Content-Type')?.split(';', 1)[0]?.trim().toLowerCase() === FORM_DATA;

export interface UploadForm {
  readonly fields: Readonly<Record<string, string>>;
  readonly file: Buffer | undefined;
}

const gather = async (name: string, content: AsyncIterable<Buffer>, most: number): Promise<Buffer> => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.length;
    if (bytes > most) {
      throw validation([{ field: name, message: `expected at most ${most} bytes` }]);
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
};

/**
 * A form with a file, which is small enough to be read whole.
 * @param most bytes of the file; other parts are as small as a store
 * @throws {ApiError} 400
 */
export const readUploadForm = async (
  req: Request,
  res: Response,
  most: number = BOUNDS.storeBytes,
): Promise<UploadForm> => {
  const fields = new Map<string, string>();
  let file: Buffer | undefined;
  try {
    // Not destroyed when the reader gives up: the caller shall still hear why.
    const body = req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    for await (const { name, content } of formParts(req.get('Content-Type') ?? '', body)) {
      if (fields.has(name) || (name === FILE && file !== undefined)) {
        throw validation([{ field: name, message: 'expected once' }]);
      }
      if (fields.size === MAX_PARTS)
        throw validation([{ field: name, message: `expected at most ${MAX_PARTS} parts` }]);
      const bytes = await gather(name, content, name === FILE ? most : BOUNDS.storeBytes);
      if (name === FILE) file = bytes;
      else fields.set(name, bytes.toString('utf8'));
    }
  } catch (error) {
    // The rest of the body is not read: the connection cannot be used again.
    if (!req.complete) res.set('Connection', 'close');
    if (error instanceof ApiError) throw error;
    throw new ApiError('VALIDATION_ERROR', 'The upload ended before all of it had come: send it again', {
      cause: error,
    });
  }
  return { fields: Object.fromEntries(fields), file };
};
