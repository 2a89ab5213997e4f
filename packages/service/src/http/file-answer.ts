import { pipeline } from 'node:stream/promises';

import type { Request, Response } from 'express';
import { codeOf, within } from '@pesit-node/ground';

import { ApiError } from '../errors.js';

export const OCTET_STREAM = 'application/octet-stream';

/** An open file, as a `FileStore` gives it. */
export interface AnsweredFile {
  readonly version: { readonly size: number; readonly mtimeNs: bigint };
  readonly readv: (buffers: readonly Buffer[], position: number) => Promise<number>;
  readonly stat: () => Promise<AnsweredFile['version']>;
  readonly close: () => Promise<void>;
}

export interface FileAnswerOptions {
  /** For `Content-Disposition`. */
  readonly name: string;
  /** How long a read may take, milliseconds. */
  readonly limitMs: number;
}

/** Bytes that are read at a time; twice as many are held for a caller that is slow. */
const BLOCK = 262_144;

/** RFC 9110 §15.5.17. @param size of the whole file, bytes */
const noSuchPart = (size: number): ApiError =>
  new ApiError('RANGE_NOT_SATISFIABLE', `The file has no part that Range asks for: it is ${size} bytes long`, {
    headers: { 'Content-Range': `bytes */${size}` },
  });

/** RFC 9110 §13.1.5: without If-Range, or where it names this version. */
const meansThisVersion = (req: Request, tag: string, modified: string): boolean => {
  const condition = req.get('If-Range');
  return condition === undefined || condition === tag || condition === modified;
};

/** @throws when the file is another one at the end: before its last piece is given away, so that nobody takes it for whole */
async function* piecesOf(file: AnsweredFile, start: number, end: number, limitMs: number): AsyncGenerator<Buffer> {
  const { size, mtimeNs } = file.version;
  for (let at = start; at < end;) {
    const block = Buffer.allocUnsafe(Math.min(BLOCK, end - at));
    const read = await within(file.readv([block], at), limitMs, `the volume did not answer a read in ${limitMs} ms`);
    at += read;
    if (at === end || read === 0) {
      const now = await within(file.stat(), limitMs, `the volume did not answer in ${limitMs} ms`);
      if (read === 0 || now.size !== size || now.mtimeNs !== mtimeNs)
        throw new Error('the file changed while it was read');
    }
    yield block.subarray(0, read);
  }
}

/**
 * Sends a file as bytes, or the part of it that `Range` names (RFC 9110 §14), in memory that does not grow with it, and closes it. A failure
 * after the first byte ends the connection.
 * @throws {ApiError} 416
 */
export const answerFile = async (
  req: Request,
  res: Response,
  file: AnsweredFile,
  { name, limitMs }: FileAnswerOptions,
): Promise<void> => {
  try {
    const { size, mtimeNs } = file.version;
    const tag = `"${size.toString(16)}-${mtimeNs.toString(16)}"`;
    const modified = new Date(Number(mtimeNs / 1_000_000n)).toUTCString();
    const asked = meansThisVersion(req, tag, modified) ? req.range(size) : undefined;
    if (asked === -1) throw noSuchPart(size);
    // Several parts, and what is no range of bytes, are answered with the whole (RFC 9110 §14.2).
    const isPart = Array.isArray(asked) && asked.type === 'bytes' && asked.length === 1;
    const { start, end } = (isPart && asked[0]) || { start: 0, end: size - 1 };
    if (isPart) res.status(206).set('Content-Range', `bytes ${start}-${end}/${size}`);
    res.attachment(name).set({ 'Content-Type': OCTET_STREAM, 'Content-Length': String(end + 1 - start) });
    res.set({ 'Accept-Ranges': 'bytes', 'Last-Modified': modified, ETag: tag });
    if (req.method === 'HEAD') res.end();
    else await pipeline(piecesOf(file, start, end + 1, limitMs), res);
  } catch (error) {
    // The caller has left: that is no fault of anybody.
    if (codeOf(error) !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  } finally {
    // On a volume that does not answer this waits for the read that was given up.
    file.close().catch(() => undefined);
  }
};
