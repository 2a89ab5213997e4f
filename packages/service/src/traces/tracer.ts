import type { SessionRecording, TraceMark } from './recording.js';

type WireDirection = 'received' | 'sent';

export interface WireLine {
  readonly time: number;
  readonly direction: WireDirection;
  readonly text: string;
}

/** Makes lines of bytes; `SessionTrace` of protocol is one. `end` gives those that may have become longer. */
export interface WireDecoder {
  take(direction: WireDirection, bytes: Buffer, time: number): readonly WireLine[];
  end(): readonly WireLine[];
}

export interface TracerOptions {
  readonly recording: SessionRecording;
  readonly decoder: WireDecoder;
  /** How the first line of a transfer begins: `transfer` concerns the lines from there on. Default: none. */
  readonly requests?: readonly string[];
  /** How lines begin that no longer belong to a transfer. Default: none. */
  readonly ends?: readonly string[];
}

const MARKS: Readonly<Record<WireDirection, TraceMark>> = { received: '<--', sent: '-->' };

/** Writes the FPDUs of a session and the events beside them into its recording. */
export class SessionTracer {
  readonly #recording: SessionRecording;
  readonly #decoder: WireDecoder;
  readonly #requests: readonly string[];
  readonly #ends: readonly string[];

  constructor({ recording, decoder, requests = [], ends = [] }: TracerOptions) {
    this.#recording = recording;
    this.#decoder = decoder;
    this.#requests = requests;
    this.#ends = [...requests, ...ends];
  }

  /** Nothing more is recorded: the trace was switched off, or its time is over. */
  get isOver(): boolean {
    return this.#recording.isOver;
  }

  /** The next bytes; free again when it returns. */
  take(direction: WireDirection, bytes: Buffer, time = Date.now()): void {
    for (const line of this.#decoder.take(direction, bytes, time)) this.#add(line);
  }

  /** Records an event of this side. */
  note(text: string): void {
    this.#addRest();
    this.#recording.note(text);
  }

  /** The session has this transfer now; undefined: none. */
  transfer(id: string | undefined): void {
    if (id === undefined) this.#addRest();
    this.#recording.transfer(id, this.#requests);
  }

  end(outcome: string): void {
    this.#addRest();
    this.#recording.end(outcome);
  }

  #addRest(): void {
    for (const line of this.#decoder.end()) this.#add(line);
  }

  #add({ time, direction, text }: WireLine): void {
    if (this.#ends.some((name) => text.startsWith(name))) this.#recording.transfer(undefined);
    this.#recording.add(time, MARKS[direction], text);
  }
}
