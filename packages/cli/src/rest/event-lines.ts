/** A server-sent event. */
export interface ReadEvent {
  /** '' when it has none. */
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
}

/** An event is a record of a history, or figures of those that run: longer is no service of ours. */
const LONGEST = 16 * 1024 * 1024;

/** The events of a stream (WHATWG HTML §9.2.6), as far as our services send them. @throws Error for one that is too long */
export async function* readEvents(chunks: AsyncIterable<Buffer>): AsyncGenerator<ReadEvent> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
    rest = blocks.pop() ?? '';
    if (rest.length > LONGEST) throw new Error('an event of the service is too long');
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map((line): [string, string] => {
          const colon = line.indexOf(':');
          return [line.slice(0, Math.max(0, colon)), line.slice(colon + 1).replace(/^ /, '')];
        }),
      );
      const data = fields.get('data');
      if (data === undefined) continue;
      yield { id: fields.get('id') ?? '', event: fields.get('event') ?? 'message', data: JSON.parse(data) as unknown };
    }
  }
}
