import { securityFacts } from '@pesit-node/net';
import type { ConnectIndication, ServerConnection } from '@pesit-node/net';
import type { FpduName, Parameters, PesitError, SyncPoint } from '@pesit-node/protocol';
import {
  SESSION_ENDED,
  SESSION_FAILED,
  SESSION_OPENED,
  SESSION_REFUSED,
  SESSION_REVOKED,
  SESSION_TOLERATED,
  TRANSFER_BEGAN,
  TRANSFER_CONFIRMED,
  TRANSFER_ENDED,
  TRANSFER_POINT,
  TRANSFER_REFUSED,
  TRANSFER_REMARKED,
  TRANSFER_WENT_ON,
} from '@pesit-node/transfers';
import type { Direction, EndStatus, Facts, ObservedSession, ObservedTransfer } from '@pesit-node/transfers';

import type { PartnerRow } from '../partners/fields.js';
import { seenIn } from '../partners/seen.js';
import type { PartnerSeen } from '../partners/seen.js';
import type { TransferFailure } from '../transfers/record.js';
import { PARTNER_SEEN } from './events.js';
import type { Beginning, IncomingTransfer, OutgoingTransfer } from './file-transfer.js';
import type { Observing, Records } from './parts.js';
import { startOf } from './proven-partner.js';
import type { ProvenPartner } from './proven-partner.js';
import { failureOf } from './refusal.js';

type FileTransfer = IncomingTransfer | OutgoingTransfer;

interface SessionNewsOptions {
  readonly observing: Observing;
  /** Where refused files are written. */
  readonly journal: Pick<Records['journal'], 'refused'>;
  readonly connection: ServerConnection;
  readonly serverId: string;
}

/** Tells those who observe (log, figures, traces, history) what happens in one connection of a partner. */
export class SessionNews {
  /** The session as its events name it. */
  readonly session: ObservedSession;
  readonly #observing: Observing;
  readonly #journal: SessionNewsOptions['journal'];
  readonly #where: Readonly<Record<'listener' | 'remoteAddress', string>>;
  #facts: Facts;
  /** The configured partner that the CONNECT names, proven or not. */
  #named: string | undefined;
  /** As it was when it was proven, until the session ends. */
  #partner: PartnerRow | undefined;
  /** Deviations tolerated in a CONNECT: worth a line when its sender is proven. */
  #tolerated: string[] = [];
  /** PI 25 of the last file. */
  #maxEntitySize: number | undefined;

  constructor({ observing, journal, connection, serverId }: SessionNewsOptions) {
    const { id, remoteAddress } = connection;
    this.#observing = observing;
    this.#journal = journal;
    this.#where = { listener: serverId, remoteAddress };
    this.#facts = { session: id, ...this.#where };
    const current = (): Facts => this.#facts;
    this.session = {
      id,
      get facts() {
        return current();
      },
    };
    observing.traces.begin(this.session, connection);
    observing.sessions.begin(this.session, connection, serverId);
  }

  get #events(): Observing['events'] {
    return this.#observing.events;
  }

  /** The CONNECT names this partner, whether it is accepted or not. */
  named(partner: PartnerRow, indication: ConnectIndication): void {
    this.#named = partner.partner_id;
    this.#observing.traces.named(this.session, partner, indication, this.#where);
  }

  /** The partner is let in: what is told from now on names it. */
  proven(partner: PartnerRow): void {
    this.#partner = partner;
    this.#facts = { ...this.#facts, partner: partner.partner_id };
  }

  opened(indication: ConnectIndication, { security }: Pick<ServerConnection, 'security'>): void {
    const seen = seenIn(indication, this.#where);
    this.seen(seen);
    const { dialect, freeMessage } = seen;
    const said = freeMessage === null ? {} : { freeMessage };
    const facts = { dialect, ...said, ...securityFacts(security) };
    this.#events.publish(SESSION_OPENED, { session: this.session, facts });
    for (const text of this.#tolerated.splice(0)) this.tolerated(text);
  }

  refused(error: unknown, facts: Facts = {}): void {
    const { diagnostic } = failureOf(error);
    const about = { session: this.session, diagnostic, error, named: this.#named, facts };
    this.#events.publish(SESSION_REFUSED, about);
  }

  tolerated(text: string): void {
    if (this.#partner === undefined) this.#tolerated.push(text);
    else this.#events.publish(SESSION_TOLERATED, { session: this.session, text });
  }

  failed(error: unknown): void {
    this.#events.publish(SESSION_FAILED, { session: this.session, error });
  }

  revoked(transfer: ObservedTransfer | undefined, error: PesitError): void {
    this.#events.publish(SESSION_REVOKED, { session: this.session, transfer, error });
  }

  ended(opened: boolean, error: PesitError | undefined): void {
    this.#partner = undefined;
    this.#events.publish(SESSION_ENDED, { session: this.session, opened, error });
  }

  /** @param maxEntitySize PI 25 of its CREATE or SELECT: told once a session, as most partners ask for the same in each */
  fileBegan(transfer: FileTransfer, maxEntitySize: number): void {
    const { seen } = this.#partner ?? {};
    if ((this.#maxEntitySize ?? seen?.maxEntitySize) !== maxEntitySize) this.seen({ maxEntitySize });
    this.#maxEntitySize = maxEntitySize;
    const facts = { filename: transfer.name };
    this.#events.publish(TRANSFER_BEGAN, { session: this.session, transfer, facts });
  }

  /** @returns the point from which it continues */
  fileWentOn(transfer: ObservedTransfer, { from, attempt, facts }: Beginning): SyncPoint {
    const about = { session: this.session, transfer, attempt, facts };
    const figures = { dataBytes: from.dataBytes, syncPoint: from.number };
    this.#events.publish(TRANSFER_WENT_ON, { ...about, from: figures });
    return from;
  }

  point(transfer: ObservedTransfer, point: SyncPoint, waitedMs: number | undefined): void {
    this.#events.publish(TRANSFER_POINT, { transfer, point, waitedMs });
  }

  remarked(id: ObservedTransfer['id'], at: FpduName, complement: Buffer): void {
    this.#events.publish(TRANSFER_REMARKED, { session: this.session, id, at, complement });
  }

  fileConfirmed(transfer: ObservedTransfer, waitedMs: number): void {
    this.#events.publish(TRANSFER_CONFIRMED, { transfer, waitedMs });
  }

  fileEnded(transfer: FileTransfer, status: EndStatus, error: PesitError | undefined, facts: Facts): void {
    this.#events.publish(TRANSFER_ENDED, {
      ...{ session: this.session, transfer, status, diagnostic: error?.diagnostic, error },
      facts: { filename: transfer.name, ...facts },
    });
  }

  /** Resolves when the history has it, where it takes it. */
  async fileRefused(
    proven: ProvenPartner,
    direction: Direction,
    parameters: Parameters,
    error: unknown,
  ): Promise<void> {
    const start = startOf(proven, direction, parameters);
    const failure = failureOf(error);
    const { kind, written } = this.#journal.refused(start, failure);
    const further = kind === 'counting' ? { further: 'more of the same are counted in the history alone' } : {};
    const facts = { direction, virtualFile: start.virtualFileId, ...further };
    const counted = kind === 'counted';
    this.#transferRefused(proven, { type: 'FILE', direction, error, ...failure, counted, facts });
    await written;
  }

  messageTaken({ partner }: ProvenPartner, id: ObservedTransfer['id'], bytes: number): void {
    const { partner_id: peer } = partner;
    const transfer: ObservedTransfer = { id, type: 'MESSAGE', direction: 'RECEIVE', peer, progress: nothing };
    const about = { session: this.session, transfer, facts: { bytes } };
    this.#events.publish(TRANSFER_BEGAN, about);
    this.#events.publish(TRANSFER_ENDED, { ...about, status: 'COMPLETED', diagnostic: undefined });
  }

  messageRefused(proven: ProvenPartner, error: unknown): void {
    const { status, diagnostic } = failureOf(error);
    const about = { type: 'MESSAGE', direction: 'RECEIVE', status, diagnostic, counted: false, facts: {} } as const;
    this.#transferRefused(proven, { ...about, error });
  }

  /** The partner has shown this of itself: it is remembered. */
  seen(seen: PartnerSeen): void {
    if (this.#partner === undefined) return;
    this.#events.publish(PARTNER_SEEN, { partnerId: this.#partner.partner_id, seen });
  }

  #transferRefused({ partner }: ProvenPartner, about: Refused): void {
    const { type, direction, status, diagnostic, error, counted, facts } = about;
    const peer = partner.partner_id;
    const refused = { session: this.session, type, direction, peer, status, diagnostic, error, counted, facts };
    this.#events.publish(TRANSFER_REFUSED, refused);
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
