/** Files of the service, which go to the disk of the person without being held in the memory of the page. */
import { Failure, failureOf } from './failure.ts';
import { authorization, login, logOut } from './session.ts';
import { save } from './save.ts';

/** Up to so many bytes a file is handed over as a whole, which needs no question where to put it. */
const WHOLE = 268_435_456;

interface Writable extends WritableStream<Uint8Array> {
  readonly abort: (reason?: unknown) => Promise<void>;
}
interface Place {
  readonly createWritable: () => Promise<Writable>;
}
/** Of the File System Access API: some browsers have it, over https or on this machine alone. */
type AskPlace = (options: { readonly suggestedName: string }) => Promise<Place>;
const askPlace = (): AskPlace | undefined => (window as { readonly showSaveFilePicker?: AskPlace }).showSaveFilePicker;

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** What does the same without a browser. */
const commandFor = (path: string, name: string): string =>
  `curl -u ${quoted(login.value?.username ?? '')} -o ${quoted(name)} ${quoted(location.origin + path)}`;

const tooLarge = (path: string, name: string): Failure => new Failure(0, 'TOO_LARGE_HERE', commandFor(path, name));

/** All of a body. @throws {Failure} when it is larger than can be handed over as a whole */
const wholeOf = async (body: ReadableStream<Uint8Array<ArrayBuffer>>, over: () => Failure): Promise<Blob> => {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts);
    size += value.byteLength;
    if (size > WHOLE) {
      await reader.cancel();
      throw over();
    }
    parts.push(value);
  }
};

/**
 * Fetches a file with the login, and puts it where the person says, or where the browser puts downloads.
 * @throws {Failure} when there is none, or when it is too large for this browser: then with a command that fetches it
 */
export const download = async (path: string, name: string): Promise<void> => {
  const stop = new AbortController();
  const response = await fetch(path, {
    headers: { Authorization: authorization() },
    credentials: 'omit',
    cache: 'no-store',
    signal: stop.signal,
  });
  if (response.status === 401) logOut('refused');
  if (!response.ok) throw failureOf(response, await response.json().catch(() => undefined));
  const body = response.body ?? new Blob([]).stream();
  const size = Number(response.headers.get('Content-Length') ?? 0);
  if (size <= WHOLE) {
    save(await wholeOf(body, () => tooLarge(path, name)), name);
    return;
  }
  const ask = askPlace();
  if (ask === undefined) {
    stop.abort();
    throw tooLarge(path, name);
  }
  try {
    const place = await ask({ suggestedName: name });
    // A writable that is given up leaves nothing in the place of the file.
    await body.pipeTo(await place.createWritable());
  } catch (error) {
    stop.abort();
    // The person has closed the question.
    if (error instanceof DOMException && error.name === 'AbortError') return;
    throw error;
  }
};
