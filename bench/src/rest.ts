/** As much of a REST client as the benchmark needs. */

export const ADMIN = { username: 'bench', password: 'bench-admin-password' } as const;

const AUTHORIZATION = `Basic ${Buffer.from(`${ADMIN.username}:${ADMIN.password}`).toString('base64')}`;

/** Calls a service and returns its JSON answer. @throws Error with the answer's own words when the status is not 2xx. */
export async function call(method: 'GET' | 'POST', url: string, body?: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method,
    headers: { authorization: AUTHORIZATION, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

/** True when the service says that it can work. */
export async function isReady(base: string): Promise<boolean> {
  try {
    return (await fetch(`${base}/actuator/health/readiness`)).ok;
  } catch {
    return false;
  }
}
