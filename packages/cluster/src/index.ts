/**
 * What the pods of a node have to do with each other (design §4, Cluster).
 */
export { TOPICS } from './events.js';
export type { ClusterEvents, Topic, TopicListener } from './events.js';
