import type { Config } from '@pesit-node/service';
import type { ChecksumKind, Durability } from '@pesit-node/storage';
import type { RetryPolicy } from '@pesit-node/transfers';

import type { CircuitPolicy } from '../remote-servers/circuit-store.js';

/** `spool.*`: how long the content of a request outlives its transfer, milliseconds. */
export interface SpoolRetention {
  readonly completed: number;
  readonly failed: number;
}

/** Settings that the exchange takes from the configuration; milliseconds, bytes, and KB of 1,024 bytes for the sync interval. */
export interface ExchangeSettings {
  readonly maxEntitySize: number;
  readonly syncPointsEnabled: boolean;
  readonly syncInterval: number;
  readonly syncWindow: number;
  readonly connectTimeout: number;
  readonly readTimeout: number;
  readonly writeTimeout: number;
  /** Bytes of a burst, of a read and of a write of a file, and of what a socket is given or read from at a time. */
  readonly chunkSize: number;
  readonly readBufferSize: number;
  readonly writeBufferSize: number;
  readonly socketBufferSize: number;
  readonly checksum: ChecksumKind;
  /** Durability of received files. */
  readonly durability: Durability;
  /** How long staged data are kept after they were last written. */
  readonly stagingRetention: number;
  readonly spoolRetention: SpoolRetention;
  readonly retry: RetryPolicy;
  /** `executor.*`: transfers at a time, and at a time when the queue is full; transfers that wait. */
  readonly corePoolSize: number;
  readonly maxPoolSize: number;
  readonly queueCapacity: number;
  /** `transfer.ordered.after-failure`: an ordered one that FAILED keeps those behind it waiting. */
  readonly holdsOrder: boolean;
  readonly circuit: CircuitPolicy;
  /** `connection.pool.*`: sessions with one remote server; how long an idle one is kept, 0 = not at all. */
  readonly maxConnectionsPerHost: number;
  readonly idleTimeout: number;
}

const DAY_MS = 86_400_000;

/** Looked up each time, as some of them may change while the service runs. */
export const exchangeSettings = (config: Config<'client'>): ExchangeSettings => ({
  get maxEntitySize() {
    return config['transfer.max-entity-size'];
  },
  get syncPointsEnabled() {
    return config['transfer.sync-points-enabled'];
  },
  get syncInterval() {
    return config['transfer.sync-point-interval'];
  },
  get syncWindow() {
    return config['transfer.sync-window'];
  },
  get connectTimeout() {
    return config['transfer.connection-timeout'];
  },
  get readTimeout() {
    return config['transfer.read-timeout'];
  },
  get writeTimeout() {
    return config['transfer.write-timeout'];
  },
  get chunkSize() {
    return config['transfer.chunk-size'];
  },
  get readBufferSize() {
    return config['transfer.read-buffer-size'];
  },
  get writeBufferSize() {
    return config['transfer.write-buffer-size'];
  },
  get socketBufferSize() {
    return config['transfer.socket-buffer-size'];
  },
  get checksum() {
    return config['transfer.checksum'];
  },
  get durability() {
    return config['transfer.durability'];
  },
  get stagingRetention() {
    return config['transfer.staging-retention'] * DAY_MS;
  },
  get spoolRetention() {
    return {
      completed: config['spool.retention'] * DAY_MS,
      failed: config['spool.retention-failed'] * DAY_MS,
    };
  },
  get retry() {
    return {
      attempts: config['transfer.retry.attempts'],
      initialDelay: config['transfer.retry.initial-delay'],
      maxDelay: config['transfer.retry.max-delay'],
      multiplier: config['transfer.retry.multiplier'],
      jitter: config['transfer.retry.jitter'],
    };
  },
  get corePoolSize() {
    return config['transfer.executor.core-pool-size'];
  },
  get maxPoolSize() {
    return config['transfer.executor.max-pool-size'];
  },
  get queueCapacity() {
    return config['transfer.executor.queue-capacity'];
  },
  get holdsOrder() {
    return config['transfer.ordered.after-failure'] === 'hold';
  },
  get circuit() {
    return {
      failures: config['transfer.circuit.failures'],
      initialDelay: config['transfer.circuit.initial-delay'],
      maxDelay: config['transfer.circuit.max-delay'],
    };
  },
  get maxConnectionsPerHost() {
    return config['transfer.connection.pool.max-connections-per-host'];
  },
  get idleTimeout() {
    return config['transfer.connection.pool.idle-timeout'];
  },
});
