import { TRACE_LIMITS } from './limits.js';

/** `<--` received here, `-->` sent from here, `---` what happened here. */
export type TraceMark = '<--' | '-->' | '---';

/** The partner or remote server whose session is recorded: a key of the app's table. */
export type TraceOwner = string | number;

export interface RecordingStart {
  /** Id of the session, as the log has it. */
  readonly id: string;
  readonly owner: TraceOwner;
  /** Milliseconds since 1970, as all times here. */
  readonly startedAt: number;
  readonly until: number;
  /** For the list and the head of the text: listener, address … Never a secret. */
  readonly about: Readonly<Record<string, string>>;
}

/** Lines that are a row of the database together. */
interface Part {
  readonly number: number;
  /** Lines of the session before it. */
  readonly firstLine: number;
  readonly isHead: boolean;
  lines: number;
  bytes: number;
  /** Kept while it grows, or is not in the database. */
  text: string | undefined;
  /** The database has it as it is. */
  isWritten: boolean;
}

export interface PartChange {
  readonly number: number;
  readonly firstLine: number;
  readonly lines: number;
  readonly text: string;
}

/** The part of a recording that the database does not have yet. */
export interface RecordingChange {
  readonly start: RecordingStart;
  /** The database may have no row of it yet. */
  readonly isNew: boolean;
  /** New, or longer than they were. */
  readonly parts: readonly PartChange[];
  /** Numbers of parts in the database that gave way to newer ones. */
  readonly dropped: readonly number[];
  /** Lines so far, those left out included; bytes without them. */
  readonly lines: number;
  readonly bytes: number;
  readonly lastAt: number;
  readonly endedAt: number | undefined;
  readonly outcome: string | undefined;
  readonly transfers: readonly string[];
}

interface Line {
  readonly time: number;
  readonly mark: TraceMark;
  readonly text: string;
  transfer: string | undefined;
}

/**
 * The lines of one session until they are in the database: its first ones and its newest ones, in bounded memory. Adding a
 * line does nothing but keep it.
 */
export class SessionRecording {
  readonly start: RecordingStart;
  readonly #changed: (recording: SessionRecording) => void;
  /** Not yet in a part: their transfer may still become known. */
  #open: Line[] = [];
  #openBytes = 0;
  readonly #parts: Part[] = [];
  #nextPart = 0;
  #sealedLines = 0;
  #dropped: number[] = [];
  #isNew = true;
  #until: number;
  #lastAt: number;
  #endedAt: number | undefined;
  #outcome: string | undefined;
  #transfer: string | undefined;
  readonly #transfers = new Set<string>();
  #isOver = false;
  #stopped: (() => void) | undefined;

  constructor(start: RecordingStart, changed: (recording: SessionRecording) => void) {
    this.start = start;
    this.#until = start.until;
    this.#lastAt = start.startedAt;
    this.#changed = changed;
  }

  /** Nothing more is kept: the session has ended, or its trace has. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Everything is in the database. */
  get isWritten(): boolean {
    return !this.#isNew && this.#open.length === 0 && this.#parts.every(({ isWritten }) => isWritten);
  }

  /** Called once when the trace ends before its session: nobody needs to look at the session from then on. */
  onStopped(stopped: () => void): void {
    this.#stopped = stopped;
  }

  /** @param text what a peer sent may be in it: control characters become dots, and a long line is cut */
  add(time: number, mark: TraceMark, text: string): void {
    if (this.#isOver) return;
    if (time >= this.#until) this.stop('the time of the trace is over');
    else this.#keep({ time, mark, text: asLine(text), transfer: this.#transfer });
  }

  /** Records an event of this side, beside the FPDUs on the line. */
  note(text: string): void {
    this.add(Date.now(), '---', text);
  }

  /**
   * From here on, and for the lines of the request that began it, the session has this transfer; undefined: none.
   * @param first how the first line of a transfer begins, e.g. `CREATE`
   */
  transfer(id: string | undefined, first: readonly string[] = []): void {
    this.#transfer = id;
    if (id === undefined) return;
    if (this.#transfers.size < TRACE_LIMITS.transfersOfSession) this.#transfers.add(id);
    const begin = this.#open.findLastIndex(({ text }) => first.some((word) => text.startsWith(word)));
    if (begin >= 0) for (const line of this.#open.slice(begin)) line.transfer ??= id;
  }

  /** Extends the time of the trace. */
  extend(until: number): void {
    this.#until = until;
  }

  /** The trace ends before the session. */
  stop(reason: string): void {
    if (this.#isOver) return;
    this.#keep({ time: Date.now(), mark: '---', text: `the trace ends here: ${reason}`, transfer: undefined });
    this.#isOver = true;
    this.#stopped?.();
  }

  /** The session has ended. */
  end(outcome: string): void {
    if (this.#isOver) return;
    this.#transfer = undefined;
    const time = Date.now();
    this.#keep({ time, mark: '---', text: asLine(outcome), transfer: undefined });
    this.#endedAt = time;
    this.#outcome = asLine(outcome);
    this.#isOver = true;
  }

  /** The part to write now; stays so until `written`. */
  change(): RecordingChange {
    this.#seal();
    return {
      start: this.start,
      isNew: this.#isNew,
      parts: this.#parts.flatMap(({ number, firstLine, lines, text, isWritten }) =>
        isWritten || text === undefined ? [] : [{ number, firstLine, lines, text }],
      ),
      dropped: this.#dropped,
      lines: this.#sealedLines,
      bytes: this.#bytesOf(true) + this.#bytesOf(false),
      lastAt: this.#lastAt,
      endedAt: this.#endedAt,
      outcome: this.#outcome,
      transfers: [...this.#transfers],
    };
  }

  /** `change` is in the database. */
  written(change: RecordingChange): void {
    this.#isNew = false;
    const written = new Map(change.parts.map(({ number, lines }) => [number, lines]));
    for (const part of this.#parts) {
      if (written.get(part.number) === part.lines) part.isWritten = true;
      if (part.isWritten && isFull(part)) part.text = undefined;
    }
    this.#dropped = this.#dropped.filter((number) => !change.dropped.includes(number));
  }

  #keep(line: Line): void {
    this.#open.push(line);
    this.#openBytes += line.text.length;
    this.#lastAt = line.time;
    if (this.#openBytes >= TRACE_LIMITS.part) this.#seal();
    this.#changed(this);
  }

  #seal(): void {
    if (this.#open.length === 0) return;
    const { id } = this.start;
    const text = this.#open
      .map(({ time, mark, text: said, transfer = '-' }) => `${asTime(time)} ${id} ${transfer} ${mark} ${said}\n`)
      .join('');
    const part = this.#growing();
    part.text = `${part.text ?? ''}${text}`;
    part.bytes += Buffer.byteLength(text);
    part.lines += this.#open.length;
    part.isWritten = false;
    this.#sealedLines += this.#open.length;
    this.#open = [];
    this.#openBytes = 0;
    this.#trim();
  }

  /** The part that takes the next lines. */
  #growing(): Part {
    const last = this.#parts.at(-1);
    if (last !== undefined && !isFull(last)) return last;
    const part: Part = {
      number: this.#nextPart++,
      firstLine: this.#sealedLines,
      isHead: this.#bytesOf(true) < TRACE_LIMITS.head,
      ...{ lines: 0, bytes: 0, text: undefined, isWritten: false },
    };
    this.#parts.push(part);
    return part;
  }

  #bytesOf(isHead: boolean): number {
    return this.#parts.reduce((sum, part) => (part.isHead === isHead ? sum + part.bytes : sum), 0);
  }

  /** The oldest parts behind the head give way to the newest. */
  #trim(): void {
    while (this.#bytesOf(false) > TRACE_LIMITS.tail) {
      const at = this.#parts.findIndex((part) => !part.isHead);
      if (at === this.#parts.length - 1) return;
      const [part] = this.#parts.splice(at, 1) as [Part];
      // One that is just being written is removed by the next change.
      this.#dropped.push(part.number);
    }
  }
}

const isFull = ({ bytes }: Part): boolean => bytes >= TRACE_LIMITS.part;

export const asTime = (time: number): string => new Date(time).toISOString();

const asLine = (text: string): string => {
  const safe = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '.');
  return safe.length > TRACE_LIMITS.line ? `${safe.slice(0, TRACE_LIMITS.line)}… of ${safe.length} characters` : safe;
};
