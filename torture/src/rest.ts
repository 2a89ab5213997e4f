/** As much of a REST client as the harness needs, of services that may be gone at any moment. */

export const ADMIN = { username: 'torture', password: 'torture-admin-password' } as const;

/** Longer than any answer takes, shorter than a round may last. */
const LIMIT_MS = 15_000;
const AUTHORIZATION = `Basic ${Buffer.from(`${ADMIN.username}:${ADMIN.password}`).toString('base64')}`;

export type Json = Readonly<Record<string, unknown>>;

/** The service answered, and not what was hoped for. */
export class RestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface CallOptions {
  /** The same request with the same key does nothing more. */
  readonly key?: string;
  /** Milliseconds. Default 15,000. */
  readonly limitMs?: number;
}

/**
 * Calls a service.
 * @throws RestError with the answer's own words when its status is not 2xx; another Error when there was no answer
 */
export const call = async (
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  url: string,
  body?: unknown,
  { key, limitMs = LIMIT_MS }: CallOptions = {},
): Promise<Json> => {
  const response = await fetch(url, {
    method,
    headers: {
      authorization: AUTHORIZATION,
      'content-type': 'application/json',
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    signal: AbortSignal.timeout(limitMs),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new RestError(response.status, `${method} ${url}: ${response.status} ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as Json;
};

/**
 * True when the service says that it can work.
 * @param standsBy whether it may leave the listeners to another pod, and lack nothing else. Default false
 */
export const isReady = async (base: string, standsBy = false): Promise<boolean> => {
  try {
    const response = await fetch(`${base}/actuator/health/readiness`, { signal: AbortSignal.timeout(LIMIT_MS) });
    if (response.ok || !standsBy) return response.ok;
    const { components } = (await response.json()) as {
      readonly components: Readonly<Record<string, { readonly status: string }>>;
    };
    const missing = Object.entries(components).filter(([, { status }]) => status === 'DOWN');
    return missing.every(([name]) => name === 'listeners');
  } catch {
    return false;
  }
};
