import { flag, integer } from './kinds.js';
import { key } from './row.js';

/** Two bursts, what waits for a disk, and the buffers of a socket: so a transfer stays within 2 MB (design, Data path). */
const MOST = 524_288;

const size = (description: string) =>
  key('both', { type: integer(4096, MOST), default: MOST, unit: 'bytes', reload: true, description });

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
  'transfer.content-download': key('server', {
    type: flag(),
    default: false,
    reload: true,
    description:
      'Whether `GET /api/v1/transfers/{id}/content` gives the files of COMPLETED transfers to users of the role admin. Each time is in the audit log before the first byte is sent. Without it the request is a 403.',
  }),
  'transfer.chunk-size': size(
    'Most data of a file that are sent at a time, as one burst; one article goes in any case.',
  ),
  'transfer.read-buffer-size': size('Most bytes of a file to send that are read at a time.'),
  'transfer.write-buffer-size': size(
    'Most bytes that are written to a received file at a time; twice as many may wait for the disk before the partner has to.',
  ),
  'transfer.socket-buffer-size': size('Most data that a socket is given, or read from, at a time.'),
} as const;
