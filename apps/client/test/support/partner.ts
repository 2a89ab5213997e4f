/** A PeSIT server in memory: keeps what is written to it, serves what it is given, and does what a test tells it. */
import { PesitListener } from '@pesit-node/net';
import type { ListenerOptions, ServerHandler, Serve } from '@pesit-node/net';
import { PesitError } from '@pesit-node/protocol';
import type {
  ArticleBatch,
  ArticleSink,
  ArticleSource,
  Burst,
  DiagnosticCode,
  MessageAnswer,
  Parameters,
  SyncPoint,
} from '@pesit-node/protocol';

const START: SyncPoint = { number: 0, dataBytes: 0, articles: 0 };

export interface Written {
  /** Of the CREATE. */
  readonly create: Parameters;
  readonly articles: readonly Buffer[];
  readonly content: Buffer;
}

export interface PartnerOptions {
  /** Default: plain TCP. */
  readonly transport?: Serve;
  /** PI 12 → content, for SELECT. */
  readonly files?: Readonly<Record<string, Buffer>>;
  /** Of the files served. Default 1000, variable. */
  readonly recordLength?: number;
  readonly recordFormat?: number;
  /** PI 37 of ACK(SELECT). */
  readonly label?: string;
  readonly syncPoints?: { readonly intervalKb: number; readonly window: number };
  readonly maxConnections?: number;
  readonly tcpipHeader?: ListenerOptions['tcpipHeader'];
  /** Called before the partner's own handling; what it rejects with is the answer. */
  readonly before?: Partial<
    Record<
      'connect' | 'create' | 'select' | 'write' | 'read' | 'fill' | 'checkpoint' | 'endTransfer' | 'deselected',
      Step
    >
  >;
  readonly timers?: ListenerOptions['timers'];
  readonly port?: number;
  /** Keeps what it was sent of a file that was cut off, and places again what it served (pesit-e.md §5). Default false. */
  readonly restarts?: boolean;
  /** PI 21 that it allows. Default none. */
  readonly compression?: 0 | 1 | 2 | 3;
  /** PI 23. Default false. */
  readonly resynchronisation?: boolean;
  /** PI 16 of the files served. Default 2, binary. */
  readonly dataCode?: number;
  /** PI 51 of ACK(SELECT). */
  readonly creationDate?: string;
  /** PI 99 of ACK(SELECT). */
  readonly freeMessage?: Buffer;
  /** Answers a message; what it rejects with is the answer. */
  readonly message?: (parameters: Parameters) => Promise<MessageAnswer | undefined>;
  readonly preconnect?: ListenerOptions['preconnect'];
}

type Step = (parameters: Parameters | undefined, partner: Partner) => Promise<void> | void;

export interface Partner {
  readonly port: number;
  /** Parameters of every CONNECT, in order. */
  readonly connects: Parameters[];
  readonly creates: Parameters[];
  readonly selects: Parameters[];
  /** PI 18 of every READ. */
  readonly reads: number[];
  /** Files that ended with a positive ACK(TRANS.END). */
  readonly written: Written[];
  /** Diagnostics and end codes of files that did not. */
  readonly failures: { readonly diagnostic: string; readonly endCode: number | undefined }[];
  /** Sessions that were released or lost. */
  readonly ended: (PesitError | undefined)[];
  /** Most files that were open at the same time. */
  readonly mostAtOnce: number;
  readonly activeConnections: number;
  close(graceMs?: number): Promise<void>;
}

export const refusal = (diagnostic: DiagnosticCode, peerText: string): PesitError =>
  new PesitError(peerText, { fault: 'local', diagnostic, peerText });

/** What is known of a transfer between its attempts, by PI 13. */
interface Context {
  readonly articles: Buffer[];
  points: SyncPoint[];
  done: boolean;
  /** Of a file that is served: point → offset. */
  readonly offsets: Map<number, SyncPoint>;
  content: Buffer;
}

const newContext = (content: Buffer = Buffer.alloc(0)): Context => ({
  ...{ articles: [], points: [], done: false, content },
  offsets: new Map([[0, START]]),
});

class MemorySink implements ArticleSink {
  onFailure: ((error: Error) => void) | undefined;
  readonly articles: Buffer[];
  readonly #context: Context;
  readonly #before: () => Promise<void> | void;
  #open: Buffer[] = [];

  constructor(context: Context, before: () => Promise<void> | void) {
    this.#context = context;
    this.#before = before;
    this.articles = context.articles;
  }

  write({ parts, ends }: ArticleBatch): boolean {
    let next = 0;
    for (const end of ends) {
      for (; next < end; next++) this.#open.push(Buffer.from(parts[next]!));
      this.articles.push(Buffer.concat(this.#open.splice(0)));
    }
    for (; next < parts.length; next++) this.#open.push(Buffer.from(parts[next]!));
    return true;
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  async checkpoint(point: SyncPoint): Promise<void> {
    await this.#before();
    this.#context.points.push(point);
  }
}

class MemorySource implements ArticleSource {
  readonly #content: Buffer;
  readonly #recordLength: number;
  readonly #offsets: Context['offsets'];
  readonly #before: () => Promise<void> | void;
  #offset: number;

  constructor(
    { content, offsets }: Context,
    recordLength: number,
    from: SyncPoint,
    before: () => Promise<void> | void,
  ) {
    this.#before = before;
    this.#content = content;
    this.#recordLength = recordLength;
    this.#offsets = offsets;
    this.#offset = from.dataBytes;
  }

  async fill(burst: Burst): Promise<boolean> {
    // As a file does: no data before the turn in which they were asked for is over.
    await new Promise(setImmediate);
    await this.#before();
    const start = this.#offset;
    let end = start;
    while (end < this.#content.length) {
      const length = Math.min(this.#recordLength, this.#content.length - end);
      const before = burst.lastPoint;
      const reserved = burst.reserve(length);
      if (burst.lastPoint > before) {
        const articles = Math.ceil(end / this.#recordLength);
        this.#offsets.set(burst.lastPoint, { number: burst.lastPoint, dataBytes: end, articles });
      }
      if (!reserved) break;
      end += length;
    }
    let from = start;
    for (const slot of burst.slots) from += this.#content.copy(slot, 0, from);
    this.#offset = end;
    return end < this.#content.length;
  }
}

export const startPartner = async (options: PartnerOptions = {}): Promise<Partner> => {
  const { files = {}, recordLength = 1000, recordFormat = 128, label, before = {} } = options;
  const { compression = 0, dataCode = 2, message } = options;
  const state = {
    connects: [] as Parameters[],
    creates: [] as Parameters[],
    selects: [] as Parameters[],
    reads: [] as number[],
    written: [] as Written[],
    failures: [] as { diagnostic: string; endCode: number | undefined }[],
    ended: [] as (PesitError | undefined)[],
    mostAtOnce: 0,
    open: 0,
  };
  let nextTransferId = 1000;
  const contexts = new Map<number, Context>();
  /** The context of a restart, or a new one. */
  const contextOf = ({ transferId = 0, restarted }: Parameters, content?: Buffer): Context => {
    const known = options.restarts === true && restarted === 1 ? contexts.get(transferId) : undefined;
    // It does not check whether its file is the one of the first attempt.
    if (known !== undefined && content !== undefined) known.content = content;
    return known ?? newContext(content);
  };
  const opened = (): void => {
    state.open++;
    state.mostAtOnce = Math.max(state.mostAtOnce, state.open);
  };

  const accept = (): ServerHandler => {
    let create: Parameters | undefined;
    let context = newContext();
    let sink: MemorySink | undefined;
    return {
      connect: async ({ parameters }) => {
        state.connects.push(parameters);
        await before.connect?.(parameters, partner);
        const { resynchronisation = false } = options;
        return { syncPoints: options.syncPoints ?? { intervalKb: 32, window: 4 }, resynchronisation };
      },
      create: async (parameters) => {
        state.creates.push(parameters);
        await before.create?.(parameters, partner);
        opened();
        create = parameters;
        context = contextOf(parameters);
        contexts.set(parameters.transferId ?? 0, context);
        return { maxEntitySize: 16_000, compression };
      },
      select: async (parameters) => {
        state.selects.push(parameters);
        await before.select?.(parameters, partner);
        const fileName = parameters.fileIdentifier?.fileName ?? '';
        const found = files[fileName];
        if (found === undefined) throw refusal('2-205', `there is no ${fileName}`);
        opened();
        context = contextOf(parameters, found);
        const transferId = parameters.transferId === 0 ? nextTransferId++ : (parameters.transferId ?? 0);
        contexts.set(transferId, context);
        return {
          maxEntitySize: 16_000,
          fileName,
          transferId,
          dataCode,
          compression,
          freeMessage: options.freeMessage,
          creationDate: options.creationDate,
          recordFormat,
          recordLength,
          ...(label === undefined ? {} : { fileLabel: label }),
          maxReservationKb: Math.ceil(found.length / 1024),
        };
      },
      write: async () => {
        await before.write?.(undefined, partner);
        const from = context.points.at(-1) ?? START;
        context.articles.length = from.articles;
        sink = new MemorySink(context, () => before.checkpoint?.(undefined, partner));
        return { from, sink };
      },
      read: async (point) => {
        await before.read?.(undefined, partner);
        state.reads.push(point);
        const from = context.offsets.get(point);
        if (from === undefined) throw refusal('2-214', `there is no point ${point}`);
        return { from, source: new MemorySource(context, recordLength, from, () => before.fill?.(undefined, partner)) };
      },
      endTransfer: async () => {
        await before.endTransfer?.(undefined, partner);
        state.open--;
        if (create && sink && !context.done) {
          state.written.push({ create, articles: sink.articles, content: Buffer.concat(sink.articles) });
          context.done = true;
        }
      },
      ...(message === undefined ? {} : { message }),
      transferFailed: ({ diagnostic }, endCode) => {
        state.open--;
        state.failures.push({ diagnostic, endCode });
        return Promise.resolve();
      },
      deselected: async () => {
        create = sink = undefined;
        await before.deselected?.(undefined, partner);
      },
      learned: () => undefined,
      notice: () => undefined,
      failed: (error) => {
        throw error;
      },
      ended: (error) => {
        state.ended.push(error);
      },
    };
  };

  const listener = await PesitListener.listen({
    ...(options.transport === undefined ? {} : { transport: options.transport }),
    host: '127.0.0.1',
    port: options.port ?? 0,
    maxConnections: options.maxConnections ?? 100,
    tcpipHeader: options.tcpipHeader ?? 'auto',
    timers: { close: 200, ...options.timers },
    accept,
    ...(options.preconnect === undefined ? {} : { preconnect: options.preconnect }),
    rejected: () => undefined,
  });
  const partner: Partner = {
    port: listener.port,
    connects: state.connects,
    creates: state.creates,
    selects: state.selects,
    reads: state.reads,
    written: state.written,
    failures: state.failures,
    ended: state.ended,
    get mostAtOnce() {
      return state.mostAtOnce;
    },
    get activeConnections() {
      return listener.activeConnections;
    },
    close: (graceMs = 0) => listener.close(refusal('3-316', 'the test ends'), graceMs),
  };
  return partner;
};
