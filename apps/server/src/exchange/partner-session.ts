import { securityFacts } from '@pesit-node/net';
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
import {
  SESSION_ENDED,
  SESSION_FAILED,
  SESSION_OPENED,
  SESSION_REFUSED,
  SESSION_REVOKED,
  SESSION_TOLERATED,
  TRANSFER_BEGAN,
  TRANSFER_ENDED,
  TRANSFER_CONFIRMED,
  TRANSFER_POINT,
  TRANSFER_REFUSED,
  TRANSFER_REMARKED,
  TRANSFER_WENT_ON,
} from '@pesit-node/transfers';
import type { Direction, EndStatus, Facts, ObservedSession, ObservedTransfer } from '@pesit-node/transfers';

import type { ListenerRow } from '../listeners/fields.js';
import { seenIn } from '../partners/seen.js';
import type { PartnerSeen } from '../partners/seen.js';
import type { PartnerRow } from '../partners/fields.js';
import type { RecordHandle, TransferFailure } from '../transfers/record.js';
import { PARTNER_SEEN } from './events.js';
import type { Beginning, IncomingTransfer, OutgoingTransfer } from './file-transfer.js';
import { connectAnswer } from '../admission/connect-answer.js';
import { identify, identifyTrial } from '../admission/identification.js';
import { acceptIncoming } from './incoming-file.js';
import { acceptMessage } from './message.js';
import { acceptOutgoing } from './outgoing-file.js';
import type { ExchangeParts, Observing } from './parts.js';
import { startOf } from './proven-partner.js';
import type { ProvenPartner } from './proven-partner.js';
import { failureOf } from './refusal.js';
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

/** One connection of a partner: what it asks for, decided by the configuration, and written into the history. */
export class PartnerSession implements ServerHandler {
  readonly #options: PartnerSessionOptions;
  readonly #observed: ObservedSession;
  #facts: Readonly<Record<'session' | 'listener' | 'remoteAddress', string>> & { readonly partner?: string };
  /** The application was asked who connects. */
  #asked = false;
  /** It is one of our own, which tries a login. */
  #trial: Trial | undefined;
  /** The configured partner that the CONNECT names, proven or not. */
  #named: string | undefined;
  /** Deviations tolerated in a CONNECT: worth a line when its sender is proven. */
  #tolerated: string[] = [];
  #proven: ProvenPartner | undefined;
  /** As which it is looked after while its partner is known. */
  #standing: Standing | undefined;
  #file: IncomingTransfer | OutgoingTransfer | undefined;
  /** The record of that file, until it is deselected. */
  #record: RecordHandle | undefined;
  #startedAt = 0;
  /** PI 25 of the last file. */
  #maxEntitySize: number | undefined;

  constructor(options: PartnerSessionOptions) {
    const { parts, listener, connection } = options;
    this.#options = options;
    const { id, remoteAddress } = connection;
    const facts = { session: id, listener: listener.server_id, remoteAddress };
    this.#facts = facts;
    const current = (): Facts => this.#facts;
    this.#observed = {
      id,
      get facts() {
        return current();
      },
    };
    parts.observing.traces.begin(this.#observed, connection);
    parts.observing.sessions.begin(this.#observed, connection, listener.server_id);
  }

  get #events(): Observing['events'] {
    return this.#options.parts.observing.events;
  }

  takesNoPlace(parameters: Parameters): boolean {
    this.#trial = this.#options.parts.admitting.trials.of(parameters);
    return this.#trial !== undefined;
  }

  async connect(indication: ConnectIndication): Promise<ConnectAnswer> {
    this.#asked = true;
    const { parts, listener, connection } = this.#options;
    const { admitting, observing } = parts;
    const where = { listener: listener.server_id, remoteAddress: connection.remoteAddress };
    const named = (partner: PartnerRow): void => {
      this.#named = partner.partner_id;
      observing.traces.named(this.#observed, partner, indication, where);
    };
    if (this.#trial !== undefined) {
      const partner = await identifyTrial(admitting, listener, this.#trial, indication, connection, named);
      return connectAnswer(listener, partner, parts.config);
    }
    try {
      const partner = await identify(admitting, listener, indication, connection, named);
      this.#facts = { ...this.#facts, partner: partner.partner_id };
      const { events } = observing;
      this.#standing = this.#standingOf(partner);
      const { check: stands } = this.#standing;
      const { syncPoints, resynchronisation } = indication.parameters;
      const asked = { syncPoints, resynchronisation };
      this.#proven = { listener, partner, session: connection, asked, stands, events, observed: this.#observed };
    } catch (error) {
      this.#connectionRefused(error, { requester: readable(indication.parameters.requester ?? '', 24) });
      throw error;
    }
    const { partner } = this.#proven;
    admitting.sessions.add(this.#standing);
    // It may have been revoked between the handshake and now; a database that is away says nothing of it.
    this.#standing.lookAtCertificate().catch(() => undefined);
    const seen = seenIn(indication, where);
    this.#see(seen);
    const { dialect, freeMessage } = seen;
    const said = freeMessage === null ? {} : { freeMessage };
    const facts = { dialect, ...said, ...securityFacts(connection.security) };
    this.#events.publish(SESSION_OPENED, { session: this.#observed, facts });
    for (const text of this.#tolerated.splice(0)) this.notice(text);
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
    return { from: this.#goesFrom(this.#file, beginning), sink, pace: this.#pace() };
  }

  async read(
    point: number,
  ): Promise<{ readonly from: SyncPoint; readonly source: ArticleSource; readonly pace: Pace | undefined }> {
    if (this.#file?.direction !== 'SEND') throw new Error('READ without SELECT');
    const { source, ...beginning } = await this.#file.read(point);
    return { from: this.#goesFrom(this.#file, beginning), source, pace: this.#pace() };
  }

  async endTransfer(): Promise<void> {
    const file = this.#file;
    if (file === undefined) throw new Error('TRANS.END without a file');
    const came = performance.now();
    this.#options.parts.records.running.end(file);
    await file.end();
    this.#events.publish(TRANSFER_CONFIRMED, { transfer: file, waitedMs: performance.now() - came });
    this.#file = undefined;
    const { dataBytes, articles } = file.progress();
    this.#over(file, 'COMPLETED', undefined, {
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
    this.#over(file, status, error, { ...progress, restartable });
  }

  async message(parameters: Parameters): Promise<MessageAnswer> {
    const proven = this.#proven;
    if (proven === undefined) throw new Error('a message before CONNECT');
    const { partners } = this.#options.parts.admitting;
    const { journal } = this.#options.parts.records;
    try {
      const { id, answer } = await acceptMessage(proven, { partners, journal }, parameters);
      const { partner_id: peer } = proven.partner;
      const transfer: ObservedTransfer = { id, type: 'MESSAGE', direction: 'RECEIVE', peer, progress: nothing };
      const facts = { bytes: parameters.message?.length ?? 0 };
      const about = { session: this.#observed, transfer, facts };
      this.#events.publish(TRANSFER_BEGAN, about);
      this.#events.publish(TRANSFER_ENDED, { ...about, status: 'COMPLETED', diagnostic: undefined });
      return answer;
    } catch (error) {
      this.#messageRefused(proven, error);
      throw error;
    }
  }

  async refused(name: FpduName, parameters: Parameters, error: PesitError): Promise<void> {
    const proven = this.#proven;
    if (proven === undefined) return;
    if (name === 'MSG') this.#messageRefused(proven, error);
    else await this.#fileRefused(proven, name === 'CREATE' ? 'RECEIVE' : 'SEND', parameters, error);
  }

  acknowledged(point: SyncPoint, waitedMs?: number): void {
    if (this.#file !== undefined) this.#events.publish(TRANSFER_POINT, { transfer: this.#file, point, waitedMs });
  }

  said(name: FpduName, complement: Buffer): void {
    const { parts, track } = this.#options;
    if (this.#record === undefined) return;
    const { id } = this.#record;
    this.#events.publish(TRANSFER_REMARKED, { session: this.#observed, id, at: name, complement });
    track(parts.records.journal.said(this.#record, complement));
  }

  deselected(): Promise<void> {
    this.#record = undefined;
    return Promise.resolve();
  }

  learned(style: SingleArticleStyle): void {
    this.#see({ singleArticle: style });
  }

  notice(text: string): void {
    if (this.#proven === undefined) {
      this.#tolerated.push(text);
      return;
    }
    this.#events.publish(SESSION_TOLERATED, { session: this.#observed, text });
  }

  failed(error: unknown): void {
    this.#events.publish(SESSION_FAILED, { session: this.#observed, error });
  }

  ended(error: PesitError | undefined): void {
    const { parts, track } = this.#options;
    const { sessions, places } = parts.admitting;
    // A request was answered while the connection went away: nobody else gives its file up.
    if (this.#file !== undefined) track(this.transferFailed(error ?? released(), undefined));
    // Its CONNECT could not be read, or was refused without asking: too many connections, an unknown version.
    const isRefused =
      !this.#asked && this.#trial === undefined && (error?.fault === 'local' || error?.fault === 'remote');
    if (isRefused) this.#connectionRefused(error);
    if (this.#standing !== undefined) sessions.remove(this.#standing);
    this.#standing?.end();
    const opened = this.#proven !== undefined;
    if (this.#proven !== undefined) {
      const { listener, partner } = this.#proven;
      places.give({ kind: 'listener', id: listener.server_id }, { kind: 'partner', id: partner.partner_id });
    }
    this.#proven = undefined;
    this.#events.publish(SESSION_ENDED, { session: this.#observed, opened, error });
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
      this.#events.publish(SESSION_REVOKED, { session: this.#observed, transfer: this.#file, error });
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
      this.#seeEntity(parameters.maxEntitySize ?? 0);
      this.#startedAt = performance.now();
      parts.records.running.add(file, connection);
      const facts = { filename: file.name };
      this.#events.publish(TRANSFER_BEGAN, { session: this.#observed, transfer: file, facts });
      return file;
    } catch (error) {
      await this.#fileRefused(proven, direction, parameters, error);
      throw error;
    }
  }

  async #fileRefused(
    proven: ProvenPartner,
    direction: Direction,
    parameters: Parameters,
    error: unknown,
  ): Promise<void> {
    const start = startOf(proven, direction, parameters);
    const failure = failureOf(error);
    const { kind, written } = this.#options.parts.records.journal.refused(start, failure);
    const further = kind === 'counting' ? { further: 'more of the same are counted in the history alone' } : {};
    const facts = { direction, virtualFile: start.virtualFileId, ...further };
    const counted = kind === 'counted';
    this.#transferRefused(proven, { type: 'FILE', direction, error, ...failure, counted, facts });
    await written;
  }

  #messageRefused(proven: ProvenPartner, error: unknown): void {
    const { status, diagnostic } = failureOf(error);
    const about = { type: 'MESSAGE', direction: 'RECEIVE', status, diagnostic, counted: false, facts: {} } as const;
    this.#transferRefused(proven, { ...about, error });
  }

  #transferRefused({ partner }: ProvenPartner, about: Refused): void {
    const { type, direction, status, diagnostic, error, counted, facts } = about;
    const peer = partner.partner_id;
    const refused = { session: this.#observed, type, direction, peer, status, diagnostic, error, counted, facts };
    this.#events.publish(TRANSFER_REFUSED, refused);
  }

  #connectionRefused(error: unknown, facts: Facts = {}): void {
    this.#options.refused();
    const { diagnostic } = failureOf(error);
    const about = { session: this.#observed, diagnostic, error, named: this.#named, facts };
    this.#events.publish(SESSION_REFUSED, about);
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

  #goesFrom(transfer: ObservedTransfer, { from, attempt, facts }: Beginning): SyncPoint {
    const about = { session: this.#observed, transfer, attempt, facts };
    const figures = { dataBytes: from.dataBytes, syncPoint: from.number };
    this.#events.publish(TRANSFER_WENT_ON, { ...about, from: figures });
    return from;
  }

  #over(
    transfer: IncomingTransfer | OutgoingTransfer,
    status: EndStatus,
    error: PesitError | undefined,
    facts: Facts,
  ): void {
    this.#options.parts.records.running.remove(transfer);
    this.#events.publish(TRANSFER_ENDED, {
      ...{ session: this.#observed, transfer, status, diagnostic: error?.diagnostic, error },
      facts: { filename: transfer.name, ...facts },
    });
  }

  /** Once a session, not once a file: most partners ask for the same in each. */
  #seeEntity(maxEntitySize: number): void {
    const { seen } = this.#proven?.partner ?? {};
    if ((this.#maxEntitySize ?? seen?.maxEntitySize) !== maxEntitySize) this.#see({ maxEntitySize });
    this.#maxEntitySize = maxEntitySize;
  }

  /** Remembers what the partner has shown of itself. */
  #see(seen: PartnerSeen): void {
    const partnerId = this.#proven?.partner.partner_id;
    if (partnerId !== undefined) this.#events.publish(PARTNER_SEEN, { partnerId, seen });
  }
}

type Refused = Pick<TransferFailure, 'status' | 'diagnostic'> & {
  readonly type: 'FILE' | 'MESSAGE';
  readonly direction: Direction;
  readonly error: unknown;
  readonly counted: boolean;
  readonly facts: Facts;
};

/** A message has no data. */
const nothing = (): undefined => undefined;

const released = (): PesitError =>
  new PesitError('the connection was released before the end of the transfer', {
    fault: 'refused',
    diagnostic: '2-223',
  });
