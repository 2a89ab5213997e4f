/** A small application behind a listener: takes every file into memory and serves what it is given. */
import type {
  ArticleSource,
  ConnectAnswer,
  CreateAnswer,
  Parameters,
  PesitError,
  SelectAnswer,
  SyncPoint,
} from '@pesit-node/protocol';
import type { ConnectIndication, ServerConnection, ServerHandler } from '../../src/index.js';
import { MemorySink } from './memory.js';

export const START: SyncPoint = { number: 0, dataBytes: 0, articles: 0 };

export class TestHandler implements ServerHandler {
  readonly log: string[] = [];
  readonly sinks: MemorySink[] = [];
  readonly failures: PesitError[] = [];
  readonly bugs: unknown[] = [];
  connectAnswer: ConnectAnswer = { syncPoints: { intervalKb: 64, window: 4 } };
  indication: ConnectIndication | undefined;
  source: ((parameters: Parameters) => ArticleSource) | undefined;
  newSink = (): MemorySink => new MemorySink();
  onEndTransfer: () => Promise<void> = () => Promise.resolve();
  onConnect: () => void = () => undefined;
  onCreate: () => void = () => undefined;
  readonly ended_: Promise<PesitError | undefined>;
  #resolveEnded: (error: PesitError | undefined) => void = () => undefined;
  #selected: Parameters = {};

  constructor(readonly connection: ServerConnection) {
    this.ended_ = new Promise((resolve) => (this.#resolveEnded = resolve));
  }

  async connect(indication: ConnectIndication): Promise<ConnectAnswer> {
    this.indication = indication;
    this.log.push(`CONNECT ${indication.parameters.requester ?? ''} ${indication.dialect}`);
    this.onConnect();
    return Promise.resolve(this.connectAnswer);
  }
  async create(parameters: Parameters): Promise<CreateAnswer> {
    this.log.push(`CREATE ${parameters.fileIdentifier?.fileName ?? ''}`);
    this.onCreate();
    return Promise.resolve({ maxEntitySize: 32_768 });
  }
  async select(parameters: Parameters): Promise<SelectAnswer> {
    this.log.push(`SELECT ${parameters.fileIdentifier?.fileName ?? ''}`);
    this.#selected = parameters;
    return Promise.resolve({
      maxEntitySize: 32_768,
      fileName: parameters.fileIdentifier?.fileName ?? '',
      transferId: 77,
      recordFormat: 128,
      recordLength: 65_535,
      maxReservationKb: 1,
    });
  }
  async write(): Promise<{ from: SyncPoint; sink: MemorySink }> {
    const sink = this.newSink();
    this.sinks.push(sink);
    return Promise.resolve({ from: START, sink });
  }
  async read(): Promise<{ from: SyncPoint; source: ArticleSource }> {
    if (this.source === undefined) throw new Error('the test gave no source');
    return Promise.resolve({ from: START, source: this.source(this.#selected) });
  }
  async endTransfer(): Promise<void> {
    this.log.push('END');
    await this.onEndTransfer();
  }
  async transferFailed(error: PesitError, endCode: number | undefined): Promise<void> {
    this.log.push(`FAILED ${error.diagnostic}${endCode === undefined ? '' : ` end ${endCode}`}`);
    this.failures.push(error);
    return Promise.resolve();
  }
  async deselected(): Promise<void> {
    this.log.push('DESELECTED');
    return Promise.resolve();
  }
  learned(): void {
    this.log.push('LEARNED');
  }
  notice(text: string): void {
    this.log.push(`NOTICE ${text}`);
  }
  failed(error: unknown): void {
    this.bugs.push(error);
  }
  ended(error: PesitError | undefined): void {
    this.log.push(`ENDED ${error?.diagnostic ?? 'released'}`);
    this.#resolveEnded(error);
  }
}
