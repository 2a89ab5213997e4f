/**
 * The collaborators of the exchange room, in four parts. A function takes the part that it needs, or names what it needs of one;
 * a new collaborator belongs in the part whose sentence it fits. Each part has the keys of the configuration that it
 * goes by; they are looked up each time, for SIGHUP changes some of them.
 */
import type { Admission } from '@pesit-node/license';
import type { Rates } from '@pesit-node/net';
import type { ChangeAudit, Config, EventStream } from '@pesit-node/service';
import type { FileStores, SpaceReserve, VolumeWatch } from '@pesit-node/storage';

import type { ListenerTls } from '../certificates/listener-tls.js';
import type { Directories } from '../files/directories.js';
import type { PartnerStore } from '../partners/store.js';
import type { PartnerTraces } from '../traces/partner-traces.js';
import type { TransferContexts } from '../transfers/contexts.js';
import type { Instances } from '../transfers/instances.js';
import type { TransferJournal } from '../transfers/journal.js';
import type { SentPoints } from '../transfers/sent-points.js';
import type { SessionsHere } from '../sessions/sessions-here.js';
import type { Turns } from '../turns.js';
import type { VirtualFileStore } from '../virtual-files/store.js';
import type { OpenSessions } from '../admission/open-sessions.js';
import type { PartnerPasswords } from '../admission/partner-passwords.js';
import type { SessionPlaces } from '../admission/session-places.js';
import type { Quotas } from '../admission/quotas.js';
import type { Restarts } from '../recovery/restarts.js';
import type { RunningTransfers } from '../recovery/running-transfers.js';
import type { UnansweredRequests } from '../recovery/unanswered.js';
import type { Trials } from '../trials/trials.js';

/** Who may come in, and who is in. */
export interface Admitting {
  readonly config: Pick<Config<'server'>, 'access.default' | 'partner.max-connections' | 'password.min-length'>;
  readonly partners: PartnerStore;
  readonly passwords: PartnerPasswords;
  /** Whether this pod takes sessions at all. */
  readonly admission: Pick<Admission, 'refusal'>;
  readonly places: SessionPlaces;
  readonly sessions: OpenSessions;
  readonly trials: Trials;
  readonly audit: Pick<ChangeAudit, 'entry'>;
}

/** The records of each transfer, so that it ends once, and continues where it was interrupted. */
export interface Records {
  readonly journal: TransferJournal;
  readonly contexts: TransferContexts;
  /** Since when the transfers of this process are certainly its own. */
  readonly lease: Pick<Instances, 'term'>;
  readonly sentPoints: SentPoints;
  readonly restarts: Restarts;
  readonly running: RunningTransfers;
  readonly unanswered: UnansweredRequests;
}

/** Which files partners may write and read, where they lie, how much may lie there, and how fast it may come and go. */
export interface Files {
  readonly config: Pick<
    Config<'server'>,
    | 'access.default'
    | 'transfer.max-entity-size'
    | 'transfer.read-buffer-size'
    | 'transfer.write-buffer-size'
    | 'transfer.checksum'
    | 'transfer.durability'
  >;
  readonly virtualFiles: VirtualFileStore;
  readonly directories: Directories;
  /** Where files lie that are sent and received. */
  readonly stores: FileStores;
  readonly reserve: SpaceReserve;
  /** Whether files can be taken and sent here at all. */
  readonly volumes: Pick<VolumeWatch, 'fault'>;
  readonly quotas: Quotas;
  readonly rates: Rates;
  /** Files that are being read now, `partner NUL path`: nobody is offered the same file twice at a time. */
  readonly outgoing: Set<string>;
  /** By partner: looking for the next file to send. */
  readonly looks: Turns;
}

/** Who hears what happens. */
export interface Observing {
  readonly events: EventStream;
  readonly traces: PartnerTraces;
  readonly sessions: SessionsHere;
}

/** All four, and what listeners and sessions go by before there is a file. */
export interface ExchangeParts {
  readonly config: Pick<
    Config<'server'>,
    | 'listener.host'
    | 'transfer.sync-points-enabled'
    | 'transfer.sync-point-interval'
    | 'transfer.sync-window'
    | 'transfer.write-timeout'
    | 'transfer.chunk-size'
    | 'transfer.read-buffer-size'
    | 'transfer.socket-buffer-size'
  >;
  /** The terms that listeners bring to their handshakes. */
  readonly tls: Pick<ListenerTls, 'terms' | 'revoked'>;
  readonly admitting: Admitting;
  readonly records: Records;
  readonly files: Files;
  readonly observing: Observing;
}

/** Collaborators that a file in either direction needs: where it lies, and what is known of it. */
export type FileParts = Pick<ExchangeParts, 'files' | 'records'>;
