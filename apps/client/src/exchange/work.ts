import type { PesitRequester, Rates, TransferTotals } from '@pesit-node/net';
import type { PesitError, SyncPoint } from '@pesit-node/protocol';
import type { EventStream, SecretBox } from '@pesit-node/service';

import type { RemoteTls } from '../certificates/remote-tls.js';
import type { Ended } from '../transfers/row.js';
import type { SendTree } from '../transfers/send-tree.js';
import type { TransferStore } from '../transfers/store.js';
import type { ReceivedTree } from './received-tree.js';
import type { SessionPool } from '../sessions/session-pool.js';
import type { ExchangeSettings } from './settings.js';

/** How a transfer ends that went well. */
export interface Completed extends Ended {
  readonly status: 'COMPLETED';
}

/** State of an attempt that stays for the next one; `all` where another process may work on it by now. */
export type Keep = 'nothing' | 'what is of use' | 'all';

/** One direction of a transfer: what the two of them do alike is in `runTransfer`. */
export interface Work {
  /** Moves the file over a session. Called again on another session as long as it was not accepted. */
  run(session: PesitRequester, signal: AbortSignal): Promise<Completed>;
  /** After `run` rejected: makes the file go whole, as a new transfer. @returns false when that would not help */
  startOver(error: PesitError): Promise<boolean>;
  /** The partner has answered the CREATE or SELECT with yes. */
  readonly accepted: boolean;
  /** The partner may know the transfer: the next attempt has to be a restart. */
  readonly restartable: boolean;
  /** The point of earlier attempts from which a file that is read continues; 0 or undefined: from its start. */
  readonly from?: number;
  /** A second attempt does no harm, however the first ended. */
  readonly repeatable: boolean;
  /** Figures while it runs. */
  readonly totals: TransferTotals;
  /** The last point: sent, or stored here. */
  readonly syncPoint: number;
  /** Where this attempt continues; undefined: from the start, or not known yet. */
  readonly startPoint: SyncPoint | undefined;
  /** Bytes that the partner announces for a file that is received. */
  readonly announced?: number | undefined;
  /** Figures that the record should keep when the attempt fails. */
  readonly facts: Pick<
    Ended,
    | 'pesitTransferId'
    | 'syncPoint'
    | 'label'
    | 'freeMessage'
    | 'originalSender'
    | 'finalReceiver'
    | 'creationDate'
    | 'nameConfirmed'
  >;
  /** Gives back what is open. */
  close(keep: Keep): Promise<void>;
  /** The record says that the transfer is over. @param restartable somebody may still ask for a restart */
  cleanUp(restartable: boolean): Promise<void>;
}

export interface TransferDeps {
  readonly settings: ExchangeSettings;
  readonly secrets: SecretBox;
  readonly tls: Pick<RemoteTls, 'connecting' | 'isRevoked'>;
  readonly pool: SessionPool;
  readonly receivedTree: ReceivedTree;
  readonly sendTree: SendTree;
  readonly store: TransferStore;
  readonly rates: Rates;
  readonly events: EventStream;
}
