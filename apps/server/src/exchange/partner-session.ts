import type { ConnectIndication, Pace, ServerConnection, ServerHandler } from '@pesit-node/net';
import { PesitError, readable } from '@pesit-node/protocol';
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
import type { Direction } from '@pesit-node/transfers';

import type { ListenerRow } from '../listeners/fields.js';
import type { PartnerRow } from '../partners/fields.js';
import type { RecordHandle } from '../transfers/record.js';
import type { IncomingTransfer, OutgoingTransfer } from './file-transfer.js';
import { connectAnswer } from '../admission/connect-answer.js';
import { identify, identifyTrial } from '../admission/identification.js';
import { acceptIncoming } from './incoming-file.js';
import { acceptMessage } from './message.js';
import { acceptOutgoing } from './outgoing-file.js';
import type { ExchangeParts } from './parts.js';
import type { ProvenPartner } from './proven-partner.js';
import { SessionNews } from './session-news.js';
import { Standing } from '../admission/standing.js';
import { fileRefusal } from '../admission/volume-refusal.js';
import type { Trial } from '../trials/trials.js';

export interface PartnerSessionOptions {
  readonly parts: ExchangeParts;
  /** As it is when the session begins. */
  readonly listener: ListenerRow;
  /** As it is whenever this is called. */
  readonly listenerNow: () => ListenerRow;
  readonly connection: ServerConnection;
  /** A CONNECT was refused: for the figures of the listener. */
  readonly refused: () => void;
  /** Work that continues after the end of the session. */
  readonly track: (work: Promise<void>) => void;
}

/** One connection of a partner: what it asks for, decided by the configuration, and written into the history. `SessionNews` tells of it. */
export class PartnerSession implements ServerHandler {
  readonly #options: PartnerSessionOptions;
  readonly #news: SessionNews;
  /** The application was asked who connects. */
  #asked = false;
  /** It is one of our own, which tries a login. */
  #trial: Trial | undefined;
  #proven: ProvenPartner | undefined;
  /** As which it is looked after while its partner is known. */
  #standing: Standing | undefined;
  #file: IncomingTransfer | OutgoingTransfer | undefined;
  /** The record of that file, until it is deselected. */
  #record: RecordHandle | undefined;
  #startedAt = 0;

  constructor(options: PartnerSessionOptions) {
    const { parts, listener, connection } = options;
    this.#options = options;
    const { observing, records } = parts;
    this.#news = new SessionNews({ observing, journal: records.journal, connection, serverId: listener.server_id });
  }

  takesNoPlace(parameters: Parameters): boolean {
    this.#trial = this.#options.parts.admitting.trials.of(parameters);
    return this.#trial !== undefined;
  }

  async connect(indication: ConnectIndication): Promise<ConnectAnswer> {
    this.#asked = true;
    const { parts, listener, connection } = this.#options;
    const { admitting, observing } = parts;
    const named = (partner: PartnerRow): void => {
      this.#news.named(partner, indication);
    };
    if (this.#trial !== undefined) {
      const partner = await identifyTrial(admitting, listener, this.#trial, indication, connection, named);
      return connectAnswer(listener, partner, parts.config);
    }
    try {
      const partner = await identify(admitting, listener, indication, connection, named);
      this.#news.proven(partner);
      const { events } = observing;
      this.#standing = this.#standingOf(partner);
      const { check: stands } = this.#standing;
      const { syncPoints, resynchronisation } = indication.parameters;
      const asked = { syncPoints, resynchronisation };
      this.#proven = { listener, partner, session: connection, asked, stands, events, observed: this.#news.session };
    } catch (error) {
      this.#options.refused();
      this.#news.refused(error, { requester: readable(indication.parameters.requester ?? '', 24) });
      throw error;
    }
    const { partner } = this.#proven;
    admitting.sessions.add(this.#standing);
    // It may have been revoked between the handshake and now; a database that is away says nothing of it.
    this.#standing.lookAtCertificate().catch(() => undefined);
    this.#news.opened(indication, connection);
    return connectAnswer(listener, partner, parts.config);
  }

  async create(parameters: Parameters): Promise<CreateAnswer> {
    const file = await this.#accept('RECEIVE', parameters, (proven, parts) =>
      acceptIncoming(proven, parts, parameters),
    );
    return file.answer;
  }

  async select(parameters: Parameters): Promise<SelectAnswer> {
    const file = await this.#accept('SEND', parameters, (proven, parts) => acceptOutgoing(proven, parts, parameters));
    return file.answer;
  }

  async write(): Promise<{ readonly from: SyncPoint; readonly sink: ArticleSink; readonly pace: Pace | undefined }> {
    if (this.#file?.direction !== 'RECEIVE') throw new Error('WRITE without CREATE');
    const { sink, ...beginning } = await this.#file.write();
    return { from: this.#news.fileWentOn(this.#file, beginning), sink, pace: this.#pace() };
  }

  async read(
    point: number,
  ): Promise<{ readonly from: SyncPoint; readonly source: ArticleSource; readonly pace: Pace | undefined }> {
    if (this.#file?.direction !== 'SEND') throw new Error('READ without SELECT');
    const { source, ...beginning } = await this.#file.read(point);
    return { from: this.#news.fileWentOn(this.#file, beginning), source, pace: this.#pace() };
  }

  async endTransfer(): Promise<void> {
    const file = this.#file;
    if (file === undefined) throw new Error('TRANS.END without a file');
    const came = performance.now();
    const { running } = this.#options.parts.records;
    running.end(file);
    await file.end();
    this.#news.fileConfirmed(file, performance.now() - came);
    this.#file = undefined;
    const { dataBytes, articles } = file.progress();
    running.remove(file);
    this.#news.fileEnded(file, 'COMPLETED', undefined, {
      dataBytes,
      articles,
      durationMs: Math.round(performance.now() - this.#startedAt),
    });
  }

  async transferFailed(error: PesitError, endCode: number | undefined): Promise<void> {
    const file = this.#file;
    if (file === undefined) return;
    this.#file = undefined;
    const progress = file.progress();
    const { status, restartable } = await file.fail(error, endCode);
    this.#options.parts.records.running.remove(file);
    this.#news.fileEnded(file, status, error, { ...progress, restartable });
  }

  async message(parameters: Parameters): Promise<MessageAnswer> {
    const proven = this.#proven;
    if (proven === undefined) throw new Error('a message before CONNECT');
    const { partners } = this.#options.parts.admitting;
    const { journal } = this.#options.parts.records;
    try {
      const { id, answer } = await acceptMessage(proven, { partners, journal }, parameters);
      this.#news.messageTaken(proven, id, parameters.message?.length ?? 0);
      return answer;
    } catch (error) {
      this.#news.messageRefused(proven, error);
      throw error;
    }
  }

  async refused(name: FpduName, parameters: Parameters, error: PesitError): Promise<void> {
    const proven = this.#proven;
    if (proven === undefined) return;
    if (name === 'MSG') this.#news.messageRefused(proven, error);
    else await this.#news.fileRefused(proven, name === 'CREATE' ? 'RECEIVE' : 'SEND', parameters, error);
  }

  acknowledged(point: SyncPoint, waitedMs?: number): void {
    if (this.#file !== undefined) this.#news.point(this.#file, point, waitedMs);
  }

  said(name: FpduName, complement: Buffer): void {
    const { parts, track } = this.#options;
    if (this.#record === undefined) return;
    const { id } = this.#record;
    this.#news.remarked(id, name, complement);
    track(parts.records.journal.said(this.#record, complement));
  }

  deselected(): Promise<void> {
    this.#record = undefined;
    return Promise.resolve();
  }

  learned(style: SingleArticleStyle): void {
    this.#news.seen({ singleArticle: style });
  }

  notice(text: string): void {
    this.#news.tolerated(text);
  }

  failed(error: unknown): void {
    this.#news.failed(error);
  }

  ended(error: PesitError | undefined): void {
    const { parts, track } = this.#options;
    const { sessions, places } = parts.admitting;
    // A request was answered while the connection went away: nobody else gives its file up.
    if (this.#file !== undefined) track(this.transferFailed(error ?? released(), undefined));
    // Its CONNECT could not be read, or was refused without asking: too many connections, an unknown version.
    const isRefused =
      !this.#asked && this.#trial === undefined && (error?.fault === 'local' || error?.fault === 'remote');
    if (isRefused) {
      this.#options.refused();
      this.#news.refused(error);
    }
    if (this.#standing !== undefined) sessions.remove(this.#standing);
    this.#standing?.end();
    const opened = this.#proven !== undefined;
    if (this.#proven !== undefined) {
      const { listener, partner } = this.#proven;
      places.give({ kind: 'listener', id: listener.server_id }, { kind: 'partner', id: partner.partner_id });
    }
    this.#proven = undefined;
    this.#news.ended(opened, error);
  }

  /** The session ends after the file that is running, if there is one, when its partner was changed or removed. */
  #standingOf(partner: ProvenPartner['partner']): Standing {
    const { listener, connection, parts } = this.#options;
    const { config } = parts.admitting;
    const login = {
      ...{ partner, listener: listener.server_id },
      ...{ remoteAddress: connection.remoteAddress, security: connection.security },
      revokedSince: () => parts.tls.revoked(listener, connection.security),
      byDefault: () => config['access.default'],
    };
    return new Standing(login, (error) => {
      this.#news.revoked(this.#file, error);
      connection.retire(error);
    });
  }

  async #accept<F extends IncomingTransfer | OutgoingTransfer>(
    direction: Direction,
    parameters: Parameters,
    accept: (proven: ProvenPartner, parts: ExchangeParts) => Promise<F>,
  ): Promise<F> {
    const proven = this.#proven;
    if (proven === undefined) throw new Error('a file before CONNECT');
    const { parts, connection } = this.#options;
    try {
      const { fault } = parts.files.volumes;
      if (fault !== undefined) throw fileRefusal(fault);
      const file = await accept(proven, parts);
      this.#file = file;
      this.#record = file.record;
      this.#startedAt = performance.now();
      parts.records.running.add(file, connection);
      this.#news.fileBegan(file, parameters.maxEntitySize ?? 0);
      return file;
    } catch (error) {
      await this.#news.fileRefused(proven, direction, parameters, error);
      throw error;
    }
  }

  /** As partner and listener are now. */
  #pace(): Pace | undefined {
    const { parts, listener, listenerNow } = this.#options;
    const partner = this.#standing?.now;
    if (partner === undefined) return undefined;
    return parts.files.rates.pace([
      { name: `partner ${partner.partner_id}`, bytesPerSecond: partner.max_bytes_per_second },
      { name: `listener ${listener.server_id}`, bytesPerSecond: listenerNow().max_bytes_per_second },
    ]);
  }
}

const released = (): PesitError =>
  new PesitError('the connection was released before the end of the transfer', {
    fault: 'refused',
    diagnostic: '2-223',
  });
