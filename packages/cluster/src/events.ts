/** Topics of events between pods. Each means: look at the database, something of this kind has changed there. */
export const TOPICS = [
  'certificates',
  'leadership',
  'license',
  'listeners',
  'members',
  'partners',
  'queue',
  'requests',
  'sessions',
  'transfers',
] as const;
export type Topic = (typeof TOPICS)[number];

export const isTopic = (text: string): text is Topic => (TOPICS as readonly string[]).includes(text);

/** A listener may be asked to look although nothing has changed, and never learns what has. It may be asynchronous. */
export type TopicListener = () => void | Promise<void>;

/**
 * Events between the pods of a cluster: hints without content, at most once. The database holds the truth, and everyone
 * looks there from time to time anyway; an event only makes it look sooner. So a lost event costs seconds and a forged one
 * a query.
 */
export interface ClusterEvents {
  /** Tells all other pods of this cluster, of both apps. Returns at once and never fails. */
  tell(topic: Topic): void;
  /**
   * Calls the listener when another pod tells, and once when events may have been missed (a connection is there, or there
   * again). Never twice at a time: what comes while it is busy makes one more call.
   * @returns ends the subscription
   */
  subscribe(topic: Topic, listener: TopicListener): () => void;
  /** Nothing is told or heard from now on. */
  close(): Promise<void>;
}
