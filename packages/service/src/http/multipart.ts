import { ApiError } from '../errors.js';

/** One part of a form (RFC 7578). */
export interface FormPart {
  /** Name of the field. */
  readonly name: string;
  /** Its bytes as they come; to be read to their end before the next part is asked for. */
  readonly content: AsyncGenerator<Buffer, void, undefined>;
}

/** RFC 2046 §5.1.1: 1 to 70 of these characters, no blank last. */
const BOUNDARY = /;\s*boundary=(?:"([\w'()+,./:=? -]{0,69}[\w'()+,./:=?-])"|([\w'+.-]{1,70}))\s*(?:;|$)/i;
const NAME = /^content-disposition:\s*form-data\s*;(?:.*;)?\s*name=(?:"((?:[^"\\]|\\.)*)"|([\w.-]+))\s*(?:;|$)/i;
const ENCODING = /^content-transfer-encoding:\s*(?!(?:7bit|8bit|binary)\s*$)/i;

const CRLF = '\r\n';
/** Bytes of the headers of a part, of what may stand before the first one, and behind a delimiter in its line. */
const MAX_HEADERS = 8192;

const wrong = (message: string): ApiError =>
  new ApiError('VALIDATION_ERROR', `The body is not multipart/form-data (RFC 7578): ${message}`);

/**
 * The parts of a form in the order in which they come, with bounded memory: what was read and not yet asked for is one chunk of
 * the body, and the headers of a part.
 * @param contentType with the boundary
 * @throws {ApiError} 400 when it is no form, or ends before its last delimiter; whatever `body` throws
 */
export async function* formParts(contentType: string, body: AsyncIterable<Buffer>): AsyncGenerator<FormPart> {
  const [, quoted, plain] = BOUNDARY.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw wrong('Content-Type names no boundary of 1 to 70 characters');
  const reader = new FormReader(boundary, body);
  await reader.skipPreamble();
  while (await reader.hasNext()) {
    const part = { name: nameIn(await reader.headers()), content: reader.content() };
    yield part;
    // Skips the rest of it; a generator that has ended gives nothing.
    while ((await part.content.next()).done !== true);
  }
}

const nameIn = (headers: string): string => {
  const lines = headers.split(CRLF);
  const found = lines.map((line) => NAME.exec(line)).find((match) => match !== null);
  const name = found?.[1]?.replace(/\\(.)/g, '$1') ?? found?.[2];
  if (name === undefined) throw wrong('a part has no Content-Disposition: form-data with a name');
  if (lines.some((line) => ENCODING.test(line))) {
    throw wrong(
      `part ${JSON.stringify(name)} has a Content-Transfer-Encoding (RFC 7578 §4.7): expected its bytes as they are`,
    );
  }
  return name;
};

/** Reads a body up to delimiters; `#data` is what has come and was not used. */
class FormReader {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #delimiter: Buffer;
  /** The first delimiter may be the first thing that comes: as if a line had ended before it. */
  #data: Buffer = Buffer.from(CRLF);

  constructor(boundary: string, body: AsyncIterable<Buffer>) {
    this.#chunks = body[Symbol.asyncIterator]();
    this.#delimiter = Buffer.from(`${CRLF}--${boundary}`, 'latin1');
  }

  async skipPreamble(): Promise<void> {
    let length = 0;
    for await (const piece of this.content()) {
      length += piece.length;
      if (length > MAX_HEADERS)
        throw wrong(`its first ${MAX_HEADERS} bytes have no delimiter of the boundary in Content-Type`);
    }
  }

  /** Behind a delimiter: whether a part follows. */
  async hasNext(): Promise<boolean> {
    await this.#atLeast(2);
    if (this.#data.subarray(0, 2).equals(Buffer.from('--'))) return false;
    const padding = await this.#upTo(CRLF, 'the line of a delimiter');
    if (padding.trim() !== '') throw wrong('something stands behind a delimiter in its line');
    return true;
  }

  async headers(): Promise<string> {
    await this.#atLeast(2);
    // No header at all.
    if (this.#data.subarray(0, 2).equals(Buffer.from(CRLF))) return '';
    return this.#upTo(`${CRLF}${CRLF}`, 'the headers of a part');
  }

  /** The bytes before the next delimiter, which is used up. */
  async *content(): AsyncGenerator<Buffer, void, undefined> {
    for (;;) {
      const end = this.#data.indexOf(this.#delimiter);
      if (end !== -1) {
        const piece = this.#data.subarray(0, end);
        this.#data = this.#data.subarray(end + this.#delimiter.length);
        if (piece.length > 0) yield piece;
        return;
      }
      // The last bytes may be the begin of a delimiter.
      const sure = this.#data.length - this.#delimiter.length + 1;
      if (sure > 0) {
        const piece = this.#data.subarray(0, sure);
        this.#data = this.#data.subarray(sure);
        yield piece;
      }
      await this.#more();
    }
  }

  async #upTo(end: string, what: string): Promise<string> {
    for (;;) {
      const length = this.#data.indexOf(end);
      if (length > MAX_HEADERS || (length === -1 && this.#data.length > MAX_HEADERS + end.length)) {
        throw wrong(`${what} takes more than ${MAX_HEADERS} bytes`);
      }
      if (length !== -1) {
        const text = this.#data.toString('utf8', 0, length);
        this.#data = this.#data.subarray(length + end.length);
        return text;
      }
      await this.#more();
    }
  }

  async #atLeast(bytes: number): Promise<void> {
    while (this.#data.length < bytes) await this.#more();
  }

  async #more(): Promise<void> {
    const next: IteratorResult<Buffer, unknown> = await this.#chunks.next();
    if (next.done === true) throw wrong('it ends before its last delimiter');
    this.#data = this.#data.length === 0 ? next.value : Buffer.concat([this.#data, next.value]);
  }
}
