import { integer, oneOf } from './kinds.js';
import { key } from './row.js';

/** The audit log: rows of `CONFIG_KEYS`. */
export const AUDIT_KEYS = {
  'audit.max-entries': key('both', {
    type: integer(0, 100_000_000),
    default: 50_000,
    reload: true,
    alias: 'PESIT_AUDIT_MAX_ENTRIES',
    description:
      'Entries of the audit log that are kept: the leader prunes the oldest each minute. 0 = none is pruned, also where another role does it (docs/security.md).',
  }),
  'audit.transfers': key('both', {
    type: oneOf(['all', 'failures', 'none']),
    default: 'failures',
    reload: true,
    description:
      'Outcomes of transfers that the audit log has. `failures` = those that failed, were cancelled or refused: the history has all of them, and a busy night would push everything else out of the log. `all` = COMPLETED ones too: raise `audit.max-entries` with it.',
  }),
} as const;
