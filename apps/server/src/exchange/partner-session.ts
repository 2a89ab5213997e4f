import type { ConnectIndication, ServerConnection, ServerHandler } from '@pesit-node/net';
import { inOneLine, logWords, PesitError, printable } from '@pesit-node/protocol';
import type {
  ArticleSink,
  ArticleSource,
  ConnectAnswer,
  CreateAnswer,
  FpduName,
  MessageAnswer,
  Parameters,
  SelectAnswer,
  SingleArticleStyle,
  SyncPoint,
} from '@pesit-node/protocol';
import type { EndStatus, Logger, MeteredTransfer } from '@pesit-node/service';

import type { ListenerRow } from '../listeners/fields.js';
import { seenIn } from '../partners/seen.js';
import type { PartnerSeen } from '../partners/seen.js';
import type { PartnerRow, PartnerStanding } from '../partners/fields.js';
import { PartnerTracer } from '../traces/partner-tracer.js';
import type { RecordHandle } from '../transfers/record.js';
import type { TransferDirection } from '../transfers/schema.js';
import { startOf } from './context.js';
import type { ExchangeContext, PartnerContext } from './context.js';
import type { IncomingTransfer, OutgoingTransfer } from './file-transfer.js';
import { identify } from './identification.js';
import { acceptIncoming } from './incoming-file.js';
import { acceptMessage } from './message.js';
import { readable } from './names.js';
import type { OpenSession } from './open-sessions.js';
import { acceptOutgoing } from './outgoing-file.js';
import { failureOf } from './refusal.js';
import { revocationOf } from './revocation.js';

export interface PartnerSessionOptions {
  readonly context: ExchangeContext;
  /** As it is when the session begins. */
  readonly listener: ListenerRow;
  readonly connection: ServerConnection;
  /** A CONNECT was refused: for the figures of the listener. */
  readonly refused: () => void;
  /** Work that goes on after the end of the session. */
  readonly track: (work: Promise<void>) => void;
}

/** One connection of a partner: what it asks for, decided by the configuration, and written into the history. */
export class PartnerSession implements ServerHandler {
  readonly #options: PartnerSessionOptions;
  readonly #trace: PartnerTracer;
  #logger: Logger;
  /** The application was asked who connects. */
  #asked = false;
  /** The configured partner that the CONNECT names, proven or not. */
  #named: string | undefined;
  /** What was tolerated of a CONNECT: worth a line when its sender is proven. */
  #tolerated: string[] = [];
  #partner: PartnerContext | undefined;
  /** As which it is looked after while its partner is known. */
  #open: OpenSession | undefined;
  /** Why the session has to end: its partner is not any more what it was. */
  #revoked: PesitError | undefined;
  #file: IncomingTransfer | OutgoingTransfer | undefined;
  /** The record of that file, until it is deselected. */
  #record: RecordHandle | undefined;
  /** The file, as it is counted. */
  #metered: MeteredTransfer | undefined;
  #startedAt = 0;
  /** PI 25 of the last file. */
  #maxEntitySize: number | undefined;

  constructor(options: PartnerSessionOptions) {
    const { context, listener, connection } = options;
    this.#options = options;
    this.#trace = new PartnerTracer(context.traces, connection);
    this.#logger = context.logger.child({
      session: connection.id,
      listener: listener.server_id,
      remoteAddress: connection.remoteAddress,
    });
  }

  async connect(indication: ConnectIndication): Promise<ConnectAnswer> {
    this.#asked = true;
    const { context, listener, connection } = this.#options;
    const where = { listener: listener.server_id, remoteAddress: connection.remoteAddress };
    try {
      const partner = await identify(context, listener, indication, connection, (named) => {
        this.#named = named.partner_id;
        this.#trace.named(named, indication, where);
      });
      this.#logger = this.#logger.child({ partner: partner.partner_id });
      const stands = (now: PartnerStanding | undefined): PartnerStanding => this.#stands(now);
      this.#partner = { ...context, listener, partner, session: connection, stands, logger: this.#logger };
    } catch (error) {
      this.#connectionRefused(error, { requester: readable(indication.parameters.requester ?? '', 24) });
      throw error;
    }
    const { partner } = this.#partner;
    this.#open = { partnerId: partner.partner_id, look: (now) => this.#look(now) };
    context.sessions.add(this.#open);
    context.meter.sessionOpened();
    const seen = seenIn(indication, where);
    this.#see(seen);
    const { dialect, freeMessage } = seen;
    this.#logger.info({ dialect, ...(freeMessage === null ? {} : { freeMessage }) }, 'partner connected');
    for (const text of this.#tolerated.splice(0)) this.notice(text);
    return this.#connectAnswer(partner);
  }

  async create(parameters: Parameters): Promise<CreateAnswer> {
    const file = await this.#accept('RECEIVE', parameters, (partner) => acceptIncoming(partner, parameters));
    return file.answer;
  }

  async select(parameters: Parameters): Promise<SelectAnswer> {
    const file = await this.#accept('SEND', parameters, (partner) => acceptOutgoing(partner, parameters));
    return file.answer;
  }

  async write(): Promise<{ readonly from: SyncPoint; readonly sink: ArticleSink }> {
    if (this.#file?.direction !== 'RECEIVE') throw new Error('WRITE without CREATE');
    const answer = await this.#file.write();
    this.#goesFrom(answer.from);
    return answer;
  }

  async read(point: number): Promise<{ readonly from: SyncPoint; readonly source: ArticleSource }> {
    if (this.#file?.direction !== 'SEND') throw new Error('READ without SELECT');
    const answer = await this.#file.read(point);
    this.#goesFrom(answer.from);
    return answer;
  }

  async endTransfer(): Promise<void> {
    const file = this.#file;
    if (file === undefined) throw new Error('TRANS.END without a file');
    await file.end();
    this.#forget(file, 'COMPLETED');
    this.#file = undefined;
    const { dataBytes, articles } = file.progress();
    const durationMs = Date.now() - this.#startedAt;
    this.#logger.info(
      { transfer: file.record.id, filename: file.name, dataBytes, articles, durationMs },
      'transfer completed',
    );
  }

  async transferFailed(error: PesitError, endCode: number | undefined): Promise<void> {
    const file = this.#file;
    if (file === undefined) return;
    this.#file = undefined;
    const progress = file.progress();
    const { status, restartable } = await file.fail(error, endCode);
    this.#forget(file, status, error.diagnostic);
    this.#say(status === 'CANCELLED' ? 'transfer cancelled' : 'transfer failed', error, {
      ...{ transfer: file.record.id, filename: file.name, ...progress, restartable },
    });
  }

  async message(parameters: Parameters): Promise<MessageAnswer> {
    const partner = this.#partner;
    if (partner === undefined) throw new Error('a message before CONNECT');
    try {
      const { id, answer } = await acceptMessage(partner, parameters);
      const message = { direction: 'RECEIVE', peer: partner.partner.partner_id, progress: nothing } as const;
      partner.meter.begins(message);
      partner.meter.ends(message, 'COMPLETED');
      this.#trace.transfer(id);
      return answer;
    } catch (error) {
      this.#messageRefused(partner, error);
      throw error;
    }
  }

  async refused(name: FpduName, parameters: Parameters, error: PesitError): Promise<void> {
    const partner = this.#partner;
    if (partner === undefined) return;
    if (name === 'MSG') this.#messageRefused(partner, error);
    else await this.#fileRefused(partner, name === 'CREATE' ? 'RECEIVE' : 'SEND', parameters, error);
  }

  said(name: FpduName, complement: Buffer): void {
    const { context, track } = this.#options;
    if (this.#record === undefined) return;
    this.#logger.info({ transfer: this.#record.id, at: name, partnerSaid: printable(complement) }, 'partner said');
    track(context.journal.said(this.#record, complement));
  }

  deselected(): Promise<void> {
    this.#record = undefined;
    return Promise.resolve();
  }

  learned(style: SingleArticleStyle): void {
    this.#logger.debug({ style }, 'style of single articles (ID.SRC 1) recognised');
    this.#see({ singleArticle: style });
  }

  notice(text: string): void {
    if (this.#partner === undefined) {
      this.#tolerated.push(text);
      return;
    }
    this.#logger.info({ notice: text }, 'tolerated');
    this.#trace.note(`tolerated: ${text}`);
  }

  failed(error: unknown): void {
    this.#logger.error({ err: error }, 'session failed here');
    this.#trace.note('session failed here: the log has the reason');
  }

  ended(error: PesitError | undefined): void {
    const { context, track } = this.#options;
    // A request was answered while the connection went away: nobody else gives its file up.
    if (this.#file !== undefined) track(this.transferFailed(error ?? released(), undefined));
    // Its CONNECT could not be read, or was refused without asking: too many connections, an unknown version.
    const isRefused = !this.#asked && (error?.fault === 'local' || error?.fault === 'remote');
    if (isRefused) this.#connectionRefused(error);
    this.#trace.end(error === undefined ? 'released' : `connection ended: ${inOneLine(error)}`);
    if (this.#open !== undefined) context.sessions.remove(this.#open);
    if (this.#partner === undefined) {
      if (error !== undefined && !isRefused)
        this.#logger.debug(logWords(error), 'connection ended before a partner was known');
      return;
    }
    context.places.giveBack(this.#partner.partner.partner_id);
    this.#partner = undefined;
    if (error === undefined) this.#logger.info('partner disconnected');
    else this.#logger.warn(logWords(error), 'connection ended');
  }

  /** Ends the session after the file that is running, if there is one, when its partner is not any more what it was. */
  #look(now: PartnerStanding | undefined): void {
    if (this.#partner === undefined || this.#revoked !== undefined) return;
    const { partner, listener, config } = this.#partner;
    const login = { partner, listener: listener.server_id, byDefault: config['access.default'] };
    this.#revoked = revocationOf(login, now);
    if (this.#revoked === undefined) return;
    const file = this.#file && { transfer: this.#file.record.id, filename: this.#file.name };
    this.#say(file === undefined ? 'session has to end' : 'session has to end after its file', this.#revoked, file);
    this.#options.connection.retire(this.#revoked);
  }

  #stands(now: PartnerStanding | undefined): PartnerStanding {
    this.#look(now);
    if (this.#revoked !== undefined) throw this.#revoked;
    if (now === undefined) throw new Error('a session goes on without its partner');
    return now;
  }

  async #accept<F extends IncomingTransfer | OutgoingTransfer>(
    direction: TransferDirection,
    parameters: Parameters,
    accept: (partner: PartnerContext) => Promise<F>,
  ): Promise<F> {
    const partner = this.#partner;
    if (partner === undefined) throw new Error('a file before CONNECT');
    try {
      const file = await accept(partner);
      this.#file = file;
      this.#record = file.record;
      this.#seeEntity(parameters.maxEntitySize ?? 0);
      this.#startedAt = Date.now();
      partner.progress.add(file);
      partner.running.add(file, this.#options.connection);
      this.#metered = { direction, peer: partner.partner.partner_id, progress: file.progress };
      partner.meter.begins(this.#metered);
      this.#logger.info({ transfer: file.record.id, direction, filename: file.name }, 'transfer begins');
      this.#trace.transfer(file.record.id);
      return file;
    } catch (error) {
      await this.#fileRefused(partner, direction, parameters, error);
      throw error;
    }
  }

  async #fileRefused(
    partner: PartnerContext,
    direction: TransferDirection,
    parameters: Parameters,
    error: unknown,
  ): Promise<void> {
    const start = startOf(partner, direction, parameters);
    const failure = failureOf(error);
    partner.meter.over({ direction, peer: partner.partner.partner_id }, failure.status, failure.diagnostic);
    const { kind, written } = partner.journal.refused(start, failure);
    if (error instanceof PesitError) {
      const further = kind === 'counting' ? { further: 'more of the same are counted in the history alone' } : {};
      const facts = { direction, virtualFile: start.virtualFileId, ...further };
      // As many lines as records: what is only counted has none.
      if (kind === 'counted') this.#trace.note(`transfer refused: ${inOneLine(error)}`);
      else this.#say('transfer refused', error, facts);
    }
    await written;
  }

  #messageRefused({ meter, partner, strangers }: PartnerContext, error: unknown): void {
    const { status, diagnostic } = failureOf(error);
    meter.over({ direction: 'RECEIVE', peer: partner.partner_id }, status, diagnostic);
    if (!(error instanceof PesitError)) return;
    strangers.warnOfPartner(this.#logger, partner.partner_id, logWords(error), 'message refused');
    this.#trace.note(`message refused: ${inOneLine(error)}`);
  }

  #connectionRefused(error: unknown, facts: object = {}): void {
    const { context, connection, refused } = this.#options;
    refused();
    context.meter.sessionRefused(failureOf(error).diagnostic);
    if (!(error instanceof PesitError)) return;
    const stranger = { remoteAddress: connection.remoteAddress, partnerId: this.#named };
    context.strangers.warn(this.#logger, stranger, { ...facts, ...logWords(error) }, 'connection refused');
    this.#trace.note(`connection refused: ${inOneLine(error)}`);
  }

  /** Something went wrong: for the log, and for a trace. */
  #say(what: string, error: PesitError, facts: object = {}): void {
    this.#logger.warn({ ...facts, ...logWords(error) }, what);
    this.#trace.note(`${what}: ${inOneLine(error)}`);
  }

  #goesFrom({ number, dataBytes }: SyncPoint): void {
    if (this.#metered !== undefined) {
      this.#options.context.meter.goesFrom(this.#metered, { dataBytes, syncPoint: number });
    }
  }

  #forget(file: IncomingTransfer | OutgoingTransfer, status: EndStatus, diagnostic?: string): void {
    const { progress, running, meter } = this.#options.context;
    if (this.#metered !== undefined) meter.ends(this.#metered, status, diagnostic);
    progress.remove(file);
    running.remove(file);
  }

  /** Once a session, not once a file: most partners ask for the same in each. */
  #seeEntity(maxEntitySize: number): void {
    const { seen } = this.#partner?.partner ?? {};
    if ((this.#maxEntitySize ?? seen?.maxEntitySize) !== maxEntitySize) this.#see({ maxEntitySize });
    this.#maxEntitySize = maxEntitySize;
  }

  /** Remembers what the partner has shown of itself. */
  #see(seen: PartnerSeen): void {
    const id = this.#partner?.partner.partner_id;
    if (id !== undefined) this.#options.context.times.add(id, seen);
  }

  #connectAnswer({ seen: { singleArticle }, multi_article, concatenation }: PartnerRow): ConnectAnswer {
    const { context, listener } = this.#options;
    const intervalKb = listener.sync_interval ?? context.config['transfer.sync-point-interval'];
    const window = listener.sync_window ?? context.config['transfer.sync-window'];
    const wanted = context.config['transfer.sync-points-enabled'] && intervalKb > 0;
    const known = {
      ...(singleArticle === undefined ? {} : { singleArticle }),
      multiArticle: multi_article ?? true,
      concatenation: concatenation ?? true,
    };
    return wanted
      ? { syncPoints: { intervalKb, window }, resynchronisation: true, defaultIntervalKb: intervalKb, ...known }
      : known;
  }
}

/** A message has no data. */
const nothing = (): undefined => undefined;

const released = (): PesitError =>
  new PesitError('the connection was released before the end of the transfer', {
    fault: 'refused',
    diagnostic: '2-223',
  });
