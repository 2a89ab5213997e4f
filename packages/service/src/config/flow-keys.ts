import { integer } from './kinds.js';
import { key } from './row.js';

/** How much of a transfer is on its way at a time, and how long it may stand still: rows of `CONFIG_KEYS`. */
export const FLOW_KEYS = {
  'transfer.write-timeout': key('both', {
    type: integer(1000, 86_400_000),
    default: 120_000,
    unit: 'milliseconds',
    reload: true,
    description:
      'How long a peer is waited for that takes nothing of what was sent to it. One that takes a little, however slowly, is not given up.',
  }),
} as const;
