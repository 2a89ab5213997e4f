import type { Admission } from '@pesit-node/license';
import type { ServerConnection } from '@pesit-node/net';
import type { Config, EventStream, Logger } from '@pesit-node/service';
import { keptBytes } from '@pesit-node/protocol';
import type { Parameters } from '@pesit-node/protocol';
import type { FileStores, SpaceReserve } from '@pesit-node/storage';

import type { Directories } from '../directories.js';
import type { ListenerRow } from '../listeners/fields.js';
import type { PartnerRow, PartnerStanding } from '../partners/fields.js';
import type { PartnerStore } from '../partners/store.js';
import type { PartnerTraces } from '../traces/partner-traces.js';
import type { TransferContexts } from '../transfers/contexts.js';
import type { Instances } from '../transfers/instances.js';
import type { TransferJournal } from '../transfers/journal.js';
import type { TransferStart } from '../transfers/record.js';
import type { TransferDirection } from '../transfers/schema.js';
import type { SentPoints } from '../transfers/sent-points.js';
import type { Turns } from '../turns.js';
import type { VirtualFileStore } from '../virtual-files/store.js';
import { askedFile, readable } from './names.js';
import type { OpenSessions } from './open-sessions.js';
import type { PartnerPasswords } from './partner-passwords.js';
import type { PartnerPlaces } from './partner-places.js';
import type { Quotas } from './quotas.js';
import type { Restarts } from './restarts.js';
import type { RunningTransfers } from './running-transfers.js';
import type { UnansweredRequests } from './unanswered.js';

/** What every session works with. */
export interface ExchangeContext {
  readonly config: Pick<
    Config<'server'>,
    | 'access.default'
    | 'transfer.max-entity-size'
    | 'transfer.sync-points-enabled'
    | 'transfer.sync-point-interval'
    | 'transfer.sync-window'
    | 'transfer.write-timeout'
    | 'transfer.chunk-size'
    | 'transfer.read-buffer-size'
    | 'transfer.write-buffer-size'
    | 'transfer.socket-buffer-size'
    | 'partner.max-connections'
    | 'transfer.checksum'
    | 'transfer.durability'
  >;
  readonly partners: PartnerStore;
  readonly virtualFiles: VirtualFileStore;
  readonly journal: TransferJournal;
  readonly contexts: TransferContexts;
  readonly lease: Pick<Instances, 'isCurrent'>;
  readonly sentPoints: SentPoints;
  readonly restarts: Restarts;
  readonly directories: Directories;
  readonly reserve: SpaceReserve;
  readonly quotas: Quotas;
  readonly passwords: PartnerPasswords;
  readonly admission: Pick<Admission, 'refusal'>;
  readonly places: PartnerPlaces;
  readonly running: RunningTransfers;
  readonly sessions: OpenSessions;
  readonly traces: PartnerTraces;
  readonly events: EventStream;
  readonly unanswered: UnansweredRequests;
  /** Files that are being read now, `partner NUL path`: nobody is offered the same file twice at a time. */
  readonly outgoing: Set<string>;
  /** Where files lie that are sent and received. */
  readonly stores: FileStores;
  /** By partner: looking for the next file to send. */
  readonly looks: Turns;
  readonly logger: Logger;
}

/** A session whose partner is known. */
export interface PartnerContext extends ExchangeContext {
  /** As it was when the session began. */
  readonly listener: ListenerRow;
  readonly partner: PartnerRow;
  readonly session: Pick<ServerConnection, 'id' | 'remoteAddress' | 'terms' | 'fileTerms' | 'totals'>;
  /**
   * To be called with the partner as it is now, wherever that was read.
   * @throws PesitError 3-304 or 3-322 when the session has to end for what has changed
   */
  readonly stands: (now: PartnerStanding | undefined) => PartnerStanding;
  /** With session, listener and partner on every line. */
  readonly logger: Logger;
}

/** The record of a request, from its parameters; what a peer put there is made readable. */
export const startOf = (
  { partner, listener, session }: PartnerContext,
  direction: TransferDirection,
  parameters: Parameters,
): TransferStart => {
  const label = parameters.logicalAttributes?.fileLabel;
  const creationDate = parameters.historicalAttributes?.creationDate;
  const { originalSender, finalReceiver } = parameters;
  const { fileName = '' } = parameters.fileIdentifier ?? {};
  const { virtualFile, name } = direction === 'SEND' ? askedFile(fileName) : { virtualFile: fileName, name: undefined };
  return {
    partnerId: partner.partner_id,
    direction,
    virtualFileId: readable(virtualFile, 76),
    ...(name === undefined ? {} : { filename: readable(name, 76) }),
    transferId: parameters.transferId ?? 0,
    listener: listener.server_id,
    sessionId: session.id,
    remoteAddress: session.remoteAddress,
    ...(label === undefined ? {} : { label: readable(label, 512) }),
    ...(creationDate === undefined ? {} : { creationDate: readable(creationDate, 12) }),
    ...(parameters.freeMessage === undefined ? {} : { freeMessage: keptBytes(parameters.freeMessage) }),
    ...(originalSender === undefined ? {} : { originalSender: readable(originalSender, 24) }),
    ...(finalReceiver === undefined ? {} : { finalReceiver: readable(finalReceiver, 24) }),
  };
};

/** PI 15. */
export const isRestart = ({ restarted, transferId = 0 }: Parameters): boolean => restarted === 1 && transferId > 0;
