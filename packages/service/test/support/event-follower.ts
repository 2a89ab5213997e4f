import { TestEventReader } from '../../src/testing/index.js';
import type { Json, KilledService } from './killed-service.js';

/**
 * A reader of the events of transfers as docs/rest.md tells it to be: it lists after a `reset`, and comes again with its last id, to
 * another pod when its own is gone.
 */
export class EventFollower {
  /** Reasons of each `reset`. */
  readonly resets: string[] = [];
  /** What each transfer was told, or listed, to be last, by its id. */
  readonly #statuses = new Map<string, string>();
  #lastId: string | undefined;
  #reader: TestEventReader | undefined;
  #following: Promise<void> = Promise.resolve();
  #wake: () => void = () => undefined;

  /** Begins at this pod, or comes again. */
  async connect(pod: KilledService): Promise<void> {
    const { port, authorization } = pod;
    this.#reader = await TestEventReader.open(port, '/api/v1/transfers/events', { authorization }, this.#lastId);
    this.#following = this.#follow(this.#reader, pod);
  }

  /** Resolves when as many transfers have the status. */
  async saw(status: string, count: number): Promise<void> {
    const isSo = (): boolean => [...this.#statuses.values()].filter((one) => one === status).length >= count;
    while (!isSo()) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  /** Resolves when its answer is over, and what came in it is taken. */
  over(): Promise<void> {
    return this.#following;
  }

  async close(): Promise<void> {
    this.#reader?.close();
    await this.over();
  }

  /** Statuses by id, in the order of the ids. */
  get statuses(): readonly (readonly [id: string, status: string])[] {
    return [...this.#statuses].toSorted(([one], [other]) => one.localeCompare(other));
  }

  async #follow(reader: TestEventReader, pod: KilledService): Promise<void> {
    for (;;) {
      const one = await reader.next().catch(() => undefined);
      if (one === undefined) return;
      if (one.event === 'reset') {
        this.resets.push((one.data as { reason: string }).reason);
        // A pod that dies meanwhile has told nothing: the next one says `reset`, too.
        const listed: Json = await pod.call('GET', '/api/v1/transfers?size=500').catch(() => ({ content: [] }));
        for (const record of listed['content'] as readonly Json[]) this.#hear(record);
      }
      if (one.event === 'transfer') this.#hear(one.data as Json);
      this.#lastId = one.id;
      this.#wake();
    }
  }

  #hear({ id, status }: Json): void {
    this.#statuses.set(String(id), String(status));
  }
}

/** The same of the list of a pod. */
export const statusesAt = async (pod: KilledService): Promise<readonly (readonly [id: string, status: string])[]> => {
  const { content } = await pod.call('GET', '/api/v1/transfers?size=500');
  const records = content as readonly Json[];
  return records
    .map(({ id, status }) => [String(id), String(status)] as const)
    .toSorted(([one], [other]) => one.localeCompare(other));
};
