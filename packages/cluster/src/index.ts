/**
 * How the pods of a node work together (design §4, Cluster).
 *
 * `createCluster` gives an app three things. `members`: every process on a PostgreSQL has a row with a lease, and all see the
 * same list, oldest first; with the embedded database a pod is alone. `events`: hints from pod to pod that something in the
 * database has changed (`ClusterEvents`), through Redis pub/sub, through LISTEN and NOTIFY of PostgreSQL where there is no Redis, or
 * in the process alone without `cluster.enabled`. `memory`: a few texts in Redis that are not lost with the database.
 *
 * The database is the truth, and everyone looks there every few seconds; an event only makes it sooner. So nothing is lost with
 * an event, and when Redis goes, or the connection that listens, the pods keep working.
 *
 * `LeaderLease` says which pod does what must be done once: by a lease in Redis (`redisLease`), or in PostgreSQL where there is
 * no Redis (`databaseLease`), both held by `TimedLeader`; `SingleLeader` where nobody shares the work. Each term has an epoch in
 * PostgreSQL, and `fenced` refuses what a leader writes that was late.
 */
export { createCluster } from './cluster.js';
export type { Cluster, ClusterOptions } from './cluster.js';
export { DatabaseEvents } from './database-events.js';
export type { DatabaseEventsOptions } from './database-events.js';
export { DatabaseMembers } from './database-members.js';
export type { DatabaseMembersOptions } from './database-members.js';
export { TOPICS } from './events.js';
export type { ClusterEvents, Topic, TopicListener } from './events.js';
export { databaseLease } from './leader/database-leader.js';
export { databaseFence, fenced, NotLeaderError } from './leader/fence.js';
export type { Fence, Seat } from './leader/fence.js';
export type { LeaderEvents, LeaderLease, LeaseBackend } from './leader/leader-lease.js';
export { leaseKey, redisLease } from './leader/redis-leader.js';
export type { LeaseKey } from './leader/redis-leader.js';
export { SingleLeader } from './leader/single-leader.js';
export { TimedLeader } from './leader/timed-leader.js';
export type { TimedLeaderOptions } from './leader/timed-leader.js';
export { LocalBus } from './local-events.js';
export type {
  ClusterUsage,
  LivingPod,
  Members,
  MembersEvents,
  MembersView,
  PodFacts,
  PodIdentity,
  RosterPod,
} from './members.js';
export { PodRequests } from './pod-requests.js';
export type { PodAnswer } from './pod-requests.js';
export { redisMemory } from './memory.js';
export type { SharedMemory } from './memory.js';
export { CLUSTER_MIGRATIONS } from './migrations/index.js';
export { RedisEvents } from './redis-events.js';
export { RedisLink } from './redis-link.js';
export { redisAt } from './redis-server.js';
export { clusterRoutes } from './routes.js';
export { SingleMember } from './single-member.js';
export type { ClusterOverview, ClusterStatus, RedisState, StatusMember } from './status.js';
export { DatabaseVolumeMarks } from './volume-marks.js';
export type { VolumeMark } from './volume-marks.js';
