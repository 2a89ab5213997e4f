import type { FoundationOptions } from '@pesit-node/license';
import type { Config, PasswordHasher, PasswordVerifier } from '@pesit-node/service';
import type { FileOperations, FileStores } from '@pesit-node/storage';

/** The outside of a node, and the times that tests shorten. */
export interface NodeOptions extends Omit<FoundationOptions<'server'>, 'app' | 'migrations' | 'sessions'> {
  readonly config: Config<'server'>;
  /** Makes the hashes of partners' passwords. Default: under `secrets`, at the cost of today. */
  readonly passwords?: PasswordHasher;
  /** Default: one of its own, over `passwords`. */
  readonly verifier?: PasswordVerifier;
  /** See `JournalOptions`. */
  readonly patienceMs?: number;
  /** Between two writes of the figures of running transfers, milliseconds. Default 2000. */
  readonly progressMs?: number;
  /** See `TracesOptions.gatherMs`. */
  readonly traceGatherMs?: number;
  /** How long running transfers may continue when a listener stops, milliseconds. Default: `shutdown.drain-timeout`. */
  readonly drainMs?: number;
  /** See `ListenersHereOptions`. Default 3000 with `cluster.enabled`, else 0. */
  readonly answerMs?: number;
  /** Bytes that are free on the volume of a directory. Default: as the operating system says. */
  readonly freeSpace?: (directory: string) => Promise<number>;
  /** See `DelivererOptions.lookMs`. */
  readonly hookLookMs?: number;
  /** See `DeclaredObjectsOptions.retryMs`. */
  readonly declaredRetryMs?: number;
  /** See `LiveTransfersOptions`. */
  readonly liveTickMs?: number;
  readonly heartbeatMs?: number;
  /** Between two looks at listeners that failed, milliseconds. Default 1000. */
  readonly listenerRetryMs?: number;
  /** Between two looks at the places of sessions that other pods want, milliseconds. Default 5000. */
  readonly placeLookMs?: number;
  /** Between two looks at what is wanted of the listeners, milliseconds. Default 5000. */
  readonly listenerLookMs?: number;
  /** Between two looks at the partners of open sessions, milliseconds. Default 5000. */
  readonly partnerLookMs?: number;
  /** See `CertificatesOptions.lookMs`. */
  readonly storeLookMs?: number;
  /** The clocks that keys of session tickets go by, milliseconds: `TicketKeysOptions.now`, and that of the database. Default: the real ones. */
  readonly ticketTime?: { readonly pod: () => number; readonly database: () => Promise<number> };
  /** See `InstancesOptions`. */
  readonly leaseMs?: number;
  /** Between two looks at the volumes, milliseconds. Default 5000. */
  readonly volumeLookMs?: number;
  /** By which files the volumes are looked at. Default: the real file system. */
  readonly volumeFiles?: FileOperations;
  /** See `RestartsOptions`. Default: a fifth longer than a lease. */
  readonly restartWaitMs?: number;
  /** Where files lie that are sent and received. Default: the local disk. */
  readonly stores?: FileStores;
}
