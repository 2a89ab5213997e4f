/** `pesit transfers watch`: the server-sent events of an app, as a table that is drawn over and over, or as JSON lines. */
import { setTimeout as delay } from 'node:timers/promises';

import type { Command, Environment, Given } from '../frame/command.js';
import { CliError, exitCode } from '../frame/exit-codes.js';
import { table } from '../frame/figures.js';
import { clientFor, flagsFor, pathOf } from './asking.js';
import { readEvents } from './event-lines.js';
import type { ReadEvent } from './event-lines.js';
import type { RestClient } from './rest-client.js';
import { shown } from './show.js';

type Row = Readonly<Record<string, unknown>>;

const PATH = '/api/v1/transfers';
const RUNNING = 'IN_PROGRESS';
/** Before it is read again, milliseconds. */
const AGAIN_MS = 2000;
const COLUMNS = ['id', 'direction', 'filename', 'status', 'bytesTransferred', 'rate', 'estimatedEnd', 'node'] as const;
/** Transfers that are over and still shown. */
const MOST_ENDED = 5;

const rowsOf = (data: unknown): readonly Row[] => (Array.isArray(data) ? (data as Row[]) : []);

/** The transfers that run, and the last that ended. */
export class WatchedTransfers {
  readonly #rows = new Map<unknown, Row>();

  /** These run now: others are over, and nobody has said how. */
  list(rows: readonly Row[]): void {
    this.#rows.clear();
    for (const row of rows) this.#rows.set(row['id'], row);
  }

  take({ event, data }: ReadEvent): void {
    if (event === 'transfer') this.#put(data as Row);
    if (event === 'progress') for (const row of rowsOf(data)) if (this.#rows.has(row['id'])) this.#put(row);
    const ended = [...this.#rows.values()].filter(({ status }) => status !== RUNNING && status !== 'PENDING');
    for (const { id } of ended.slice(0, -MOST_ENDED)) this.#rows.delete(id);
  }

  lines(): readonly string[] {
    const rows = [...this.#rows.values()];
    if (rows.length === 0) return ['nothing runs'];
    return table(
      [...COLUMNS],
      rows.map((row) => COLUMNS.map((name) => shown(row[name]))),
    );
  }

  #put(row: Row): void {
    const whole = { ...this.#rows.get(row['id']), ...row };
    const isRunning = whole['status'] === RUNNING;
    this.#rows.set(row['id'], isRunning ? whole : { ...whole, rate: null, estimatedEnd: null });
  }
}

const mayComeBack = (error: unknown): boolean =>
  error instanceof CliError && ['notReached', 'unavailable', 'timeout'].includes(error.reason);

interface Watching {
  readonly client: RestClient;
  readonly path: string;
  readonly take: (event: ReadEvent) => Promise<void>;
}

/** Reads until the one transfer is over, or for ever: what is cut off is read again from where it was. */
const watch = async ({ client, path, take }: Watching, isOne: boolean, { signal, terminal }: Environment) => {
  let lastId: string | undefined;
  for (;;) {
    try {
      for await (const event of readEvents(await client.stream(path, lastId))) {
        lastId = event.id === '' ? lastId : event.id;
        await take(event);
        if (isOne && event.id === 'over') return;
      }
    } catch (error) {
      if (signal.aborted || !mayComeBack(error)) throw error;
      terminal.note(`${(error as Error).message}; reading again`);
    }
    await delay(AGAIN_MS, undefined, { signal });
  }
};

const run = async (given: Given, environment: Environment): Promise<number> => {
  const { terminal } = environment;
  const client = await clientFor(given, environment, ['client', 'server']);
  const id = given.text('ID');
  const path = `${pathOf({ path: PATH }, id)}/events`;
  const isTable = terminal.isWatched && !given.has('json');
  const watched = new WatchedTransfers();
  const take = async (event: ReadEvent): Promise<void> => {
    if (!isTable) {
      terminal.json({ event: event.event, data: event.data });
      return;
    }
    if (event.event === 'reset') {
      const { content } = (await client.get(PATH, { status: RUNNING, size: '100' })) as { readonly content?: unknown };
      watched.list(rowsOf(content));
    }
    watched.take(event);
    terminal.drawAll(watched.lines());
  };
  await watch({ client, path, take }, id !== undefined, environment);
  return exitCode('done');
};

export const WATCH_COMMAND: Command = {
  words: ['transfers', 'watch'],
  summary: 'Shows transfers while they run, on all pods',
  about:
    'On a terminal a table that is drawn again; otherwise, and with --json, a JSON object an event. Ends with the transfer that is named, or with Ctrl-C; what is cut off is read again.',
  arguments: [{ name: 'ID', help: 'One transfer alone.', required: false }],
  flags: flagsFor({ apps: ['client', 'server'] }),
  run,
};
