import type { PeriodicTask } from '@pesit-node/service';

import type { ListenersHere } from './listeners/listeners-here.js';
import type { ListenerService } from './listeners/service.js';
import type { TransferJournal } from './transfers/journal.js';
import type { WaitingFiles } from './transfers/waiting-files.js';

export interface ServingTasksOptions {
  readonly listenersHere: Pick<ListenersHere, 'retryFailed'>;
  readonly journal: Pick<TransferJournal, 'countRefusals'>;
  readonly waitingFiles: Pick<WaitingFiles, 'forgetUnlimited' | 'look'>;
  /** Between two looks at listeners that failed, milliseconds; each has its own back-off. Default 1000. */
  readonly listenerRetryMs?: number | undefined;
}

/** Between two counts of what partners ask for in vain. */
const REFUSALS_MS = 1000;
/** Between two looks at what is wanted of the listeners: what another pod was told is true here in less than 10 seconds. */
const LISTENER_LOOK_MS = 5000;
/** Between two looks at whether files were fetched that count towards a quota. */
const WAITING_LOOK_MS = 60_000;

/** Tasks that a node repeats while it serves partners: from its begin, with the database there, until it is to stop. */
export const servingTasks = ({
  listenersHere,
  journal,
  waitingFiles,
  listenerRetryMs = 1000,
}: ServingTasksOptions): readonly PeriodicTask[] => [
  {
    name: 'start of failed listeners',
    intervalMs: listenerRetryMs,
    first: 'after an interval',
    run: () => listenersHere.retryFailed(),
  },
  {
    name: 'count of refused transfers',
    intervalMs: REFUSALS_MS,
    first: 'after an interval',
    // Not waited for: it waits for the database, and the service may be stopped meanwhile.
    run: () => void journal.countRefusals(),
  },
  {
    name: 'look at files that wait to be fetched',
    intervalMs: WAITING_LOOK_MS,
    jitter: 0.2,
    first: 'after an interval',
    run: async () => {
      await waitingFiles.forgetUnlimited();
      await waitingFiles.look();
    },
  },
];

/** Brings the listeners here to what is wanted, whoever said it, and says what they do; also whenever another pod tells. */
export const listenerLook = (
  listeners: Pick<ListenerService, 'look'>,
  intervalMs = LISTENER_LOOK_MS,
): PeriodicTask => ({
  ...{ name: 'look at the listeners', intervalMs, jitter: 0.1 },
  first: 'after an interval',
  run: () => listeners.look(),
});
