/** Traces of sessions: of a partner (server app), or of a remote server (client app). */
import { Failure } from './failure.ts';
import { answerOf, clientApp, serverApp } from './rest.ts';
import type { Detail } from './transfers.ts';
import type { paths as ClientPaths } from './generated/client.ts';

export type TraceList =
  ClientPaths['/api/v1/servers/{id}/trace']['get']['responses']['200']['content']['application/json'];
export type TracedSession = TraceList['content'][number];

/** Whose trace shows the sessions of a record; undefined: nobody's any more. */
export type Owner = { readonly app: 'server'; readonly id: string } | { readonly app: 'client'; readonly id: string };

export const ownerOf = (detail: Detail): Owner | undefined => {
  if (detail.app === 'server') return { app: 'server', id: detail.of.partnerId };
  return detail.of.serverId === null ? undefined : { app: 'client', id: String(detail.of.serverId) };
};

/** As many as are kept of one owner. */
const query = { size: '100' };

/** Undefined: there is no such partner or remote server any more. */
export const traceOf = async (owner: Owner, signal: AbortSignal): Promise<TraceList | undefined> => {
  try {
    return owner.app === 'server'
      ? await answerOf(
          serverApp.GET('/api/v1/config/partners/{partnerId}/trace', {
            params: { path: { partnerId: owner.id }, query },
            signal,
          }),
        )
      : await answerOf(
          clientApp.GET('/api/v1/servers/{id}/trace', { params: { path: { id: owner.id }, query }, signal }),
        );
  } catch (error) {
    if (error instanceof Failure && (error.status === 404 || error.status === 400)) return undefined;
    throw error;
  }
};

/** @param minutes 0: off */
export const switchTrace = async (owner: Owner, minutes: number): Promise<void> => {
  const body = { minutes };
  if (owner.app === 'server') {
    const path = { partnerId: owner.id };
    await answerOf(serverApp.PUT('/api/v1/config/partners/{partnerId}/trace', { params: { path }, body }));
  } else await answerOf(clientApp.PUT('/api/v1/servers/{id}/trace', { params: { path: { id: owner.id } }, body }));
};

/** Those of the list that carried a record. */
export const sessionsOf = (detail: Detail, list: TraceList): readonly TracedSession[] => {
  const id = String(detail.of.id);
  const attempts = new Set(detail.of.attemptList.map(({ sessionId }) => sessionId));
  return list.content.filter(({ session, transfers }) => transfers.includes(id) || attempts.has(session));
};

export interface TraceLine {
  readonly time: string;
  /** `-`: outside a transfer. */
  readonly transfer: string;
  readonly direction: 'received' | 'sent' | 'note';
  /** Name of the FPDU; empty in a note. */
  readonly name: string;
  /** Its parameters, one by one; of a note its words. */
  readonly parts: readonly string[];
}

const DIRECTIONS = { '<--': 'received', '-->': 'sent', '---': 'note' } as const;

/** Parts between commas that are in no quotes and no braces. */
const splitParts = (text: string): readonly string[] => {
  const parts: string[] = [];
  let depth = 0;
  let isQuoted = false;
  let part = '';
  for (const letter of text) {
    if (letter === '"') isQuoted = !isQuoted;
    else if (!isQuoted && letter === '{') depth += 1;
    else if (!isQuoted && letter === '}') depth -= 1;
    if (letter === ',' && depth === 0 && !isQuoted) {
      parts.push(part.trim());
      part = '';
    } else part += letter;
  }
  const all = [...parts, part.trim()].filter((one) => one !== '');
  // A value may have a comma of its own: `PI 7 (sync points) 64 KB, window 4`.
  return all.reduce<string[]>((sofar, one) => {
    if (sofar.length === 0 || /^PG?I \d/.test(one)) sofar.push(one);
    else sofar.push(`${sofar.pop() ?? ''}, ${one}`);
    return sofar;
  }, []);
};

/** A line as docs/trace.md has it; undefined: it is none. */
const lineOf = (text: string): TraceLine | undefined => {
  const [, time, transfer, arrow, said = ''] = /^(\S+) \S+ (\S+) (<--|-->|---) (.*)$/.exec(text) ?? [];
  if (time === undefined || transfer === undefined || arrow === undefined) return undefined;
  const direction = DIRECTIONS[arrow as keyof typeof DIRECTIONS];
  if (direction === 'note') return { time, transfer, direction, name: '', parts: [said] };
  const [, name = said, rest = ''] =
    /^([A-Z][\w.]*(?:\([\w.]+\))?|data)(?: to \d+)?(?: from \d+)?(?:: (.*))?$/.exec(said) ?? [];
  return { time, transfer, direction, name, parts: splitParts(rest) };
};

export const linesOf = (text: string): readonly TraceLine[] =>
  text
    .split('\n')
    .map(lineOf)
    .filter((line) => line !== undefined);

/** The lines of a session. It takes the role operator. */
export const readTrace = async (owner: Owner, session: string, signal: AbortSignal): Promise<readonly TraceLine[]> => {
  const options = { parseAs: 'text', signal } as const;
  const text =
    owner.app === 'server'
      ? await answerOf(
          serverApp.GET('/api/v1/config/partners/{partnerId}/trace/{session}', {
            params: { path: { partnerId: owner.id, session } },
            ...options,
          }),
        )
      : await answerOf(
          clientApp.GET('/api/v1/servers/{id}/trace/{session}', {
            params: { path: { id: owner.id, session } },
            ...options,
          }),
        );
  return linesOf(text);
};
