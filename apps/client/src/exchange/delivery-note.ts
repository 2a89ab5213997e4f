import { DeliveryNotes } from '@pesit-node/storage';
import { firstAnswer } from '@pesit-node/transfers';
import type { FirstAnswer } from '@pesit-node/transfers';
import { z } from 'zod';

/**
 * The file that is about to be delivered: written before the partner hears that the file is here, removed when the record is
 * COMPLETED. The process that takes the transfer over learns from it what a dead process had done.
 */
const note = z.strictObject({
  /** The first answer, by the name that notes of every version have for it. */
  context: firstAnswer,
  /** Where the file may have gone, in the order of trial; absolute. */
  paths: z.array(z.string()),
  size: z.int(),
  /** `sha256:` and hex; undefined when none is computed. */
  checksum: z.string().optional(),
  bytesTransferred: z.int(),
  articles: z.int(),
});

export interface DeliveryNote extends Omit<z.output<typeof note>, 'context'> {
  readonly first: FirstAnswer;
}

/** @param durable see `DeliveryNotes.write` */
export const writeNote = (
  root: string,
  id: string,
  { first, ...content }: DeliveryNote,
  durable: boolean,
): Promise<void> => new DeliveryNotes(root).write(id, JSON.stringify({ context: first, ...content }), durable);

/** Undefined as well when a power cut left half of it: then it was never acted upon. */
export const readNote = async (root: string, id: string): Promise<DeliveryNote | undefined> => {
  const text = await new DeliveryNotes(root).read(id);
  if (text === undefined) return undefined;
  try {
    const { context: first, ...content } = note.parse(JSON.parse(text));
    return { first, ...content };
  } catch {
    return undefined;
  }
};
