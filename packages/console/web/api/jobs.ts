/**
 * What was asked for on the page Send: files that go up to the service and then to the partner, files to receive, messages. They live
 * as long as the login, so that an upload goes on while one looks at another page.
 */
import { effect, signal } from '@preact/signals';

import { asFailure, Failure, failureOf } from './failure.ts';
import { answerOf, clientApp } from './rest.ts';
import { authorization, logOut } from './session.ts';
import { cancelTransfer, shown } from './transfers.ts';
import type { Transfer } from './transfers.ts';
import type { components } from './generated/client.ts';

type SendRequest = components['schemas']['SendRequest'];
export type ReceiveRequest = components['schemas']['ReceiveRequest'];
export type MessageRequest = components['schemas']['MessageRequest'];
/** Fields that go with a file. */
export type SendFields = {
  readonly [K in 'server' | 'virtualFile' | 'remoteFilename' | 'label' | 'priority']?: SendRequest[K] | undefined;
};

export interface Job {
  readonly key: string;
  readonly kind: 'send' | 'receive' | 'message';
  readonly name: string;
  readonly server: string;
  /** Bytes of what goes up; 0: nothing does. */
  readonly size: number;
  /** Bytes that have gone up. */
  readonly sent: number;
  readonly state: 'waiting' | 'asking' | 'asked' | 'refused' | 'stopped';
  /** As the service answered, once it is `asked`. */
  readonly transfer?: Transfer;
  readonly failure?: Failure | undefined;
}

/** Newest last. */
export const jobs = signal<readonly Job[]>([]);

/** Uploads at a time; the others wait. */
const AT_ONCE = 2;

interface Work {
  readonly run: (told: (sent: number) => void, signal: AbortSignal) => Promise<Transfer>;
  readonly stop: AbortController;
}
const works = new Map<string, Work>();

/** The page is not told of each of thousands of steps. */
const TELL_MS = 100;

const change = (key: string, to: Partial<Job>): void => {
  jobs.value = jobs.value.map((job) => (job.key === key ? { ...job, ...to } : job));
};

const begin = async (key: string, { run, stop }: Work): Promise<void> => {
  let told = 0;
  const progress = (sent: number): void => {
    if (performance.now() - told < TELL_MS) return;
    told = performance.now();
    change(key, { sent });
  };
  change(key, { state: 'asking', sent: 0, failure: undefined });
  try {
    change(key, { state: 'asked', transfer: await run(progress, stop.signal) });
    works.delete(key);
  } catch (thrown) {
    if (stop.signal.aborted) change(key, { state: 'stopped' });
    else change(key, { state: 'refused', failure: asFailure(thrown) });
  }
  next();
};

const next = (): void => {
  const busy = jobs.value.filter(({ state }) => state === 'asking').length;
  for (const { key } of jobs.value.filter(({ state }) => state === 'waiting').slice(0, Math.max(0, AT_ONCE - busy))) {
    const work = works.get(key);
    if (work !== undefined) void begin(key, work);
  }
};

/** `crypto.randomUUID` is there for https alone. */
const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

const add = (
  job: Pick<Job, 'kind' | 'name' | 'server' | 'size'>,
  run: (key: string, ...given: Parameters<Work['run']>) => Promise<Transfer>,
): void => {
  const key = newKey();
  works.set(key, { run: (told, stop) => run(key, told, stop), stop: new AbortController() });
  jobs.value = [...jobs.value, { ...job, key, sent: 0, state: 'waiting' }];
  next();
};

const parsed = (body: string): unknown => {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
};

/** The browser reads the file as it goes, so that it may be larger than the memory. Fetch tells nothing of how far it is. */
const upload = (
  file: File,
  fields: SendFields,
  key: string,
  told: (sent: number) => void,
  stop: AbortSignal,
): Promise<Transfer> =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const given = Object.entries(fields).filter((one): one is [string, string | number] => one[1] !== undefined);
    const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
    request.open('POST', `/api/v1/transfers/send?${query.toString()}`);
    request.setRequestHeader('Authorization', authorization());
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    // The same key at another try: whatever became of the first one, the file is sent once.
    request.setRequestHeader('Idempotency-Key', key);
    request.upload.onprogress = ({ loaded }) => told(loaded);
    request.onload = () => {
      const { status, statusText, responseText } = request;
      const body = parsed(responseText);
      if (status === 401) logOut('refused');
      if (status < 300) resolve(shown(body));
      else {
        const headers = { 'X-Request-Id': request.getResponseHeader('X-Request-Id') ?? '' };
        reject(failureOf(new Response(null, { status, statusText, headers }), body));
      }
    };
    request.onerror = () => reject(new Failure(0, 'UNREACHABLE', 'The upload broke off'));
    stop.addEventListener('abort', () => {
      request.abort();
      reject(new Failure(0, 'STOPPED', 'Stopped'));
    });
    request.send(file);
  });

export const sendFile = (file: File, fields: SendFields): void =>
  add({ kind: 'send', name: file.name, server: fields.server ?? '', size: file.size }, (key, told, stop) =>
    upload(file, fields, key, told, stop),
  );

/** Answered at once: how it ends is told by events. */
const query = { wait: '0' };

export const receiveFile = (body: ReceiveRequest): void => {
  const name = body.remoteFilename ?? body.virtualFile ?? '';
  add({ kind: 'receive', name, server: body.server ?? '', size: 0 }, async (key, _told, signal) => {
    const header = { 'Idempotency-Key': key };
    return shown(
      await answerOf(clientApp.POST('/api/v1/transfers/receive', { body, signal, params: { query, header } })),
    );
  });
};

export const sendMessage = (body: MessageRequest): void =>
  add({ kind: 'message', name: body.virtualFile, server: body.server ?? '', size: 0 }, async (key, _told, signal) => {
    const header = { 'Idempotency-Key': key };
    return shown(
      await answerOf(clientApp.POST('/api/v1/transfers/message', { body, signal, params: { query, header } })),
    );
  });

/** Ends an upload that waits or goes, or the transfer that it became. */
export const stopJob = async ({ key, state, transfer }: Job): Promise<void> => {
  if (state === 'asked' && transfer !== undefined) await cancelTransfer(transfer.id);
  else if (state === 'waiting') change(key, { state: 'stopped' });
  else works.get(key)?.stop.abort();
};

/** One that was refused, or broke off. */
export const tryAgain = (key: string): void => {
  change(key, { state: 'waiting', sent: 0, failure: undefined });
  next();
};

export const forgetJobs = (keys: ReadonlySet<string>): void => {
  for (const key of keys) works.delete(key);
  jobs.value = jobs.value.filter(({ key }) => !keys.has(key));
};

// Whoever logs out leaves nothing behind, and nothing that goes on in the name of the person.
effect(() => {
  if (authorization() !== '') return;
  for (const { stop } of works.values()) stop.abort();
  works.clear();
  jobs.value = [];
});

/** Leaving the page would break an upload off: the browser asks. */
addEventListener('beforeunload', (event) => {
  if (jobs.value.some(({ state, size }) => size > 0 && (state === 'asking' || state === 'waiting'))) {
    event.preventDefault();
  }
});
