import { EventLog, EventReaders, eventText, notFound } from '@pesit-node/service';
import type { EventReader, EventStream, LoggedEvent, PeriodicHandle, PeriodicWork } from '@pesit-node/service';

import type { TransferStatus } from '../vocabulary.js';
import { LiveProgress } from './live-progress.js';
import { RunningHere } from './running-here.js';
import type { ResetReason, TransferProgressEvent } from './schema.js';

type Id = string | number;
type Request = Parameters<EventReaders['open']>[0];
type Response = Parameters<EventReaders['open']>[1];

/** One transfer as a look at the database finds it. */
export interface LiveRow {
  readonly id: Id;
  readonly status: TransferStatus;
  /** Another text whenever its record has changed in more than its figures. */
  readonly version: string;
  readonly bytes: number;
  readonly syncPoint: number | null;
  /** Bytes that it will have; null: not known. */
  readonly expected: number | null;
  /** The partner announces `expected` (PI 42): an estimate. */
  readonly isAnnounced: boolean;
  readonly node: string | null;
}

export interface LiveLook {
  /** By the clock of the database. */
  readonly at: Date;
  readonly rows: readonly LiveRow[];
}

/** The history of an app, as far as its live events need it. @throws each, when the database fails */
export interface LiveSource<R> {
  /**
   * Transfers that run, those that were begun or ended since, and those that are named.
   * @param since undefined: those that run, and those that are named
   * @param most how many at most that run, and of each kind that were begun or ended since: the newest
   */
  look(
    since: Date | undefined,
    named: readonly Id[],
    most: { readonly running: number; readonly recent: number },
  ): Promise<LiveLook>;
  /** Records as pages of the history have them; one that is gone is left out. */
  records(ids: readonly Id[]): Promise<readonly (R & { readonly id: Id; readonly status: TransferStatus })[]>;
}

export interface LiveTransfersOptions<R> {
  readonly events: EventStream;
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly source: LiveSource<R>;
  /** Hints between the pods. */
  readonly hints: { readonly tell: () => void; readonly subscribe: (listener: () => void) => () => void };
  /** `http.max-connections`: readers of events take a quarter of them at most. */
  readonly mostConnections: () => number;
  readonly heartbeatMs?: number | undefined;
  /** Between two looks at the figures of transfers that run here, milliseconds. Default 500. */
  readonly tickMs?: number | undefined;
  /** Transfers whose records one look tells of. Default 500. */
  readonly mostChanges?: number | undefined;
}

const TICK_MS = 500;
/** Between two looks at the database without a hint. */
const LOOK_MS = 1000;
/** How long the events of a reader who was cut off are kept when nobody else reads. */
const LINGER_MS = 30_000;
/** A record may be committed so long after the time that it bears. */
const COMMIT_MS = 5000;
/** How long a transfer that is over is remembered: longer than looks overlap. */
const REMEMBER_MS = 3 * COMMIT_MS;
/** Transfers that wait and are looked at by name; beyond it the oldest is forgotten, and seen again when it runs. */
const MOST_WAITING = 1000;
const MOST_CHANGES = 500;
/** Looks whose changes one look finds again. */
const LOOKS_BACK = 1 + COMMIT_MS / LOOK_MS;
/** Between two hints to the other pods. */
const TELL_MS = 500;

const isOver = (status: TransferStatus): boolean => status !== 'PENDING' && status !== 'IN_PROGRESS';

interface Seen {
  readonly status: TransferStatus;
  readonly version: string;
  /** `performance.now()` of the look that found it so. */
  readonly at: number;
}

interface Watcher {
  readonly reader: EventReader;
  /** The one transfer that it wants to hear of; undefined: all. */
  readonly id: Id | undefined;
}

/** Last event of one transfer: a reader who comes again with it need not. */
export const OVER = 'over';

/**
 * Tells who reads server-sent events what happens to the transfers of all pods.
 *
 * The database is the truth: while somebody reads, each pod compares what it says with what was seen last, once a second and sooner
 * when an event here or a hint of another pod says so; a difference is an event `transfer` with the whole record. Between two
 * looks the transfers that run here are asked for their figures, for the event `progress`. The data path calls nobody, and
 * without readers nothing is looked at. A reader whose last event is no longer known, because another pod sent it, or too much
 * came since, hears `reset` and lists again. Missed by design is an attempt on another pod that begins and fails between two
 * looks, when another one follows by itself; an outcome never is.
 */
export class LiveTransfers<R> {
  readonly #options: LiveTransfersOptions<R>;
  readonly #readers: EventReaders;
  readonly #here: RunningHere;
  readonly #progress: LiveProgress;
  readonly #watchers = new Set<Watcher>();
  readonly #endHints: () => void;
  #log = new EventLog();
  readonly #seen = new Map<Id, Seen>();
  /** Said to have changed since the last look. */
  readonly #touched = new Set<Id>();
  /** Undefined before the first look. */
  #since: Date | undefined;
  #lookedAt = -Infinity;
  #isDue = false;
  #emptySince = 0;
  #ticks: PeriodicHandle | undefined;
  /** One look, or new reader, at a time. */
  #turn: Promise<unknown> = Promise.resolve();
  #toldAt = -Infinity;
  #telling: NodeJS.Timeout | undefined;

  constructor(options: LiveTransfersOptions<R>) {
    this.#options = options;
    const { events, periodic, mostConnections, heartbeatMs, hints } = options;
    const most = (): number => Math.max(1, Math.floor(mostConnections() / 4));
    this.#readers = new EventReaders({ periodic, most, heartbeatMs });
    this.#here = new RunningHere(events, (id) => this.#changed(id));
    this.#progress = new LiveProgress((id) => this.#here.figuresOf(id));
    this.#endHints = hints.subscribe(() => {
      this.#isDue = true;
    });
  }

  /** Readers that are here. */
  get readers(): number {
    return this.#readers.size;
  }

  /** Something of a transfer was stored by this process that no event of the stream tells of. */
  readonly changed = (id: Id): void => this.#changed(id);

  /**
   * Answers with the events of all transfers.
   * @param lastId of the last event that the reader has; undefined: it is new
   * @throws {ApiError} 503 when there are too many readers; what the database throws
   */
  async watchAll(req: Request, res: Response, lastId: string | undefined): Promise<void> {
    this.#readers.admit();
    await this.#begin();
    await this.#inTurn(() => {
      const missed = lastId === undefined ? undefined : this.#log.since(lastId);
      const reader = this.#open(req, res, undefined);
      if (missed === undefined) this.#reset(reader, lastId === undefined ? 'new' : 'unknown id');
      else for (const { text } of missed) reader.send(text);
      const running = this.#progress.all();
      if (running.length > 0) reader.send(eventText({ event: 'progress', data: running }));
    });
  }

  /**
   * Answers with the record of a transfer, and its events until it is over; without content when the reader has them all.
   * @throws {ApiError} 404 when there is none; as `watchAll`
   */
  async watch(id: Id, req: Request, res: Response, lastId: string | undefined): Promise<void> {
    this.#readers.admit();
    await this.#begin();
    await this.#inTurn(async () => {
      const [record] = await this.#options.source.records([id]);
      if (record === undefined) throw notFound('Transfer', id, '/api/v1/transfers');
      if (lastId === OVER && isOver(record.status)) {
        // A reader that comes again by itself stops at this status (WHATWG HTML §9.2.3).
        res.status(204).end();
        return;
      }
      const reader = this.#open(req, res, id);
      const isLast = isOver(record.status);
      reader.send(eventText({ id: isLast ? OVER : this.#log.lastId, event: 'transfer', data: record }));
      const progress = this.#progress.of(id);
      if (isLast) reader.end();
      else if (progress !== undefined) reader.send(eventText({ event: 'progress', data: [progress] }));
    });
  }

  /** Ends the answers of all readers; whoever comes is answered 503 from now on. */
  async close(): Promise<void> {
    clearTimeout(this.#telling);
    this.#endHints();
    await this.#readers.close();
    await this.#ticks?.remove();
    await this.#turn;
  }

  #open(req: Request, res: Response, id: Id | undefined): EventReader {
    const reader = this.#readers.open(req, res, () => {
      this.#watchers.delete(watcher);
      this.#emptySince = performance.now();
    });
    const watcher: Watcher = { reader, id };
    this.#watchers.add(watcher);
    return reader;
  }

  #reset(reader: EventReader, reason: ResetReason): void {
    reader.send(eventText({ id: this.#log.lastId, event: 'reset', data: { reason } }));
  }

  #inTurn<T>(work: () => T | Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** The first reader: from here on the database is looked at. */
  async #begin(): Promise<void> {
    await this.#inTurn(async () => {
      if (this.#ticks !== undefined) return;
      await this.#look();
      this.#emptySince = performance.now();
      this.#ticks = this.#options.periodic.add({
        name: 'live events of transfers',
        intervalMs: this.#options.tickMs ?? TICK_MS,
        first: 'after an interval',
        run: () => this.#inTurn(() => this.#tick()),
      });
    });
  }

  async #tick(): Promise<void> {
    const now = performance.now();
    if (this.#watchers.size === 0 && now - this.#emptySince > LINGER_MS) {
      this.#forget();
      return;
    }
    if (this.#isDue || now - this.#lookedAt >= LOOK_MS) await this.#look();
    else this.#progress.sample();
    const moved = this.#progress.moved();
    if (moved.length > 0) this.#tellProgress(moved);
  }

  /** Nobody reads: what is seen by a later reader begins anew. */
  #forget(): void {
    void this.#ticks?.remove();
    this.#ticks = undefined;
    this.#since = undefined;
    this.#seen.clear();
    this.#touched.clear();
    this.#progress.clear();
    this.#log = new EventLog();
  }

  async #look(): Promise<void> {
    const { source, mostChanges = MOST_CHANGES } = this.#options;
    const isFirst = this.#since === undefined;
    this.#isDue = false;
    this.#lookedAt = performance.now();
    const touched = [...this.#touched];
    const watched = [...this.#watchers].flatMap(({ id }) => id ?? []);
    const named = new Set([...touched, ...watched, ...this.#unfinished()]);
    const most = { running: mostChanges, recent: mostChanges * LOOKS_BACK };
    const { at, rows } = await source.look(this.#since, [...named], most);
    for (const id of touched) this.#touched.delete(id);
    this.#since = new Date(at.getTime() - COMMIT_MS);
    const changed = rows.filter(({ id, version }) => this.#seen.get(id)?.version !== version);
    const now = performance.now();
    for (const { id, status, version } of rows) {
      // The newest last, so that the oldest are forgotten first.
      if (this.#seen.get(id)?.version !== version) this.#seen.delete(id);
      this.#seen.set(id, { status, version, at: now });
    }
    const found = new Set(rows.map(({ id }) => id));
    for (const [id, seen] of this.#seen) {
      const isGone = named.has(id) && !found.has(id);
      if (isGone || (isOver(seen.status) && now - seen.at > REMEMBER_MS)) this.#seen.delete(id);
    }
    this.#progress.look(rows.filter(({ status }) => status === 'IN_PROGRESS'));
    if (!isFirst) await this.#tell(changed, mostChanges);
  }

  /** Transfers that were seen and are not over. */
  *#unfinished(): Generator<Id> {
    const all = [...this.#seen].filter(([, { status }]) => !isOver(status));
    const waiting = all.filter(([, { status }]) => status === 'PENDING');
    for (const [id] of waiting.slice(0, -MOST_WAITING)) this.#seen.delete(id);
    for (const [id] of all) if (this.#seen.has(id)) yield id;
  }

  async #tell(changed: readonly LiveRow[], most: number): Promise<void> {
    if (changed.length === 0) return;
    if (changed.length >= most) {
      this.#log.forget();
      for (const { reader, id } of this.#watchers) if (id === undefined) this.#reset(reader, 'too much');
      const wanted = new Set([...this.#watchers].map(({ id }) => id));
      await this.#tellRecords(changed.filter(({ id }) => wanted.has(id)));
    } else {
      await this.#tellRecords(changed);
    }
  }

  async #tellRecords(changed: readonly LiveRow[]): Promise<void> {
    if (changed.length === 0) return;
    const records = await this.#options.source.records(changed.map(({ id }) => id));
    for (const record of records) this.#send(this.#log.add(String(record.id), 'transfer', record), record);
  }

  #send({ text }: LoggedEvent, record: { readonly id: Id; readonly status: TransferStatus }): void {
    for (const { reader, id } of [...this.#watchers]) {
      if (id === undefined) {
        reader.send(text);
      } else if (id === record.id) {
        if (isOver(record.status)) {
          reader.send(eventText({ id: OVER, event: 'transfer', data: record }));
          reader.end();
        } else {
          reader.send(text);
        }
      }
    }
  }

  #tellProgress(moved: readonly TransferProgressEvent[]): void {
    const all = eventText({ event: 'progress', data: moved });
    for (const { reader, id } of this.#watchers) {
      if (id === undefined) reader.send(all);
      else {
        const own = moved.filter((one) => one.id === id);
        if (own.length > 0) reader.send(eventText({ event: 'progress', data: own }));
      }
    }
  }

  #changed(id: Id): void {
    if (this.#ticks !== undefined) {
      this.#touched.add(id);
      this.#isDue = true;
    }
    this.#hint();
  }

  /** Tells the other pods, at most twice a second. */
  #hint(): void {
    if (this.#telling !== undefined) return;
    const wait = this.#toldAt + TELL_MS - performance.now();
    if (wait <= 0) this.#tellPods();
    else this.#telling = setTimeout(() => this.#tellPods(), wait).unref();
  }

  #tellPods(): void {
    this.#telling = undefined;
    this.#toldAt = performance.now();
    this.#options.hints.tell();
  }
}
