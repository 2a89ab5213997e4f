import type { Response } from 'express';

/** A file that is made while it is sent. */
export interface TextFile {
  /** Content-Type. */
  readonly type: string;
  readonly filename: string;
}

/**
 * Answers as the text comes, no faster than it is taken; a caller that goes away ends it, and is no failure of the service. Pieces may be
 * empty: each is a look whether somebody still reads.
 */
export const answerText = async (
  res: Response,
  { type, filename }: TextFile,
  text: AsyncIterable<string>,
): Promise<void> => {
  const begin = (): void => {
    if (!res.headersSent) res.attachment(filename).type(type);
  };
  for await (const piece of text) {
    if (res.destroyed) return;
    if (piece === '') continue;
    // Not before the first piece is there: what fails until then is answered as an error.
    begin();
    if (!res.write(piece)) await drained(res);
  }
  begin();
  res.end();
};

/** Resolves when more may be written, or nobody is there to take it. `pipeline` puts seven listeners on each answer. */
const drained = (res: Response): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      res.off('drain', done).off('close', done);
      resolve();
    };
    res.once('drain', done).once('close', done);
  });
