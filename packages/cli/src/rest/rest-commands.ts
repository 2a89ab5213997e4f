/** Commands for the REST interface, made from the table of resources. */
import type { Command, Flag } from '../frame/command.js';
import { exitCode, usageError } from '../frame/exit-codes.js';
import { splitPair } from './fields.js';
import { answer, clientFor, flagsFor, pathOf } from './asking.js';
import { OTHER_COMMANDS } from './other-commands.js';
import { bodyOf, FROM_FLAG, pairs } from './request-body.js';
import type { Query } from './rest-client.js';
import { RESOURCES } from './resources.js';
import type { Resource, Verb } from './resources.js';
import { SEND_COMMAND } from './send-command.js';
import { SESSION_COMMANDS } from './session-commands.js';
import { sayObject, sayTable } from './show.js';
import { WATCH_COMMAND } from './watch-command.js';

const PAGE_FLAGS: readonly Flag[] = [
  { name: 'size', type: 'number', from: 1, to: 500, fallback: '20', help: 'Rows of a page.' },
  { name: 'page', type: 'number', fallback: '0', help: 'The page, from 0.' },
  { name: 'sort', type: 'text', value: 'FIELD,asc|desc', help: 'Order, as the service offers it.' },
];

const listCommand = (resource: Resource): Command => ({
  words: [resource.word, 'list'],
  summary: `Lists the ${resource.all}`,
  arguments: [pairs('Filters as the service has them, e.g. status=FAILED from=2026-11-01.')],
  flags: flagsFor(resource, ...PAGE_FLAGS),
  run: async (given, environment) => {
    const client = await clientFor(given, environment, resource.apps);
    const filters = given.list('FIELD=VALUE').map(splitPair);
    const paging = ['size', 'page', 'sort'].flatMap((name) => {
      const value = given.text(name);
      return value === undefined ? [] : [[name, value] as const];
    });
    const query: Query = Object.fromEntries([...filters.map(({ name, value }) => [name, value] as const), ...paging]);
    const body = await client.get(resource.path, query);
    return answer(given, environment, body, () => sayTable(environment.terminal, body, resource.columns));
  },
});

const showCommand = (resource: Resource): Command => ({
  words: [resource.word, 'show'],
  summary: `Shows ${resource.one}`,
  arguments: [{ name: 'ID', help: `Its ${resource.id ?? 'id'}.`, required: true }],
  flags: flagsFor(resource),
  run: async (given, environment) => {
    const client = await clientFor(given, environment, resource.apps);
    const body = await client.get(pathOf(resource, given.required('ID')));
    return answer(given, environment, body, () => sayObject(environment.terminal, body));
  },
});

const createCommand = (resource: Resource): Command => ({
  words: [resource.word, 'create'],
  summary: `Creates ${resource.one}`,
  about:
    'A value gets the type that the service expects; FIELD:=JSON gives it as it is, and null clears what may be cleared.',
  arguments: [pairs('Its fields.')],
  flags: flagsFor(resource, FROM_FLAG),
  run: async (given, environment) => {
    const client = await clientFor(given, environment, resource.apps);
    const body = await bodyOf(given, environment, client, 'POST', resource.path);
    const made = await client.call('POST', resource.path, { body });
    return answer(given, environment, made, () => sayObject(environment.terminal, made));
  },
});

const updateCommand = (resource: Resource): Command => ({
  words: [resource.word, 'update'],
  summary: `Changes fields of ${resource.one}`,
  about:
    'A value gets the type that the service expects; FIELD:=JSON gives it as it is, and null clears what may be cleared.',
  arguments: [{ name: 'ID', help: `Its ${resource.id ?? 'id'}.`, required: true }, pairs('Fields to change.')],
  flags: flagsFor(resource, FROM_FLAG),
  run: async (given, environment) => {
    const client = await clientFor(given, environment, resource.apps);
    const body = await bodyOf(given, environment, client, 'PUT', `${resource.path}/{${resource.id ?? 'id'}}`);
    if (Object.keys(body).length === 0) throw usageError('nothing to change: give FIELD=VALUE or --from FILE');
    const changed = await client.call('PUT', pathOf(resource, given.required('ID')), { body });
    return answer(given, environment, changed, () => sayObject(environment.terminal, changed));
  },
});

const FORCE_FLAG: Flag = {
  name: 'force',
  type: 'switch',
  help: 'Also while it is in use; docs/rest.md says what becomes of that.',
};

const deleteCommand = (resource: Resource): Command => ({
  words: [resource.word, 'delete'],
  summary: `Removes ${resource.one}`,
  arguments: [{ name: 'ID', help: `Its ${resource.id ?? 'id'}.`, required: true }],
  flags: flagsFor(resource, ...(resource.forced ? [FORCE_FLAG] : [])),
  run: async (given, environment) => {
    const client = await clientFor(given, environment, resource.apps);
    const query: Query = resource.forced && given.has('force') ? { force: 'true' } : {};
    const body = await client.call('DELETE', pathOf(resource, given.required('ID')), { query });
    return answer(given, environment, body, () => environment.terminal.say(`${given.required('ID')} removed`));
  },
});

const verbCommand = (resource: Resource, { word, summary, method, path }: Verb): Command => ({
  words: [resource.word, word],
  summary,
  arguments: [
    { name: 'ID', help: `Its ${resource.id ?? 'id'}.`, required: true },
    ...(method === 'POST' ? [pairs('Fields of the request, where it has some.')] : []),
  ],
  flags: flagsFor(resource),
  run: async (given, environment) => {
    const client = await clientFor(given, environment, resource.apps);
    const target = pathOf(resource, given.required('ID'), path);
    const template = `${resource.path}/{${resource.id ?? 'id'}}${path}`;
    const list = given.list('FIELD=VALUE');
    const body = list.length === 0 ? undefined : await bodyOf(given, environment, client, method, template);
    const done = await client.call(method, target, { body });
    const code = answer(given, environment, done, () => {
      if (Array.isArray(done)) sayTable(environment.terminal, done, []);
      else sayObject(environment.terminal, done ?? { done: `${word} ${given.required('ID')}` });
    });
    // A test that has failed is an answer like any other; a script wants to know.
    const { success } = (done ?? {}) as { readonly success?: boolean };
    return success === false ? exitCode('failed') : code;
  },
});

const makers = {
  list: listCommand,
  show: showCommand,
  create: createCommand,
  update: updateCommand,
  delete: deleteCommand,
} as const;

export const REST_COMMANDS: readonly Command[] = [
  ...RESOURCES.flatMap((resource) =>
    resource.verbs.map((verb) => (typeof verb === 'string' ? makers[verb](resource) : verbCommand(resource, verb))),
  ),
  SEND_COMMAND,
  WATCH_COMMAND,
  ...SESSION_COMMANDS,
  ...OTHER_COMMANDS,
];
