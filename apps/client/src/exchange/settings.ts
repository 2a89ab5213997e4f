import type { Config } from '@pesit-node/service';
import type { ChecksumKind, Durability } from '@pesit-node/storage';

import type { RetryPolicy } from './retry.js';

/** What the exchange takes from the configuration; milliseconds, bytes, and KB of 1,024 bytes for the sync interval. */
export interface ExchangeSettings {
  readonly maxEntitySize: number;
  readonly syncPointsEnabled: boolean;
  readonly syncInterval: number;
  readonly syncWindow: number;
  readonly connectTimeout: number;
  readonly readTimeout: number;
  readonly checksum: ChecksumKind;
  /** Of received files. */
  readonly durability: Durability;
  /** What is staged is kept so long after it was last written. */
  readonly stagingRetention: number;
  readonly retry: RetryPolicy;
  /** `executor.*`: transfers at a time, and at a time when the queue is full; transfers that wait. */
  readonly corePoolSize: number;
  readonly maxPoolSize: number;
  readonly queueCapacity: number;
  /** `connection.pool.*`: sessions with one remote server; how long an idle one is kept, 0 = not at all. */
  readonly maxConnectionsPerHost: number;
  readonly idleTimeout: number;
}

const DAY_MS = 86_400_000;

export const exchangeSettings = (config: Config<'client'>): ExchangeSettings => ({
  maxEntitySize: config['transfer.max-entity-size'],
  syncPointsEnabled: config['transfer.sync-points-enabled'],
  syncInterval: config['transfer.sync-point-interval'],
  syncWindow: config['transfer.sync-window'],
  connectTimeout: config['transfer.connection-timeout'],
  readTimeout: config['transfer.read-timeout'],
  checksum: config['transfer.checksum'],
  durability: config['transfer.durability'],
  stagingRetention: config['transfer.staging-retention'] * DAY_MS,
  retry: {
    attempts: config['transfer.retry.attempts'],
    initialDelay: config['transfer.retry.initial-delay'],
    maxDelay: config['transfer.retry.max-delay'],
    multiplier: config['transfer.retry.multiplier'],
    jitter: config['transfer.retry.jitter'],
  },
  corePoolSize: config['transfer.executor.core-pool-size'],
  maxPoolSize: config['transfer.executor.max-pool-size'],
  queueCapacity: config['transfer.executor.queue-capacity'],
  maxConnectionsPerHost: config['transfer.connection.pool.max-connections-per-host'],
  idleTimeout: config['transfer.connection.pool.idle-timeout'],
});
