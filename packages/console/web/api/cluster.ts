import { answerOf, clientApp, serverApp } from './rest.ts';
import { app } from './session.ts';
import type { components } from './generated/server.ts';

export type ClusterStatus = components['schemas']['ClusterStatus'];

/** Of the pods of the app that answers. */
export const clusterStatus = (signal: AbortSignal): Promise<ClusterStatus> =>
  answerOf(serverApp.GET('/api/v1/cluster/status', { signal }));

/** How many transfers run, by the name of the pod. */
export interface Running {
  readonly of: ReadonlyMap<string, number>;
  /** False: more run than were counted. */
  readonly isWhole: boolean;
}

/** Transfers that are counted. */
const MOST = '500';

export const runningByPod = async (signal: AbortSignal): Promise<Running> => {
  const options = { params: { query: { size: MOST } }, signal };
  const { content, next } =
    app.value === 'server'
      ? await answerOf(serverApp.GET('/api/v1/cluster/transfers', options))
      : await answerOf(clientApp.GET('/api/v1/cluster/transfers', options));
  const counts = new Map<string, number>();
  for (const { node } of content) counts.set(node ?? '', (counts.get(node ?? '') ?? 0) + 1);
  return { of: counts, isWhole: next === null };
};
