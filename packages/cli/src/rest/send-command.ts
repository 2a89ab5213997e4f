/** `pesit transfers send`: a request for a transfer that the client app queues. */
import type { Command } from '../frame/command.js';
import { answer, clientFor, flagsFor } from './asking.js';
import { bodyOf, FROM_FLAG, pairs } from './request-body.js';
import { sayObject } from './show.js';

const CLIENT = { apps: ['client'] } as const;
const PATH = '/api/v1/transfers/send';

export const SEND_COMMAND: Command = {
  words: ['transfers', 'send'],
  summary: 'Has the client app send a file of its send tree',
  about:
    'The service queues it, and the answer is its record. A value gets the type that the service expects; FIELD:=JSON gives it as it is.',
  arguments: [pairs('Fields of the request: server=bank filename=day.txt virtualFile=PAYMENTS.')],
  flags: flagsFor(
    CLIENT,
    { name: 'priority', type: 'number', from: 0, to: 2, help: '0 urgent, 1 normal, 2 low.', fallback: '1' },
    { name: 'not-before', type: 'text', value: 'TIME', help: 'When it may begin: 2026-11-21T09:30:15Z.' },
    { name: 'expires-at', type: 'text', value: 'TIME', help: 'From then on it does not begin.' },
    {
      name: 'ordered',
      type: 'switch',
      help: 'It waits for the ordered ones of its server and virtual file before it.',
    },
    { name: 'wait', type: 'number', from: 0, to: 300, fallback: '0', help: 'Seconds to wait for its end.' },
    FROM_FLAG,
  ),
  run: async (given, environment) => {
    const client = await clientFor(given, environment, CLIENT.apps);
    const policies = {
      priority: given.number('priority'),
      notBefore: given.text('not-before'),
      expiresAt: given.text('expires-at'),
      ordered: given.has('ordered') ? true : undefined,
    };
    const body = { ...(await bodyOf(given, environment, client, 'POST', PATH)), ...policies };
    const wait = given.number('wait');
    const record = await client.call('POST', PATH, {
      ...{ body, query: wait === undefined ? {} : { wait: String(wait) } },
    });
    return answer(given, environment, record, () => sayObject(environment.terminal, record));
  },
};
