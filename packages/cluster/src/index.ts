/**
 * How the pods of a node work together (design §4, Cluster).
 *
 * `createCluster` gives an app three things. `members`: every process on a PostgreSQL has a row with a lease, and all see the
 * same list, oldest first; with the embedded database a pod is alone. `events`: hints from pod to pod that something in the
 * database has changed (`ClusterEvents`), through Redis pub/sub, or in the process alone where there is no Redis. `memory`: a
 * few texts in Redis that are not lost with the database.
 *
 * The database is the truth, and everyone looks there every few seconds; Redis only makes it sooner. So nothing is lost with
 * an event, and when Redis goes the pods keep working. Leadership, which Redis will decide, is to stand beside these three:
 * one more port over `RedisLink`, and one for a single node.
 */
export { createCluster } from './cluster.js';
export type { Cluster, ClusterOptions } from './cluster.js';
export { DatabaseMembers } from './database-members.js';
export type { DatabaseMembersOptions } from './database-members.js';
export { TOPICS } from './events.js';
export type { ClusterEvents, Topic, TopicListener } from './events.js';
export { LocalBus } from './local-events.js';
export type { ClusterUsage, LivingPod, Members, MembersEvents, MembersView, PodIdentity } from './members.js';
export { redisMemory } from './memory.js';
export type { SharedMemory } from './memory.js';
export { CLUSTER_MIGRATIONS } from './migrations/index.js';
export { RedisEvents } from './redis-events.js';
export { RedisLink } from './redis-link.js';
export { SingleMember } from './single-member.js';
