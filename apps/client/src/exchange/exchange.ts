import type { ClusterEvents } from '@pesit-node/cluster';
import { Rates } from '@pesit-node/net';
import type { AsLeader, EventStream, Logger, Metrics, SecretBox, Traces } from '@pesit-node/service';
import { meterTransfers } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import type { RemoteTls } from '../certificates/remote-tls.js';
import type { PlaceStore } from '../remote-servers/place-store.js';
import type { RemoteServerStore } from '../remote-servers/store.js';
import type { SendTree } from '../transfers/send-tree.js';
import { transferStore } from '../transfers/store.js';
import type { TransferStore } from '../transfers/store.js';
import { circuitStore } from '../remote-servers/circuit-store.js';
import { Circuits } from '../sessions/circuits.js';
import { Contacts } from '../sessions/contacts.js';
import { ServerTraces } from '../traces/server-traces.js';
import { meterQueue } from './events.js';
import { logExchange } from './exchange-log.js';
import { Leftovers } from '../queue/leftovers.js';
import type { ReceivedTree } from './received-tree.js';
import { runTransfer } from './run-transfer.js';
import { SessionPlaces } from '../sessions/session-places.js';
import { SessionPool } from '../sessions/session-pool.js';
import type { ExchangeSettings } from './settings.js';
import { testConnection } from '../sessions/test-connection.js';
import { TransferQueue } from '../queue/transfer-queue.js';
import type { TransferQueueOptions } from '../queue/transfer-queue.js';

export interface ExchangeOptions extends Pick<
  TransferQueueOptions,
  'node' | 'mayRun' | 'mayRenew' | 'periodic' | 'pollMs' | 'progressMs' | 'leaseMs'
> {
  readonly metrics: Metrics<'client'>;
  readonly settings: ExchangeSettings;
  readonly secrets: SecretBox;
  readonly tls: RemoteTls;
  readonly transfers: TransferStore;
  readonly servers: RemoteServerStore;
  readonly knex: Knex;
  readonly places: PlaceStore;
  readonly events: EventStream;
  readonly clusterEvents: ClusterEvents;
  /** Makes what the leader alone writes. */
  readonly asLeader: AsLeader;
  /** Between two looks whether a place of this process is wanted, milliseconds. Default 2000. */
  readonly placeLookMs?: number;
  readonly receivedTree: ReceivedTree;
  readonly sendTree: SendTree;
  readonly traces: Traces;
  readonly logger: Logger;
}

/** Before the first session: passwords that were sealed without their destination get it, and nobody has to enter them again. */
const bindPasswords = async (servers: RemoteServerStore, logger: Logger): Promise<void> => {
  const { sealed, unreadable } = await servers.sealAnew({ rotate: false });
  if (sealed > 0) logger.info({ sealed }, 'bound the stored passwords of remote servers to their hosts');
  for (const server of unreadable) {
    logger.warn(
      { server },
      'could not decrypt a password of the remote server: set it again, or add its key to secrets.key',
    );
  }
};

/** The queue, the sessions that it uses, and what is known of the remote servers, tied together. */
export const createExchange = (options: ExchangeOptions) => {
  const { settings, secrets, tls, events, transfers: store, servers, receivedTree, sendTree, traces, logger } = options;
  const contacts = new Contacts(events, servers, logger);
  const serverTraces = new ServerTraces(traces, events);
  logExchange(events, logger);
  meterTransfers(events, options.metrics);
  meterQueue(events, options.metrics);
  const places = new SessionPlaces({
    ...{ store: options.places, events: options.clusterEvents, logger },
    ...{ leaseMs: options.leaseMs, lookMs: options.placeLookMs },
  });
  options.periodic.add(places.task);
  const pool = new SessionPool({ idleTimeout: settings.idleTimeout, places, traces: serverTraces, events });
  const deps = { settings, secrets, tls, pool, receivedTree, sendTree, store, rates: new Rates(), events };
  const queue = new TransferQueue({
    ...options,
    store,
    events,
    run: (job, signal, requireLease) => {
      circuits.began(job);
      const transfer = runTransfer(job, deps, signal, requireLease);
      void transfer.ended.then((end) => circuits.ended(job, end));
      return transfer;
    },
  });
  const circuits = new Circuits({
    ...{ store: circuitStore(options.knex), policy: () => settings.circuit, events, logger },
    closed: () => queue.release(),
  });
  const leftovers = new Leftovers({
    ...{ ...options, store, retention: settings.stagingRetention, spoolRetention: () => settings.spoolRetention },
    asLeader: (work) => options.asLeader((knex) => work(transferStore(knex))),
  });
  let isStopped = false;
  return {
    queue,
    leftovers,
    pool,
    /** To be called whenever the database is ready; begins nothing after `stop`. @throws errors of the database: call it again */
    start: async (): Promise<void> => {
      await bindPasswords(servers, logger);
      await places.start();
      await queue.start();
      if (isStopped) return;
      leftovers.start();
      traces.start();
    },
    test: testConnection({ settings, secrets, tls, pool, contacts, traces: serverTraces, events }),
    closeCircuit: (id: number) => circuits.close(id),
    /** A remote server was changed or removed. */
    serverChanged: (id: number): void => {
      // It may be another one now.
      circuits.forget(id);
      pool.closeIdle(id);
      contacts.forget(id);
      queue.release();
    },
    /** A truststore was changed. @throws errors of the database */
    trustChanged: () => pool.closeRevoked(),
    /** Ends what runs (see `TransferQueue.stop`), then the sessions. */
    stop: async (drainMs: number): Promise<void> => {
      isStopped = true;
      await leftovers.stop();
      await queue.stop(drainMs);
      await pool.stop();
      places.stop();
      await traces.stop();
      await contacts.settled();
      await circuits.settled();
    },
  };
};

export type Exchange = ReturnType<typeof createExchange>;
