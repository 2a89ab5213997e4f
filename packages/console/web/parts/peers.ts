import { useAnswer } from '../api/answer.ts';
import { answerOf, clientApp, rowsOf, serverApp } from '../api/rest.ts';
import type { Failure } from '../api/failure.ts';
import { app } from '../api/session.ts';

/** Whom transfers can be filtered by: partners of the server app, remote servers of the client app. */
export interface Peers {
  /** Value of the filter, and its words. */
  readonly options: readonly (readonly [value: string, word: string])[];
  readonly nameOf: (value: string) => string;
  /** False until they were answered. */
  readonly isKnown: boolean;
  readonly failure: Failure | undefined;
  readonly ask: () => void;
}

/** More are not offered in a list; whoever has them types. */
const MOST = 200;

const load = async (signal: AbortSignal): Promise<Peers['options']> => {
  const query = { page: '0', size: String(MOST) };
  if (app.value === 'server') {
    const rows = rowsOf(await answerOf(serverApp.GET('/api/v1/config/partners', { params: { query }, signal })));
    return rows.map(({ partnerId }) => [partnerId, partnerId] as const);
  }
  const rows = rowsOf(await answerOf(clientApp.GET('/api/v1/servers', { params: { query }, signal })));
  return rows.map(({ id, name }) => [String(id), name] as const);
};

export const usePeers = (): Peers => {
  const { value, failure, ask } = useAnswer(`peers ${app.value}`, load);
  const options = value ?? [];
  const nameOf = (one: string): string => options.find(([id]) => id === one)?.[1] ?? one;
  return { options, nameOf, isKnown: value !== undefined, failure, ask };
};
