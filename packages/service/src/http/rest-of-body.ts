import type { Request, Response } from 'express';

/** Bytes that are read of a body that was refused: a caller that is still sending must come to read its answer. */
const MOST_BYTES = 1_048_576;

/** Whether no more of the body is to come than may be read for nothing: its connection is used again. */
const endsSoon = (req: Request): boolean =>
  req.complete || req.destroyed || Number(req.headers['content-length'] ?? Infinity) <= MOST_BYTES;

/**
 * Sends an answer before all of the request has come. The rest of it is read and forgotten; a caller with a long body loses its connection: that is
 * said in the answer, and it ends when the body does, or after `MOST_BYTES` more. Ended at once, its reset could overtake the answer.
 * @param text the whole answer; status and the other headers are set
 */
export const answerEarly = (req: Request, res: Response, text: string): void => {
  res.set('Content-Length', String(Buffer.byteLength(text)));
  if (endsSoon(req) || req.method === 'HEAD') {
    res.end(text);
    return;
  }
  res.set('Connection', 'close').write(text);
  let forgotten = 0;
  const end = (): void => void res.end();
  req.on('data', (piece: Buffer) => {
    forgotten += piece.length;
    if (forgotten > MOST_BYTES) end();
  });
  req.once('end', end).once('close', end);
  req.resume();
};
