/** `pesit sessions`: the sessions of partners with a listener, and their end. */
import type { Argument, Command } from '../frame/command.js';
import { answer, clientFor, flagsFor, pathOf } from './asking.js';
import { sayTable } from './show.js';

const SERVER = { apps: ['server'], path: '/api/v1/servers' } as const;
const LISTENER: Argument = { name: 'LISTENER', help: 'The serverId of the listener.', required: true };

interface SessionList {
  readonly sessions?: readonly { readonly transfer?: Readonly<Record<string, unknown>> | null }[];
  readonly silentPods?: readonly string[];
}

const COLUMNS = ['id', 'partnerId', 'remoteAddress', 'state', 'filename', 'bytesTransferred', 'since', 'pod'];

export const SESSION_COMMANDS: readonly Command[] = [
  {
    words: ['sessions', 'list'],
    summary: 'Lists the sessions of a listener, on all pods',
    arguments: [LISTENER],
    flags: flagsFor(SERVER),
    run: async (given, environment) => {
      const client = await clientFor(given, environment, SERVER.apps);
      const body = (await client.get(pathOf(SERVER, given.required('LISTENER'), '/sessions'))) as SessionList;
      return answer(given, environment, body, () => {
        const rows = (body.sessions ?? []).map((one) => ({
          ...{ filename: one.transfer?.['filename'], bytesTransferred: one.transfer?.['bytesTransferred'] },
          ...one,
        }));
        sayTable(environment.terminal, rows, COLUMNS);
        const { silentPods: silent = [] } = body;
        if (silent.length > 0) environment.terminal.note(`without those of ${silent.join(', ')}: no answer in time`);
      });
    },
  },
  {
    words: ['sessions', 'end'],
    summary: 'Ends a session, on whatever pod it runs',
    about: 'The partner hears ABORT 3-316; a file that runs can be restarted.',
    arguments: [LISTENER, { name: 'SESSION', help: 'Its id, as `sessions list` shows it.', required: true }],
    flags: flagsFor(SERVER),
    run: async (given, environment) => {
      const client = await clientFor(given, environment, SERVER.apps);
      const session = given.required('SESSION');
      const path = pathOf(SERVER, given.required('LISTENER'), `/sessions/${encodeURIComponent(session)}`);
      const body = await client.call('DELETE', path);
      return answer(given, environment, body, () => environment.terminal.say(`${session} ended`));
    },
  },
];
