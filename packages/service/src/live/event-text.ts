/** One server-sent event, before it is written (WHATWG HTML §9.2). */
export interface LiveEvent {
  /** Given back as `Last-Event-ID` when its reader comes again; undefined: the id of the one before it stays. */
  readonly id?: string;
  /** Its kind. */
  readonly event: string;
  /** Any value that JSON has. */
  readonly data: unknown;
}

/** The event as it goes over the wire (§9.2.5). JSON has no line break outside its texts, where it is escaped: one `data` line does. */
export const eventText = ({ id, event, data }: LiveEvent): Buffer =>
  Buffer.from(`${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);

/** A line that readers pass over: it shows both sides that the other one is there. */
export const HEARTBEAT = Buffer.from(': heartbeat\n\n');
