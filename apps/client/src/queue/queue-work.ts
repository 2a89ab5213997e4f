import type { PeriodicHandle, PeriodicWork } from '@pesit-node/service';

export interface QueueWorkOptions {
  readonly periodic: Pick<PeriodicWork, 'add'>;
  /** Between two looks at the table that nobody asked for, milliseconds. Default 5000. */
  readonly pollMs?: number;
  /** Between two renewals of the leases, with the figures of what runs, milliseconds. Default 2000. */
  readonly progressMs?: number;
}

/** Work that the queue repeats. */
export interface QueueWork {
  readonly look: () => Promise<void>;
  /** Queues again what processes have left behind that are gone. */
  readonly takeOver: () => Promise<void>;
  readonly renewLeases: () => Promise<void>;
  /** A look could not ask the database. */
  readonly failed: () => void;
}

/** The periodic work of a queue that runs. Each of both resolves when what was under way has ended. */
export interface RunningQueueWork {
  /** No more is taken. */
  readonly endLooks: () => Promise<void>;
  /** Nothing runs whose lease would have to be renewed. */
  readonly endRenewals: () => Promise<void>;
}

const EVERY = { jitter: 0.1, first: 'after an interval' } as const;

const endOf = (tasks: readonly PeriodicHandle[]) => async (): Promise<void> => {
  await Promise.all(tasks.map((task) => task.remove()));
};

export const beginQueueWork = (
  { periodic, pollMs = 5000, progressMs = 2000 }: QueueWorkOptions,
  { look, takeOver, renewLeases, failed }: QueueWork,
): RunningQueueWork => {
  const asking = (work: () => Promise<void>) => async (): Promise<void> => {
    try {
      await work();
    } catch (error) {
      failed();
      throw error;
    }
  };
  const looks = [
    periodic.add({ ...EVERY, name: 'look at the queue', intervalMs: pollMs, run: asking(look) }),
    periodic.add({
      ...EVERY,
      // On every pod, not on the leader alone: it must not stop while nobody leads because Redis is away.
      name: 'queueing of transfers whose process is gone',
      intervalMs: pollMs,
      run: asking(takeOver),
    }),
  ];
  const renewals = periodic.add({
    ...EVERY,
    name: 'leases and figures of running transfers',
    intervalMs: progressMs,
    run: renewLeases,
  });
  return { endLooks: endOf(looks), endRenewals: () => renewals.remove() };
};
