import { randomUUID } from 'node:crypto';

import type { CommonConfig, Database, Logger, PeriodicWork } from '@pesit-node/service';

import { DatabaseMembers } from './database-members.js';
import type { ClusterEvents } from './events.js';
import { LocalBus } from './local-events.js';
import type { Members, PodIdentity } from './members.js';
import { redisMemory } from './memory.js';
import type { SharedMemory } from './memory.js';
import { RedisEvents } from './redis-events.js';
import { RedisLink } from './redis-link.js';
import { SingleMember } from './single-member.js';

export interface ClusterOptions {
  readonly config: Pick<CommonConfig, 'cluster.enabled' | 'cluster.name' | 'redis.url'>;
  readonly database: Database;
  /** Runs the renewals of the membership, once it is started. */
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: Logger;
  readonly app: PodIdentity['app'];
  readonly name: string;
  /** Default `default`. */
  readonly namespace?: string | undefined;
}

/** The cluster as an app sees it. */
export interface Cluster {
  readonly pod: PodIdentity;
  readonly members: Members;
  readonly events: ClusterEvents;
  /** Where there is a Redis. */
  readonly memory: SharedMemory | undefined;
  /** Undefined where there is no Redis. */
  readonly redisConnected: boolean | undefined;
  /** Gives the place back and closes the connections to Redis. */
  stop(): Promise<void>;
}

/**
 * The cluster that the configuration asks for. Pods count as members wherever they share a PostgreSQL, enabled or not; Redis
 * is used when `cluster.enabled`. Begins to connect to Redis at once, and asks nothing of the database before `members.start`.
 */
export const createCluster = ({
  config,
  database,
  periodic,
  logger,
  app,
  name,
  namespace = 'default',
}: ClusterOptions): Cluster => {
  const pod: PodIdentity = { app, cluster: config['cluster.name'], namespace, name, instance: randomUUID() };
  const url = config['cluster.enabled'] ? config['redis.url'] : '';
  const link = url === '' ? undefined : new RedisLink(url, logger);
  const events = link === undefined ? new LocalBus().join() : new RedisEvents(link, pod.cluster, pod.instance);
  const members =
    database.mode === 'embedded'
      ? new SingleMember(pod)
      : new DatabaseMembers({ knex: database.knex, pod, events, periodic, logger });
  return {
    pod,
    members,
    events,
    memory: link === undefined ? undefined : redisMemory(link),
    get redisConnected() {
      return link?.connected;
    },
    stop: async () => {
      await members.leave();
      await events.close();
      link?.close();
    },
  };
};
