import { flag, text } from './kinds.js';
import { key } from './row.js';

/** The pages for a browser: rows of `CONFIG_KEYS`. */
export const CONSOLE_KEYS = {
  'console.enabled': key('both', {
    type: flag(),
    default: true,
    description: 'Whether the console is served at `/`. It shows what the login of the person in front of it may see.',
  }),
  'console.peer-url': key('both', {
    type: text('the address of the console of the other app'),
    default: '',
    reload: true,
    description:
      'Where a browser finds the console of the other app, as `https://client.example.com/`: the console links to it. Empty = no link.',
  }),
} as const;
