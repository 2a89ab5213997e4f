/** A small application behind a listener: takes every file into memory and serves what it is given. */
import type {
  ArticleSource,
  ConnectAnswer,
  CreateAnswer,
  FpduName,
  MessageAnswer,
  Parameters,
  PesitError,
  SelectAnswer,
  SyncPoint,
} from '@pesit-node/protocol';
import type { ConnectIndication, ServerConnection, ServerHandler } from '../../src/index.js';
import { MemorySink } from './memory.js';
import type { Pace } from '../../src/pace.js';

export const START: SyncPoint = { number: 0, dataBytes: 0, articles: 0 };

/** Called first in the method of its name: to wait, to refuse, to fail. */
export interface Hooks {
  connect?: (indication: ConnectIndication) => void | Promise<void>;
  create?: () => void | Promise<void>;
  select?: () => void | Promise<void>;
  write?: () => void | Promise<void>;
  read?: () => void | Promise<void>;
  endTransfer?: () => void | Promise<void>;
  transferFailed?: () => void | Promise<void>;
  message?: () => void | Promise<void>;
  deselected?: () => void | Promise<void>;
  learned?: () => void;
  notice?: () => void;
  failed?: () => void;
  ended?: () => void;
}

export class TestHandler implements ServerHandler {
  readonly connection: ServerConnection;
  /** One line a call, in order. */
  readonly log: string[] = [];
  readonly sinks: MemorySink[] = [];
  readonly failures: PesitError[] = [];
  readonly bugs: unknown[] = [];
  readonly hooks: Hooks = {};
  connectAnswer: ConnectAnswer = { syncPoints: { intervalKb: 64, window: 4 } };
  indication: ConnectIndication | undefined;
  /** PI 21 that is allowed. */
  compression: CreateAnswer['compression'];
  /** Present when the test takes messages. */
  message?: NonNullable<ServerHandler['message']>;
  readonly messages: Parameters[] = [];
  source: ((parameters: Parameters) => ArticleSource) | undefined;
  /** Asked for each file. */
  pace: (() => Pace | undefined) | undefined;
  newSink = (): MemorySink => new MemorySink();
  /** Resolves with the reason when `ended` was called. */
  readonly over: Promise<PesitError | undefined>;
  #resolveOver: (error: PesitError | undefined) => void = () => undefined;
  #selected: Parameters = {};
  #accepted = 0;
  #delivered = 0;

  constructor(connection: ServerConnection) {
    this.connection = connection;
    this.over = new Promise((resolve) => (this.#resolveOver = resolve));
  }

  async connect(indication: ConnectIndication): Promise<ConnectAnswer> {
    this.indication = indication;
    this.log.push(`CONNECT ${indication.parameters.requester ?? ''} ${indication.dialect}`);
    await this.hooks.connect?.(indication);
    return this.connectAnswer;
  }
  async create(parameters: Parameters): Promise<CreateAnswer> {
    this.log.push(`CREATE ${parameters.fileIdentifier?.fileName ?? ''}`);
    await this.hooks.create?.();
    this.#accepted += 1;
    return { maxEntitySize: 32_768, compression: this.compression };
  }
  async select(parameters: Parameters): Promise<SelectAnswer> {
    this.log.push(`SELECT ${parameters.fileIdentifier?.fileName ?? ''}`);
    await this.hooks.select?.();
    this.#selected = parameters;
    this.#accepted += 1;
    return {
      maxEntitySize: 32_768,
      compression: this.compression,
      fileName: parameters.fileIdentifier?.fileName ?? '',
      transferId: 77,
      recordFormat: 128,
      recordLength: 65_535,
      maxReservationKb: 1,
    };
  }
  async write(): Promise<{ from: SyncPoint; sink: MemorySink; pace: Pace | undefined }> {
    await this.hooks.write?.();
    const sink = this.newSink();
    this.sinks.push(sink);
    return { from: START, sink, pace: this.pace?.() };
  }
  async read(): Promise<{ from: SyncPoint; source: ArticleSource; pace: Pace | undefined }> {
    await this.hooks.read?.();
    if (this.source === undefined) throw new Error('the test gave no source');
    return { from: START, source: this.source(this.#selected), pace: this.pace?.() };
  }
  async endTransfer(): Promise<void> {
    this.log.push('END');
    await this.hooks.endTransfer?.();
    this.#delivered += 1;
  }
  async transferFailed(error: PesitError, endCode: number | undefined): Promise<void> {
    this.log.push(`FAILED ${error.diagnostic}${endCode === undefined ? '' : ` end ${endCode}`}`);
    this.failures.push(error);
    await this.hooks.transferFailed?.();
  }
  async deselected(): Promise<void> {
    this.log.push('DESELECTED');
    await this.hooks.deselected?.();
  }
  refused(name: FpduName, _: Parameters, { diagnostic }: PesitError): Promise<void> {
    this.log.push(`REFUSED ${name} ${diagnostic}`);
    return Promise.resolve();
  }
  learned(): void {
    this.log.push('LEARNED');
    this.hooks.learned?.();
  }
  notice(text: string): void {
    this.log.push(`NOTICE ${text}`);
    this.hooks.notice?.();
  }
  failed(error: unknown): void {
    this.log.push('BUG');
    this.bugs.push(error);
    this.hooks.failed?.();
  }
  ended(error: PesitError | undefined): void {
    this.log.push(`ENDED ${error?.diagnostic ?? 'released'}`);
    this.#resolveOver(error);
    this.hooks.ended?.();
  }

  /** Takes messages from now on, and answers them with `reply`. */
  takeMessages(reply: (parameters: Parameters) => MessageAnswer | undefined = () => undefined): void {
    this.message = async (parameters) => {
      this.log.push('MESSAGE');
      this.messages.push(parameters);
      await this.hooks.message?.();
      return reply(parameters);
    };
  }

  /** What was called, notices left out. */
  get calls(): string[] {
    return this.log.filter((line) => !line.startsWith('NOTICE'));
  }

  /** What the contract forbids and happened all the same; to be asked when the connection is over. */
  get imbalance(): string[] {
    const problems: string[] = [];
    const ends = this.log.filter((line) => line.startsWith('ENDED')).length;
    if (ends !== 1) problems.push(`ended was called ${ends} times`);
    if (!this.log.at(-1)?.startsWith('ENDED')) problems.push(`${this.log.at(-1) ?? 'nothing'} came last`);
    if (this.#accepted !== this.#delivered + this.failures.length)
      problems.push(`${this.#accepted} files, ${this.#delivered} delivered, ${this.failures.length} failed`);
    if (this.bugs.length > 0) problems.push(`bugs: ${this.bugs.map(String).join(', ')}`);
    return problems;
  }
}
