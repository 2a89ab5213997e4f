import { CONFIGURATION_CHANGED } from '@pesit-node/service';
import type { EventStream, PeriodicTask } from '@pesit-node/service';

import type { LocalAuthority, RunInTransaction } from './authority.js';

export interface RenewalOptions {
  readonly authority: Pick<LocalAuthority, 'due' | 'rotate'>;
  /** Before its end a keystore is renewed. */
  readonly days: () => number;
  /** A transaction that a leader who is late is refused. */
  readonly asLeader: RunInTransaction;
  /** Told of each renewal. */
  readonly events: Pick<EventStream, 'publish'>;
}

const HOUR_MS = 3_600_000;

/** The leader renews the keystores that the local CA manages. */
export const renewManaged = ({ authority, days, asLeader, events }: RenewalOptions): PeriodicTask => ({
  ...{ name: 'renewal of managed keystores', intervalMs: HOUR_MS, jitter: 0.1, runsOn: 'leader' },
  run: async (signal) => {
    let failed: unknown;
    for (const name of await authority.due(days())) {
      if (signal.aborted) return;
      try {
        const { row } = await authority.rotate(name, asLeader);
        const facts = { keystore: name, serial: row.serial, notAfter: row.not_after.toISOString() };
        events.publish(CONFIGURATION_CHANGED, { what: 'keystore', action: 'renewed', facts });
      } catch (error) {
        // The others are renewed; the runner says why this one was not.
        failed = error;
      }
    }
    if (failed !== undefined) throw failed as Error;
  },
});
