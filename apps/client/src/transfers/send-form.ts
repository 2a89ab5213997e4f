import { formParts, validation } from '@pesit-node/service';
import type { FormPart } from '@pesit-node/service';

/** Name of the part that is the file. */
const FILE = 'file';
/** More than the request has fields. */
const MAX_FIELDS = 64;
/** Bytes of a field. */
const MAX_FIELD = 4096;

export interface SendForm {
  /** Texts, as in a query. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Rejects when something follows the file. */
  readonly content: AsyncGenerator<Buffer, void, undefined>;
}

const refused = (field: string, message: string): Error => validation([{ field, message }]);

const textOf = async ({ name, content }: FormPart): Promise<string> => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.length;
    if (bytes > MAX_FIELD) throw refused(name, `expected at most ${MAX_FIELD} bytes`);
    pieces.push(piece);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(pieces));
  } catch {
    throw refused(name, 'expected UTF-8');
  }
};

async function* fileAlone(file: FormPart, rest: AsyncGenerator<FormPart>): AsyncGenerator<Buffer, void, undefined> {
  yield* file.content;
  const next = await rest.next();
  if (next.done !== true) throw refused(next.value.name, `expected before ${FILE}, which is the last part of the form`);
}

/**
 * A form with a file (RFC 7578), read up to the begin of the file: nothing of that is kept in memory.
 * @param query fields that are given there
 * @throws {ApiError} 400 when it is no such form, or has a field twice
 */
export const sendForm = async (
  contentType: string,
  body: AsyncIterable<Buffer>,
  query: Readonly<Record<string, unknown>>,
): Promise<SendForm> => {
  const parts = formParts(contentType, body);
  const fields = new Map(Object.entries(query));
  for (;;) {
    const next = await parts.next();
    if (next.done === true) throw refused(FILE, 'required: the file, as the last part of the form');
    const part = next.value;
    if (part.name === FILE && fields.size === 0) {
      throw refused(
        FILE,
        'expected behind the other fields of the form, as its last part: what follows it is not read',
      );
    }
    if (part.name === FILE) return { fields: Object.fromEntries(fields), content: fileAlone(part, parts) };
    if (fields.has(part.name)) throw refused(part.name, 'expected once, in the query or in the form');
    if (fields.size === MAX_FIELDS) throw refused(part.name, `expected at most ${MAX_FIELDS} fields`);
    fields.set(part.name, await textOf(part));
  }
};
