import { flag, integer, list, text } from './kinds.js';
import { key } from './row.js';

/** Telling others of the outcome of a transfer (docs/hooks.md): rows of `CONFIG_KEYS`. */
export const HOOK_KEYS = {
  'hooks.webhooks': key('both', {
    type: flag(),
    default: false,
    reload: true,
    description:
      'Whether hooks may send requests to URLs (`/api/v1/hooks`, docs/hooks.md). While it is off their deliveries wait.',
  }),
  'hooks.directory': key('both', {
    type: text('a directory'),
    default: '',
    reload: true,
    description:
      'Directory of the executables that hooks may run, the same on all pods; nobody but root and the user of the service may be able to write in it. Empty = hooks run nothing.',
  }),
  'hooks.allowed-hosts': key('both', {
    type: list(),
    default: [],
    reload: true,
    description:
      'Hosts that hooks may send requests to: names, or `*.` and a domain for all names in it. Empty = any. Link-local addresses are never asked.',
  }),
  'hooks.allow-http': key('both', {
    type: flag(),
    default: false,
    reload: true,
    description:
      'Whether the URL of a hook may be `http`: the record of the transfer can be read on the way, though its signature still shows any change.',
  }),
  'hooks.webhook-timeout': key('both', {
    type: integer(1, 300),
    default: 15,
    unit: 'seconds',
    reload: true,
    description: 'How long one request of a hook may take, from the look-up of the name to the status of the answer.',
  }),
  'hooks.executable-timeout': key('both', {
    type: integer(1, 86_400),
    default: 60,
    unit: 'seconds',
    reload: true,
    description:
      'How long an executable may run. Then it gets SIGTERM, and 5 seconds later SIGKILL, with all processes of its group.',
  }),
  'hooks.concurrency': key('both', {
    type: integer(1, 256),
    default: 8,
    reload: true,
    description: 'Deliveries of hooks that a pod has under way at a time.',
  }),
  'hooks.concurrency-per-hook': key('both', {
    type: integer(1, 256),
    default: 2,
    reload: true,
    description: 'The same of one hook, so that one whose receiver hangs does not keep the others waiting.',
  }),
  'hooks.give-up-after': key('both', {
    type: integer(1, 8760),
    default: 24,
    unit: 'hours',
    reload: true,
    description:
      'How long a delivery that fails is tried again: after 10 seconds, then three times as long each time, up to an hour.',
  }),
  'hooks.retention-days': key('both', {
    type: integer(1, 3650),
    default: 7,
    unit: 'days',
    reload: true,
    description: 'How long deliveries that are over are kept, with the last output of an executable.',
  }),
  'hooks.max-deliveries': key('both', {
    type: integer(1, 10_000_000),
    default: 500_000,
    reload: true,
    description:
      'So many deliveries may wait, and so many that are over are kept. Beyond it the leader gives up the oldest that wait, and removes the oldest that are over, each minute.',
  }),
} as const;
