import { request } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';

/** A server-sent event as it came. */
export interface ReadEvent {
  /** `lastEventId` when it came (WHATWG HTML §9.2.6). */
  readonly id: string;
  readonly event: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each kind carries something else
  readonly data: any;
}

/** Reads events as the WHATWG has them (§9.2.6), apart from what sends them. */
export class TestEventReader {
  readonly events: ReadEvent[] = [];
  status = 0;
  /** Comments: heartbeats. */
  comments = 0;
  /** All that came, as text. */
  text = '';
  #isOver = false;
  #taken = 0;
  #wake: () => void = () => undefined;
  readonly #request: ClientRequest;

  private constructor(asked: ClientRequest) {
    this.#request = asked;
  }

  /** Resolves with the answer: its status, and its events as they come. */
  static open(
    port: number,
    path: string,
    headers: Readonly<Record<string, string>>,
    lastId?: string,
  ): Promise<TestEventReader> {
    return new Promise((resolve, reject) => {
      const given = { ...headers, ...(lastId === undefined ? {} : { 'last-event-id': lastId }) };
      const asked = request({ host: '127.0.0.1', port, path, headers: given, agent: false });
      const reader = new TestEventReader(asked);
      asked.once('error', (error) => {
        reject(error);
        reader.#ended();
      });
      asked.once('response', (response) => {
        reader.#read(response);
        resolve(reader);
      });
      asked.end();
    });
  }

  /** The next event of this kind, others passed over. @throws when the answer ends before it */
  async next(event?: string, accept: (data: ReadEvent['data']) => boolean = () => true): Promise<ReadEvent> {
    for (;;) {
      while (this.#taken < this.events.length) {
        const one = this.events[this.#taken++] as ReadEvent;
        if ((event === undefined || one.event === event) && accept(one.data)) return one;
      }
      if (this.#isOver) throw new Error(`the answer ended before an event ${event ?? ''}: ${this.text}`);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Resolves when the answer is over, whoever ended it. */
  async over(): Promise<void> {
    while (!this.#isOver) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  /** Resolves with the next comment. */
  async comment(): Promise<void> {
    const before = this.comments;
    while (this.comments === before && !this.#isOver) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  close(): void {
    this.#request.destroy();
  }

  #ended(): void {
    this.#isOver = true;
    this.#wake();
  }

  #read(response: IncomingMessage): void {
    this.status = response.statusCode ?? 0;
    let rest = '';
    let id = '';
    let fields = { event: '', data: '' };
    response.setEncoding('utf8');
    response.on('data', (piece: string) => {
      this.text += piece;
      const lines = (rest + piece).split(/\r\n|\n|\r/);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const [name = '', ...more] = line.split(':');
        const value = more.join(':').replace(/^ /, '');
        if (line === '') {
          if (fields.data !== '') {
            this.events.push({ id, event: fields.event || 'message', data: JSON.parse(fields.data) as unknown });
          }
          fields = { event: '', data: '' };
        } else if (name === '') this.comments++;
        else if (name === 'id') id = value;
        else if (name === 'event') fields.event = value;
        else if (name === 'data') fields.data += value;
      }
      this.#wake();
    });
    response.on('error', () => undefined);
    response.on('close', () => this.#ended());
  }
}
