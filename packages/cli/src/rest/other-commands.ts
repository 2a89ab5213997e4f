/** Commands for what is no list of objects: contents, traces, the license, the state of a service. */
import { open, readFile, rm } from 'node:fs/promises';
import { resolve } from 'node:path';

import type { Command, Environment, Given } from '../frame/command.js';
import { CliError, exitCode } from '../frame/exit-codes.js';
import { answer, APP_FLAG, clientFor, flagsFor, pathOf } from './asking.js';
import { splitPair } from './fields.js';
import { APPS, REST_FLAGS } from './profiles.js';
import type { Query } from './rest-client.js';
import { sayObject, sayTable } from './show.js';

const BOTH = { apps: APPS };

/** Owners of traces: the app that has them, and their path. */
const OWNERS = {
  partner: { app: 'server', path: '/api/v1/config/partners' },
  server: { app: 'client', path: '/api/v1/servers' },
} as const;

const TRACE_WORDS = {
  on: 'Records the next sessions of a partner or a remote server',
  off: 'Ends the recording; what was recorded stays',
  list: 'Lists the sessions that were recorded',
  show: 'Shows a recorded session, message by message',
} as const;

type TraceWord = keyof typeof TRACE_WORDS;

const runTrace = async (word: TraceWord, given: Given, environment: Environment): Promise<number> => {
  const { app, path } = OWNERS[given.required('OWNER') as keyof typeof OWNERS];
  const { terminal } = environment;
  const client = await clientFor(given, environment, [app]);
  const trace = pathOf({ path }, given.required('ID'), '/trace');
  if (word === 'on') {
    const state = await client.call('PUT', trace, { body: { minutes: given.number('minutes') ?? TRACE_MINUTES } });
    return answer(given, environment, state, () => sayObject(terminal, state));
  }
  if (word === 'off') {
    await client.call('DELETE', trace);
    return answer(given, environment, { active: false }, () => terminal.say('trace off'));
  }
  if (word === 'list') {
    const body = await client.get(trace);
    return answer(given, environment, body, () =>
      sayTable(terminal, body, ['session', 'startTime', 'endTime', 'outcome', 'lines']),
    );
  }
  const text = await client.get(`${trace}/${encodeURIComponent(given.required('SESSION'))}`);
  return answer(given, environment, text, () => {
    for (const line of String(text).trimEnd().split('\n')) terminal.say(line);
  });
};

const traceCommand = (word: TraceWord): Command => ({
  words: ['trace', word],
  summary: TRACE_WORDS[word],
  arguments: [
    {
      name: 'OWNER',
      help: 'partner (of the server app) or server (a remote server of the client app).',
      required: true,
      choices: Object.keys(OWNERS),
    },
    { name: 'ID', help: 'The partner, or the id of the remote server.', required: true },
    ...(word === 'show' ? [{ name: 'SESSION', help: 'The session, as `trace list` shows it.', required: true }] : []),
  ],
  flags: [
    ...(word === 'on'
      ? [
          {
            name: 'minutes',
            type: 'number',
            from: 1,
            to: 1440,
            fallback: String(TRACE_MINUTES),
            help: 'For how long.',
          } as const,
        ]
      : []),
    ...REST_FLAGS,
  ],
  run: (given, environment) => runTrace(word, given, environment),
});

const TRACE_MINUTES = 60;

export const OTHER_COMMANDS: readonly Command[] = [
  {
    words: ['transfers', 'stats'],
    summary: 'Adds the transfers up',
    arguments: [
      {
        ...{ name: 'FIELD=VALUE', required: false, rest: true },
        help: 'Filters as the service has them, and groupBy, e.g. groupBy=partner from=2026-11-01.',
      },
    ],
    flags: [APP_FLAG, ...REST_FLAGS],
    run: async (given, environment) => {
      const client = await clientFor(given, environment, ['client', 'server']);
      const query = given.list('FIELD=VALUE').map(splitPair);
      const filters = Object.fromEntries(query.map(({ name, value }) => [name, value]));
      const body = await client.get('/api/v1/transfers/stats', filters);
      return answer(given, environment, body, () => sayObject(environment.terminal, body));
    },
  },
  {
    words: ['transfers', 'download'],
    summary: 'Fetches the content of a received file',
    arguments: [{ name: 'ID', help: 'Its id.', required: true }],
    flags: [
      { name: 'file', type: 'path', required: true, help: 'Where to put it; it must not exist.' },
      APP_FLAG,
      ...REST_FLAGS,
    ],
    run: async (given, environment) => {
      const client = await clientFor(given, environment, ['client', 'server']);
      const path = resolve(environment.directory, given.required('file'));
      const failed = (error: unknown): never => {
        if (error instanceof CliError) throw error;
        throw new CliError('local', `${path} cannot be written: ${(error as Error).message}`, { cause: error });
      };
      const file = await open(path, 'wx', 0o600).catch(failed);
      const source = pathOf({ path: '/api/v1/transfers' }, given.required('ID'), '/content');
      await client.download(source, file.createWriteStream()).catch(async (error: unknown) => {
        // Nobody takes a part for the whole.
        await file.close().catch(() => undefined);
        await rm(path, { force: true });
        return failed(error);
      });
      return answer(given, environment, { file: path }, () => environment.terminal.say(`${path} written`));
    },
  },
  ...(['on', 'off', 'list', 'show'] as const).map(traceCommand),
  {
    words: ['license', 'show'],
    summary: 'Shows the license and what it allows',
    arguments: [],
    flags: flagsFor(BOTH),
    run: async (given, environment) => {
      const client = await clientFor(given, environment, APPS);
      const body = await client.get('/api/v1/license');
      return answer(given, environment, body, () => sayObject(environment.terminal, body));
    },
  },
  {
    words: ['license', 'install'],
    summary: 'Installs the license of a file',
    arguments: [{ name: 'FILE', help: 'The license as the vendor sent it.', required: true, type: 'path' }],
    flags: flagsFor(BOTH, {
      name: 'force',
      type: 'switch',
      help: 'Also where it allows less than the license in force.',
    }),
    run: async (given, environment) => {
      const client = await clientFor(given, environment, APPS);
      const path = resolve(environment.directory, given.required('FILE'));
      const text = await readFile(path, 'utf8').catch((error: unknown) => {
        throw new CliError('local', `${path} cannot be read: ${(error as Error).message}`, { cause: error });
      });
      const query: Query = given.has('force') ? { force: 'true' } : {};
      const body = await client.call('POST', '/api/v1/license', { query, body: { license: text.trim() } });
      return answer(given, environment, body, () => sayObject(environment.terminal, body));
    },
  },
  {
    words: ['license', 'extend'],
    summary: 'Adds days to the evaluation',
    arguments: [{ name: 'DAYS', help: 'How many.', required: true }],
    flags: flagsFor(BOTH),
    run: async (given, environment) => {
      const client = await clientFor(given, environment, APPS);
      const days = Number(given.required('DAYS'));
      const body = await client.call('POST', '/api/v1/license/extend-evaluation', { body: { days } });
      return answer(given, environment, body, () => sayObject(environment.terminal, body));
    },
  },
  {
    words: ['status'],
    summary: 'Shows the health of a service and its pods',
    arguments: [],
    flags: flagsFor(BOTH),
    run: async (given, environment) => {
      const client = await clientFor(given, environment, APPS);
      const health = await client.get('/actuator/health').catch((error: unknown) => {
        // A service that is down answers 503 with the same body.
        if (error instanceof CliError && typeof error.body === 'object' && error.body !== null) return error.body;
        throw error;
      });
      const { status } = health as { readonly status?: string };
      answer(given, environment, health, () => sayObject(environment.terminal, health));
      return exitCode(status === 'UP' ? 'done' : 'unavailable');
    },
  },
];
