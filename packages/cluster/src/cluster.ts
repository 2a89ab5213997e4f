import { randomUUID } from 'node:crypto';

import type { CommonConfig, Database, Logger, PeriodicWork } from '@pesit-node/service';
import type { Knex } from 'knex';

import { DatabaseEvents } from './database-events.js';
import { DatabaseMembers } from './database-members.js';
import type { ClusterEvents } from './events.js';
import { databaseLease } from './leader/database-leader.js';
import { databaseFence, fenced } from './leader/fence.js';
import type { LeaderLease, LeaseBackend } from './leader/leader-lease.js';
import { leaseKey, redisLease } from './leader/redis-leader.js';
import { SingleLeader } from './leader/single-leader.js';
import { TimedLeader } from './leader/timed-leader.js';
import { NO_FACTS } from './members.js';
import { LocalBus } from './local-events.js';
import type { Members, PodFacts, PodIdentity } from './members.js';
import { redisMemory } from './memory.js';
import type { SharedMemory } from './memory.js';
import { PodRequests } from './pod-requests.js';
import { RedisEvents } from './redis-events.js';
import { RedisLink } from './redis-link.js';
import { redisServer } from './redis-server.js';
import type { RedisConfig } from './redis-server.js';
import { SingleMember } from './single-member.js';
import { DatabaseVolumeMarks } from './volume-marks.js';
import { clusterOverview, clusterStatus } from './status.js';
import type { ClusterOverview, ClusterStatus, StatusSources } from './status.js';

export interface ClusterOptions {
  readonly config: RedisConfig & Pick<CommonConfig, 'cluster.name'>;
  readonly database: Database;
  /** Runs the renewals of the membership and the election, once it is started. */
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: Logger;
  readonly app: PodIdentity['app'];
  readonly name: string;
  /** Default `default`. */
  readonly namespace?: string | undefined;
  /** See `TimedLeaderOptions.isFit`. */
  readonly isFit?: (() => boolean) | undefined;
  /** Facts of this pod for the others, and the status. Default: none. */
  readonly facts?: () => Promise<PodFacts>;
}

/** The cluster as an app sees it. */
export interface Cluster {
  readonly pod: PodIdentity;
  readonly members: Members;
  /** Questions to the other pods of this app. */
  readonly requests: PodRequests;
  readonly events: ClusterEvents;
  /** Which pod of this app does what must be done once: this one, where it stands alone. */
  readonly leader: LeaderLease;
  /**
   * Writes as the leader, in a transaction that no other leader's can overlap: see `fenced`.
   * @throws {NotLeaderError} when this pod does not lead, or no longer.
   */
  readonly asLeader: <T>(work: (trx: Knex.Transaction) => Promise<T>) => Promise<T>;
  /** Where there is a Redis. */
  readonly memory: SharedMemory | undefined;
  /** Marks of the directories that the pods share. */
  readonly volumeMarks: DatabaseVolumeMarks;
  /** Undefined where there is no Redis. */
  readonly redisConnected: boolean | undefined;
  /** @throws when the database cannot be asked. */
  status(): Promise<ClusterStatus>;
  /** The pods of both apps. @throws when the database cannot be asked. */
  overview(): Promise<ClusterOverview>;
  /** Gives place and leadership to the next pod, as far as that takes no longer than 2 seconds. Never rejects. */
  leave(): Promise<void>;
  /** Leaves, and closes the connections to Redis, or the one that listens to PostgreSQL. */
  stop(): Promise<void>;
}

/**
 * The cluster that the configuration asks for. Pods count as members wherever they share a PostgreSQL, enabled or not; Redis
 * is used when `cluster.enabled`, and a leader is elected then. Begins at once to connect to Redis, or without one to listen to
 * PostgreSQL, and asks nothing else of the database before `members.start` and `leader.start`.
 */
export const createCluster = ({
  config,
  database,
  periodic,
  logger,
  app,
  name,
  namespace = 'default',
  isFit,
  facts = () => Promise.resolve(NO_FACTS),
}: ClusterOptions): Cluster => {
  const pod: PodIdentity = { app, cluster: config['cluster.name'], namespace, name, instance: randomUUID() };
  const server = redisServer(config);
  const link = server === undefined ? undefined : new RedisLink(server, logger);
  const watch = link?.watch(periodic);
  const events = eventsOf({ config, database, periodic, logger }, pod, link);
  const members =
    database.mode === 'embedded'
      ? new SingleMember(pod)
      : new DatabaseMembers({ knex: database.knex, pod, events, periodic, logger, facts });
  const startedAt = new Date();
  const leader = leaderOf({ config, database, periodic, logger, isFit }, { pod, events, link });
  const sources: StatusSources = {
    ...{ enabled: config['cluster.enabled'], pod, members, leader, facts, startedAt },
    redis: () => (link === undefined ? null : { connected: link.connected, since: link.since }),
    otherHolder: (other) => leaseOf(database.knex, { ...pod, app: other }, link).holder(),
  };
  const leave = async (): Promise<void> => {
    await Promise.all([leader.stop(), members.leave()]);
  };
  const requests = new PodRequests({
    ...{ knex: database.knex, instance: pod.instance, events, periodic, logger },
    others: () => (members.view?.pods ?? []).filter(({ instance }) => instance !== pod.instance),
    isAlone: database.mode === 'embedded',
  });
  return {
    pod,
    members,
    requests,
    events,
    leader,
    asLeader: (work) =>
      leader instanceof SingleLeader ? database.knex.transaction(work) : fenced(database.knex, pod, leader.epoch, work),
    leave,
    status: () => clusterStatus(sources),
    overview: () => clusterOverview(sources),
    volumeMarks: new DatabaseVolumeMarks(database.knex, pod),
    memory: link === undefined ? undefined : redisMemory(link),
    get redisConnected() {
      return link?.connected;
    },
    stop: async () => {
      await leave();
      await events.close();
      link?.close();
      await watch?.remove();
    },
  };
};

const eventsOf = (
  { config, database, periodic, logger }: Pick<ClusterOptions, 'config' | 'database' | 'periodic' | 'logger'>,
  { cluster, instance }: PodIdentity,
  link: RedisLink | undefined,
): ClusterEvents => {
  if (link !== undefined) return new RedisEvents(link, cluster, instance);
  if (database.mode === 'embedded' || !config['cluster.enabled']) return new LocalBus().join();
  return new DatabaseEvents({ database, cluster, instance, periodic, logger });
};

interface Grounds {
  readonly pod: PodIdentity;
  readonly events: ClusterEvents;
  readonly link: RedisLink | undefined;
}

/** Without `cluster.enabled` a node is taken to be alone, and needs no lease. */
const leaderOf = (
  {
    config,
    database,
    periodic,
    logger,
    isFit,
  }: Pick<ClusterOptions, 'config' | 'database' | 'periodic' | 'logger' | 'isFit'>,
  { pod, events, link }: Grounds,
): LeaderLease => {
  if (database.mode === 'embedded' || !config['cluster.enabled']) return new SingleLeader(pod.instance);
  return new TimedLeader({ backend: leaseOf(database.knex, pod, link), events, periodic, logger, isFit });
};

const leaseOf = (knex: Knex, pod: PodIdentity, link: RedisLink | undefined): LeaseBackend =>
  link === undefined
    ? databaseLease(knex, pod)
    : redisLease(leaseKey(link, pod), databaseFence(knex, pod), pod.instance);
