import { CONFIGURATION_CHANGED } from '@pesit-node/service';
import type { ChangeAudit, EventStream, NewAuditEntry, PeriodicTask } from '@pesit-node/service';

import type { LocalAuthority, RunInTransaction } from './authority.js';
import type { IssuedRow } from './store.js';

export interface RenewalOptions {
  readonly authority: Pick<LocalAuthority, 'due' | 'rotate'>;
  /** Before its end a keystore is renewed. */
  readonly days: () => number;
  /** A transaction that a leader who is late is refused. */
  readonly asLeader: RunInTransaction;
  /** Told of each renewal. */
  readonly events: Pick<EventStream, 'publish'>;
  readonly audit: Pick<ChangeAudit, 'entry'>;
}

const HOUR_MS = 3_600_000;

const factsOf = (name: string, row: IssuedRow) => ({
  ...{ keystore: name, serial: row.serial, notAfter: row.not_after.toISOString() },
});

const entryOf = (name: string, row: IssuedRow): NewAuditEntry => ({
  ...{ action: 'renewed', objectType: 'keystore', object: name, details: factsOf(name, row) },
});

/** The leader renews the keystores that the local CA manages. */
export const renewManaged = ({ authority, days, asLeader, events, audit }: RenewalOptions): PeriodicTask => ({
  ...{ name: 'renewal of managed keystores', intervalMs: HOUR_MS, jitter: 0.1, runsOn: 'leader' },
  run: async (signal) => {
    let failed: unknown;
    for (const name of await authority.due(days())) {
      if (signal.aborted) return;
      try {
        const { row } = await authority.rotate(name, (issued) => audit.entry(entryOf(name, issued)), asLeader);
        const facts = factsOf(name, row);
        events.publish(CONFIGURATION_CHANGED, { what: 'keystore', action: 'renewed', facts, recorded: true });
      } catch (error) {
        // The others are renewed; the runner says why this one was not.
        failed = error;
      }
    }
    if (failed !== undefined) throw failed as Error;
  },
});
