/** The commands that talk PeSIT, without any service of this product. */
import type { Command, Flag } from '../frame/command.js';
import { DEFAULTS, FILE_FLAGS, SESSION_FLAGS } from './flags.js';

const ENTITY_SIZE: Flag = {
  ...{
    name: 'entity-size',
    type: 'number',
    from: 256,
    to: 65_535,
    value: 'BYTES',
    fallback: String(DEFAULTS.entitySize),
  },
  help: 'Largest message of the session to propose (PI 25).',
};

export const DIRECT_COMMANDS: readonly Command[] = [
  {
    words: ['send'],
    summary: 'Sends a file to a PeSIT server',
    about:
      'What is cut off is continued from the last sync point that the partner has stored, by this command or, later, by the same one once more. A file is never sent twice because a confirmation was lost.',
    arguments: [{ name: 'FILE', help: 'The file to send.', required: true, type: 'path' }],
    flags: [
      {
        name: 'remote',
        type: 'text',
        value: 'NAME',
        fallback: 'the name of the file',
        help: 'Virtual file there (PI 12), or with --virtual-file the name of the file in it (PI 37).',
      },
      { name: 'virtual-file', type: 'text', value: 'ID', help: 'Virtual file there (PI 12).' },
      { name: 'label', type: 'text', help: 'Label of the file (PI 37), in place of its name.' },
      {
        name: 'fixed',
        type: 'switch',
        help: 'Records of one length (--record-length): the file must be a multiple of it.',
      },
      { name: 'variable', type: 'switch', help: 'Records of variable length, up to --record-length.' },
      {
        name: 'record-length',
        type: 'number',
        from: 1,
        to: 65_535,
        value: 'BYTES',
        fallback: '4096',
        help: 'Longest record (PI 32).',
      },
      ...FILE_FLAGS,
      ENTITY_SIZE,
      ...SESSION_FLAGS,
    ],
    run: async (given, environment) => (await import('./send.js')).send(given, environment),
  },
  {
    words: ['receive'],
    summary: 'Receives a file from a PeSIT server',
    about:
      'The file gets its name when it is whole and on disk; until then it is staged beside it, and the same command continues it.',
    arguments: [{ name: 'NAME', help: 'Virtual file there (PI 12).', required: true }],
    flags: [
      {
        name: 'file',
        type: 'path',
        fallback: 'the name that the partner gives, in this directory',
        help: 'Where to put it: a file or a directory.',
      },
      { name: 'overwrite', type: 'switch', help: 'Replace a file of that name.' },
      ...FILE_FLAGS,
      ENTITY_SIZE,
      ...SESSION_FLAGS,
    ],
    run: async (given, environment) => (await import('./receive.js')).receive(given, environment),
  },
  {
    words: ['message'],
    summary: 'Sends a message to a PeSIT server',
    about: 'One attempt: whether the partner has a message whose answer was lost, nobody can tell.',
    arguments: [{ name: 'TEXT', help: 'The message, Latin-1.', required: true }],
    flags: [
      { name: 'virtual-file', type: 'text', value: 'ID', required: true, help: 'Virtual file there (PI 12).' },
      { name: 'expect-reply', type: 'switch', help: 'Ask for a reply.' },
      { name: 'original-sender', type: 'text', help: 'Who it comes from (PI 61).' },
      { name: 'final-receiver', type: 'text', help: 'Who it is for in the end (PI 62).' },
      ...SESSION_FLAGS,
    ],
    run: async (given, environment) => (await import('./message.js')).message(given, environment),
  },
  {
    words: ['test'],
    summary: 'Opens a session with a PeSIT server and releases it',
    arguments: [],
    flags: SESSION_FLAGS,
    run: async (given, environment) => (await import('./test.js')).test(given, environment),
  },
];
