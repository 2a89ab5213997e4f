import { integer } from './kinds.js';
import { key } from './row.js';

const MOST_DAYS = 36_500;

const ofStatus = (status: string) =>
  key('both', {
    type: integer(0, MOST_DAYS),
    default: 0,
    unit: 'days',
    reload: true,
    description: `The same for transfers that are ${status}; 0 = as \`history.retention-days\` says.`,
  });

/** How long records of the history are kept: rows of `CONFIG_KEYS`. */
export const HISTORY_KEYS = {
  'history.retention-days': key('both', {
    type: integer(1, MOST_DAYS),
    default: 90,
    unit: 'days',
    reload: true,
    description:
      'How long the record of a transfer is kept after its end. The leader removes older ones each hour, with what belongs to them. One that can be restarted stays until it cannot; the server app keeps every record at least for `transfer.staging-retention`. With its record an Idempotency-Key is forgotten.',
  }),
  'history.retention-days-completed': ofStatus('COMPLETED'),
  'history.retention-days-failed': ofStatus('FAILED'),
  'history.retention-days-cancelled': ofStatus('CANCELLED'),
} as const;
