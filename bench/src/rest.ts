/** As much of a REST client as the benchmark needs. */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { text as readText } from 'node:stream/consumers';

export const ADMIN = { username: 'bench', password: 'bench-admin-password' } as const;

const AUTHORIZATION = `Basic ${Buffer.from(`${ADMIN.username}:${ADMIN.password}`).toString('base64')}`;

/** Connections are kept, and `fetch` is not used: the one who asks runs on the cores of those who are measured. */
const agent = new Agent({ keepAlive: true });

const answerTo = async (method: 'GET' | 'POST', url: string, body?: unknown): Promise<string> => {
  const outgoing = request(url, {
    method,
    agent,
    headers: { authorization: AUTHORIZATION, 'content-type': 'application/json' },
  });
  outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  const said = await readText(answer);
  const status = answer.statusCode ?? 0;
  if (status < 200 || status > 299) throw new Error(`${method} ${url}: ${status} ${said}`);
  return said;
};

/** Calls a service and returns its JSON answer. @throws Error with the answer's own words when the status is not 2xx. */
export const call = async (method: 'GET' | 'POST', url: string, body?: unknown): Promise<Record<string, unknown>> =>
  JSON.parse(await answerTo(method, url, body)) as Record<string, unknown>;

/** The text of a page of a service that is no JSON. @throws Error as `call` */
export const text = (url: string): Promise<string> => answerTo('GET', url);

/** True when the service says that it can work. */
export const isReady = async (base: string): Promise<boolean> => {
  try {
    return (await fetch(`${base}/actuator/health/readiness`)).ok;
  } catch {
    return false;
  }
};
