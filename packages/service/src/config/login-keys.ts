import { oneOf, text } from './kinds.js';
import { key } from './row.js';

/** Characters of a password of the REST interface, at least. */
export const PASSWORD_LENGTH = 8;

/** Who may log in beside `admin.username`: rows of `CONFIG_KEYS`. */
export const LOGIN_KEYS = {
  'admin.users': key('both', {
    type: text('a file'),
    default: '',
    reload: true,
    description:
      'File with further users of the REST interface, a line each: name, role (`viewer`, `operator`, `admin`) and hash (`npm run hash-password`), with blanks between; read again when it changes. Empty = none.',
  }),
  'admin.api-key': key('both', {
    type: text('a long random text'),
    default: '',
    secret: true,
    reload: true,
    alias: 'PESIT_API_KEY',
    description:
      'Value of the header `X-API-Key` that stands for a login. Take 32 random characters or more. Empty = no key is accepted.',
  }),
  'admin.api-key-role': key('both', {
    type: oneOf(['viewer', 'operator', 'admin']),
    default: 'admin',
    reload: true,
    description: 'Role of requests with `admin.api-key`.',
  }),
} as const;
