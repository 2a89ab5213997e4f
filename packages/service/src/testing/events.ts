import { subscribe, unsubscribe } from 'node:diagnostics_channel';

import type { EventKind, Published } from '../events/event-stream.js';

/** An event as a watcher of the process sees it. */
export interface Heard {
  readonly name: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each kind carries something else
  readonly event: any;
}

/** Hears the events of these kinds, of every node of the process, in their order, as a watcher from outside does. */
export const watchEvents = (kinds: readonly Pick<EventKind<never>, 'name'>[]) => {
  const heard: Heard[] = [];
  const ends = kinds.map(({ name }) => {
    const hear = (message: unknown): void => {
      heard.push({ name, event: (message as Published<unknown>).event });
    };
    subscribe(name, hear);
    return () => unsubscribe(name, hear);
  });
  return {
    heard,
    names: () => heard.map(({ name }) => name),
    stop: (): void => {
      for (const end of ends) end();
    },
  };
};
