/** Typed requests to the REST interface of the app that served the page. */
import createClient from 'openapi-fetch';
import type { Middleware } from 'openapi-fetch';

import { failureOf } from './failure.ts';
import type { paths as ClientPaths } from './generated/client.ts';
import type { paths as ServerPaths } from './generated/server.ts';
import { authorization, logOut } from './session.ts';

/** A service that says nothing for so long is taken for gone; the page says so, and asks again. */
const PATIENCE_MS = 20_000;

const patient = (init: Request): Promise<Response> => {
  const signal = AbortSignal.any([init.signal, AbortSignal.timeout(PATIENCE_MS)]);
  return fetch(init, { signal });
};

const withLogin: Middleware = {
  onRequest: ({ request }) => {
    request.headers.set('Authorization', authorization());
    return request;
  },
  onResponse: ({ response }) => {
    if (response.status === 401) logOut('refused');
    return undefined;
  },
};

const OPTIONS = { baseUrl: location.origin, credentials: 'omit', cache: 'no-store', fetch: patient } as const;

/** The interface of the server app. */
export const serverApp = createClient<ServerPaths>(OPTIONS);
/** The interface of the client app. */
export const clientApp = createClient<ClientPaths>(OPTIONS);
serverApp.use(withLogin);
clientApp.use(withLogin);

interface Answered<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

/** What was answered. @throws {Failure} when it was an error */
export const answerOf = async <T>(asked: Promise<Answered<T>>): Promise<T> => {
  const { data, error, response } = await asked;
  if (!response.ok) throw failureOf(response, error);
  return data as T;
};

/** The rows of a list, which is answered as it is or as a page. */
export const rowsOf = <T>(answer: readonly T[] | { readonly content: readonly T[] }): readonly T[] =>
  'content' in answer ? answer.content : answer;
