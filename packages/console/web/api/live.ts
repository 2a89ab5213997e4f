/**
 * Server-sent events over fetch, since an EventSource cannot send a login. Reconnects by itself, tells the last id that it has seen,
 * and so misses nothing that the service still has.
 */
import { failureOf } from './failure.ts';
import { authorization, logOut } from './session.ts';

export interface Followed {
  /** @param data as JSON says */
  readonly event: (name: string, data: unknown) => void;
  /** Whether events come right now. */
  readonly state: (isOpen: boolean) => void;
}

const AGAIN_MS = [500, 1000, 2000, 5000, 10_000];
/** The service sends a comment every 15 seconds. */
const SILENCE_MS = 45_000;

interface Frame {
  name: string;
  data: string;
}

/** Follows until the signal is given. */
export const follow = (path: string, { event, state }: Followed, signal: AbortSignal): void => {
  let lastId: string | undefined;
  let failures = 0;

  const take = (line: string, frame: Frame): void => {
    if (line === '') {
      if (frame.data !== '') {
        failures = 0;
        event(frame.name, JSON.parse(frame.data));
      }
      Object.assign(frame, { name: 'message', data: '' });
      return;
    }
    const [field, value] = split(line);
    if (field === 'id') lastId = value;
    else if (field === 'event') frame.name = value;
    else if (field === 'data') frame.data += frame.data === '' ? value : `\n${value}`;
  };

  const read = async (): Promise<void> => {
    const quiet = new AbortController();
    let timer = setTimeout(() => quiet.abort(), SILENCE_MS);
    try {
      const response = await fetch(path, {
        headers: {
          Authorization: authorization(),
          Accept: 'text/event-stream',
          ...(lastId === undefined ? {} : { 'Last-Event-ID': lastId }),
        },
        credentials: 'omit',
        cache: 'no-store',
        signal: AbortSignal.any([signal, quiet.signal]),
      });
      if (response.status === 204) {
        finished = true;
        return;
      }
      if (response.status === 401) logOut('refused');
      if (!response.ok || response.body === null) throw failureOf(response, undefined);
      state(true);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const frame: Frame = { name: 'message', data: '' };
      let rest = '';
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => quiet.abort(), SILENCE_MS);
        const lines = (rest + value).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) take(line.endsWith('\r') ? line.slice(0, -1) : line, frame);
      }
    } finally {
      clearTimeout(timer);
      state(false);
    }
  };

  let finished = false;
  const run = async (): Promise<void> => {
    while (!signal.aborted && !finished && authorization() !== '') {
      await read().catch(() => undefined);
      const wait = AGAIN_MS[Math.min(failures++, AGAIN_MS.length - 1)] ?? 0;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  };
  void run();
};

/** A field and its value; one blank behind the colon is none of it. */
const split = (line: string): [string, string] => {
  const colon = line.indexOf(':');
  if (colon < 0) return [line, ''];
  const value = line.slice(colon + 1);
  return [line.slice(0, colon), value.startsWith(' ') ? value.slice(1) : value];
};
