/** What an operator should look at, worst first, from what the service tells of itself. */
import { answerOf, clientApp, rowsOf, serverApp } from './rest.ts';
import { app } from './session.ts';
import { listTransfers, readTransfer } from './transfers.ts';
import type { Transfer } from './transfers.ts';
import type { components as ClientParts } from './generated/client.ts';
import type { components } from './generated/server.ts';

export type Health = components['schemas']['Health'];
export type Cluster = components['schemas']['ClusterOverview'];

/** Transfers that failed for one reason with one partner. */
export interface FailureGroup {
  readonly diagnostic: string | null;
  readonly peer: string;
  readonly count: number;
  readonly last: Transfer;
}

/** A diagnostic in words, and what to do about it. */
export interface Advice {
  readonly words: string | null;
  readonly whatToDo: string | null;
}

export interface Failures {
  readonly groups: readonly FailureGroup[];
  /** False: there are more than were looked at. */
  readonly isWhole: boolean;
}

const DAY_MS = 86_400_000;
/** Failures that are looked at. */
const MOST = 200;
/** Groups whose diagnostic is asked for in words. */
const EXPLAINED = 6;

const grouped = (failed: readonly Transfer[]): readonly (readonly [Transfer, number])[] => {
  const groups = new Map<string, [Transfer, number]>();
  for (const one of failed) {
    const key = `${one.diagnostic ?? ''} ${one.peer}`;
    const group = groups.get(key);
    // The newest come first.
    if (group === undefined) groups.set(key, [one, 1]);
    else group[1] += 1;
  }
  return [...groups.values()].sort(([, a], [, b]) => b - a);
};

/** What failed in the last 24 hours, by reason and partner, most often first. */
export const recentFailures = async (signal: AbortSignal): Promise<Failures> => {
  const from = new Date(Date.now() - DAY_MS).toISOString();
  const page = await listTransfers({ status: 'FAILED', from }, { size: MOST }, signal);
  const groups = grouped(page.content).map(([last, count]) => {
    const { diagnostic, peer } = last;
    return { diagnostic, peer, count, last };
  });
  return { groups, isWhole: page.next === null };
};

/** The groups whose diagnostics are asked for in words. */
export const explainedOf = (failures: Failures | undefined): readonly string[] =>
  (failures?.groups ?? []).slice(0, EXPLAINED).map(({ last }) => last.id);

/** By the identifiers of these transfers. */
export const adviceOf = async (ids: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, Advice>> => {
  const asked = ids.map(async (id): Promise<readonly [string, Advice]> => {
    const { of } = await readTransfer(id, signal);
    return [id, { words: of.diagnosticText, whatToDo: of.whatToDo }];
  });
  return new Map(await Promise.all(asked));
};

const isHealth = (body: unknown): body is Health => body !== null && typeof body === 'object' && 'components' in body;

/** Also when it is DOWN, which comes with the status 503. */
export const health = async (signal: AbortSignal): Promise<Health> => {
  const { data, error, response } = await serverApp.GET('/actuator/health', { signal });
  if (response.status === 503 && isHealth(error)) return error;
  return answerOf(Promise.resolve({ response, ...(data === undefined ? { error } : { data }) }));
};

export const cluster = (signal: AbortSignal): Promise<Cluster> =>
  answerOf(serverApp.GET('/api/v1/cluster', { signal }));

export type Listener = components['schemas']['Listener'];
export type RemoteServer = ClientParts['schemas']['RemoteServer'];

/** Of the server app. */
export const listeners = async (signal: AbortSignal): Promise<readonly Listener[]> =>
  app.value === 'client' ? [] : rowsOf(await answerOf(serverApp.GET('/api/v1/servers', { signal })));

/** Of the client app. */
export const remoteServers = async (signal: AbortSignal): Promise<readonly RemoteServer[]> =>
  app.value === 'server' ? [] : rowsOf(await answerOf(clientApp.GET('/api/v1/servers', { signal })));
