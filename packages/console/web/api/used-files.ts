import { answerOf, clientApp } from './rest.ts';

/** The virtual files that were used with a remote server before, the most used first: the client app declares none of its own. */
export const usedFiles = async (
  serverId: string,
  direction: 'SEND' | 'RECEIVE',
  signal: AbortSignal,
): Promise<readonly string[]> => {
  if (serverId === '') return [];
  const query = { groupBy: 'virtualFile', serverId, direction } as const;
  const { groups = [] } = await answerOf(clientApp.GET('/api/v1/transfers/stats', { params: { query }, signal }));
  return groups.flatMap(({ value }) => (value === null ? [] : [value])).slice(0, 50);
};
