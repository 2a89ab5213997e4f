import { objects } from './kinds.js';
import { key } from './row.js';

/** Passwords stand in their items. */
const LIST = { type: objects(), default: [], secret: true, reload: true, notFromEnvironment: true } as const;

/** Lists of what the file declares: see docs/operations.md. */
export const DECLARED_KEYS = {
  partners: key('server', {
    ...LIST,
    description:
      'Partners, with the fields of `POST /api/v1/config/partners`: each is created, or changed to what its item says (docs/operations.md). What the list does not name is left alone.',
  }),
  files: key('server', {
    ...LIST,
    description: 'Virtual files, with the fields of `POST /api/v1/config/files`, the same way.',
  }),
  servers: key('both', {
    ...LIST,
    description:
      'Servers, with the fields of `POST /api/v1/servers`, the same way. An item with `host`, `name` or `clientId` is a remote server of the client app, any other one a listener of the server app: one file may serve both.',
  }),
} as const;
