/**
 * A whole session as text, while it runs: the bytes of both directions in, lines out. Runs of data become one line, so that
 * a trace grows with what both sides say to each other and not with the file.
 */
import { PesitError } from './errors.js';
import { FPDU_HEADER_LENGTH, FPDUS, isDataFpdu } from './fpdus.js';
import { FpduReader } from './framing.js';
import type { Dialect, RawFpdu } from './framing.js';
import { writeHeader } from './headers.js';
import { describeFpdu } from './trace.js';

/** As seen by the node that traces. */
export type WireDirection = 'received' | 'sent';

export interface TraceLine {
  /** The time that was given with the bytes; of a run of data that of its first FPDU. */
  readonly time: number;
  readonly direction: WireDirection;
  /** Secrets are masked. */
  readonly text: string;
}

interface Run {
  readonly time: number;
  readonly direction: WireDirection;
  fpdus: number;
  bytes: number;
}

export class SessionTrace {
  readonly #dialect: Dialect;
  /** The direction of the requester first: its CONNECT shows whether there is a CRC. */
  readonly #readers = new Map<WireDirection, FpduReader | undefined>();
  #run: Run | undefined;

  /** The session is traced from its CONNECT on. */
  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /**
   * @param bytes the next of this direction; free to be used again when it returns
   * @param time of the clock that the lines shall show
   * @returns a line for each FPDU that is complete with them, but for data that may continue
   */
  take(direction: WireDirection, bytes: Buffer, time: number): TraceLine[] {
    const reader = this.#readerOf(direction);
    if (reader === undefined) return [];
    const lines: TraceLine[] = [];
    reader.push(bytes);
    while (this.#next(reader, direction, time, lines));
    reader.own();
    return lines;
  }

  /** @returns whether there may be more */
  #next(reader: FpduReader, direction: WireDirection, time: number, lines: TraceLine[]): boolean {
    try {
      const raw = reader.next();
      if (raw !== undefined) this.#add(raw, direction, time, lines);
      return raw !== undefined;
    } catch (error) {
      if (!(error instanceof PesitError)) throw error;
      lines.push(...this.end());
      // An FPDU with a wrong CRC is passed over; otherwise the bytes behind it cannot be told apart.
      const isPassedOver = error.condition === 'damaged FPDU';
      if (!isPassedOver) this.#readers.set(direction, undefined);
      const what = isPassedOver ? 'damaged' : 'unreadable from here on';
      lines.push({ time, direction, text: `${what}: ${error.message}` });
      return isPassedOver;
    }
  }

  /** @returns the line of data that were still running */
  end(): TraceLine[] {
    const run = this.#run;
    if (run === undefined) return [];
    this.#run = undefined;
    const { time, direction, fpdus, bytes } = run;
    return [{ time, direction, text: `data: ${fpdus} ${fpdus === 1 ? 'FPDU' : 'FPDUs'}, ${bytes} bytes` }];
  }

  #readerOf(direction: WireDirection): FpduReader | undefined {
    if (!this.#readers.has(direction)) {
      const [requester] = this.#readers.values();
      this.#readers.set(direction, new FpduReader(this.#dialect, requester?.crc));
    }
    return this.#readers.get(direction);
  }

  #add(raw: RawFpdu, direction: WireDirection, time: number, lines: TraceLine[]): void {
    if (isDataFpdu(raw.name)) {
      if (this.#run?.direction !== direction) lines.push(...this.end());
      this.#run ??= { time, direction, fpdus: 0, bytes: 0 };
      this.#run.fpdus += 1;
      this.#run.bytes += raw.length - FPDU_HEADER_LENGTH;
      return;
    }
    lines.push(...this.end(), { time, direction, text: describeFpdu(bytesOf(raw)) });
  }
}

const bytesOf = ({ name, destination, source, length, body }: RawFpdu): Buffer => {
  const header = Buffer.alloc(FPDU_HEADER_LENGTH);
  writeHeader(header, 0, length, FPDUS[name].phase, FPDUS[name].type, destination, source);
  return Buffer.concat([header, ...body]);
};
