/**
 * Two sessions on a virtual clock: what one puts out, the other takes in, as bytes in random pieces. No socket, no time
 * but `now`. Beside the sessions stand two small applications: a server that takes and serves lists of articles, and the
 * steps of a requester. Everything is synchronous, so a test reads from top to bottom.
 */
import { PesitError, RequesterSession, ServerSession, burstBufferSize } from '../../src/index.js';
import type {
  CompressionOptions,
  ConnectAnswer,
  ConnectRequest,
  CreateRequest,
  DiagnosticCode,
  Dialect,
  FpduName,
  Parameters,
  SelectRequest,
  Session,
  SessionEvent,
  SyncPoint,
  Timers,
} from '../../src/index.js';
import { Collector, START, fill, dissect, entity, Chance } from '../../src/testing/index.js';
import type { Dissected } from '../../src/testing/index.js';

export interface PairOptions {
  readonly dialect?: Dialect;
  readonly crc?: boolean;
  readonly seed?: number;
  /** Longest piece in which bytes travel. */
  readonly longest?: number;
  readonly timers?: Partial<Timers>;
  readonly requesterId?: number;
  readonly serverId?: number;
}

/** How the server of the pair answers. */
export interface ServerBehaviour {
  answer: ConnectAnswer;
  maxEntitySize: number;
  /** PI 21 that the server allows. */
  compression: CompressionOptions | undefined;
  /** What READ serves. */
  articles: readonly Buffer[];
  recordLength: number;
  /** FPDUs that are refused, and how. */
  refuse: Partial<Record<FpduName, PesitError>>;
  /** FPDUs that are left without answer. */
  ignore: readonly FpduName[];
  /** Whether points are acknowledged at once; the numbers of those that are not are in `unacknowledged`. */
  acknowledge: boolean;
  /** Whether RESYN is answered at once, by both sides. */
  resynchronise: boolean;
  /** Where WRITE starts. */
  from: SyncPoint;
  /** Records of points, for READ with PI 18. */
  points: Map<number, SyncPoint & { readonly index: number }>;
}

export const CONNECT: ConnectRequest = { requester: 'CLIENT', server: 'SERVER', accessType: 2 };

export const CREATE: CreateRequest = {
  fileIdentifier: { fileType: 0, fileName: 'FILE' },
  transferId: 1,
  maxEntitySize: 4096,
  recordFormat: 0x80,
  recordLength: 65_535,
  maxReservationKb: 1,
};

export const SELECT: SelectRequest = {
  fileIdentifier: { fileType: 0, fileName: 'FILE' },
  transferId: 0,
  maxEntitySize: 4096,
};

export const refusal = (diagnostic: DiagnosticCode, message: string, peerText?: string): PesitError =>
  new PesitError(message, { fault: 'local', diagnostic, ...(peerText === undefined ? {} : { peerText }) });

export type FpduEvent = Extract<SessionEvent, { kind: 'FPDU' }>;

export class Pair {
  now = 1_000;
  /** PI 21 that the requester asks for. */
  compression: CompressionOptions | undefined;
  readonly dialect: Dialect;
  readonly requester: RequesterSession;
  readonly server: ServerSession;
  readonly requesterEvents: SessionEvent[] = [];
  readonly serverEvents: SessionEvent[] = [];
  /** All that was sent, in order. */
  readonly sent: { readonly from: 'requester' | 'server'; readonly bytes: Buffer }[] = [];
  readonly behaviour: ServerBehaviour = {
    answer: {},
    maxEntitySize: 65_535,
    compression: undefined,
    articles: [],
    recordLength: 65_535,
    refuse: {},
    ignore: [],
    acknowledge: true,
    resynchronise: true,
    from: START,
    points: new Map(),
  };
  /** What the server received, one list a transfer; what the requester received in the current one. */
  readonly received: Collector[] = [];
  read = new Collector();
  readonly unacknowledged: number[] = [];
  readonly #chance: Chance;
  readonly #longest: number;
  /** Where a resynchronisation has put the requester's own articles. */
  #sendFrom: number | undefined;
  /** Changes what one side sends, on its way. */
  damage: ((bytes: Buffer, from: 'requester' | 'server') => Buffer) | undefined;
  /** A burst that is laid out and waits for the window. */
  #laidOut: { readonly session: Session; readonly at: number } | undefined;
  /** While the server is sending: the articles and the next of them. */
  #serving: { readonly articles: readonly Buffer[]; next: number } | undefined;

  constructor(options: PairOptions = {}) {
    const { dialect = 'length-prefixed', crc = false, seed = 1, longest = 1 << 20, timers = {} } = options;
    this.dialect = dialect;
    this.#chance = new Chance(seed);
    this.#longest = longest;
    this.requester = new RequesterSession(
      { dialect, now: this.now, connectionId: options.requesterId ?? 5, timers },
      crc,
    );
    this.server = new ServerSession({ dialect, now: this.now, connectionId: options.serverId ?? 9, timers });
  }

  /** Moves bytes and events until both sides are quiet. */
  settle(): void {
    for (let moved = true; moved;) {
      moved = this.#move(this.requester, this.server, 'requester');
      moved = this.#events(this.server) || moved;
      moved = this.#move(this.server, this.requester, 'server') || moved;
      moved = this.#events(this.requester) || moved;
      moved = this.#serve() || moved;
    }
  }

  /** Bytes that reach `to` as if its peer had sent them. */
  inject(to: 'requester' | 'server', bytes: Buffer): void {
    const session = this[to];
    for (const piece of this.#chance.split(bytes, this.#longest)) session.receive(Buffer.from(piece), this.now);
    this.settle();
  }

  /**
   * Bytes for one side alone: it reacts and answers, and its peer hears nothing of it.
   * @returns the FPDUs of the answer
   */
  alone(side: 'requester' | 'server', ...fpdus: readonly Buffer[]): Dissected[] {
    const session = this[side];
    const bytes = Buffer.concat(fpdus.map((one) => (this.dialect === 'raw' ? one : entity(one))));
    const answer: Buffer[] = [];
    for (const piece of this.#chance.split(bytes, this.#longest)) {
      session.receive(Buffer.from(piece), this.now);
      while (this.#events(session) || (side === 'server' && this.#serve(answer)));
      answer.push(...session.takeOutput());
    }
    return dissect(Buffer.concat(answer), this.dialect);
  }

  /** What one side has put out, which its peer will never hear of. */
  output(side: 'requester' | 'server'): Dissected[] {
    return dissect(Buffer.concat(this[side].takeOutput()), this.dialect);
  }

  /** Lets the server's application answer an event that the test has taken itself. */
  answerAlone(event: SessionEvent): void {
    this.#answer(event);
  }

  /** Like `send`, but the server hears nothing of it. */
  sendAlone(articles: readonly Buffer[], next: number, sent: (fpdus: Dissected[]) => void): number {
    let at = next;
    for (
      let taken = this.#take(this.requester, articles, at);
      taken;
      taken = this.#take(this.requester, articles, at)
    ) {
      at = taken.at;
      sent(dissect(taken.bytes, this.dialect));
      if (at === articles.length) break;
    }
    return at;
  }

  /** Lets time pass on both sides. */
  pass(milliseconds: number): void {
    this.now += milliseconds;
    this.requester.handleTimeout(this.now);
    this.server.handleTimeout(this.now);
    this.settle();
  }

  /** The FPDUs that one side has sent. */
  fpdus(from: 'requester' | 'server', crc = false): Dissected[] {
    const bytes = Buffer.concat(this.sent.filter((one) => one.from === from).map((one) => one.bytes));
    return dissect(bytes, this.dialect, crc);
  }

  /** Runs a verb of the requester and returns the answer that it gets. */
  step(name: FpduName, action: () => void): Parameters {
    const before = this.requesterEvents.length;
    action();
    this.settle();
    const answer = this.requesterEvents.slice(before).find((event): event is FpduEvent => event.kind === 'FPDU');
    if (answer?.name !== name) {
      throw new Error(`expected ${name}, got ${describe(this.requesterEvents.slice(before))}`);
    }
    return answer.parameters;
  }

  connect(request: Partial<ConnectRequest> = {}): Parameters {
    return this.step('ACONNECT', () => this.requester.connect({ ...CONNECT, ...request }));
  }

  /** CREATE, ORF, WRITE: up to the data. */
  openForWriting(request: Partial<CreateRequest> = {}): Parameters {
    this.step('ACK(CREATE)', () => this.requester.create({ ...CREATE, ...request }));
    this.step('ACK(ORF)', () => this.requester.open(this.compression));
    this.#laidOut = undefined;
    return this.step('ACK(WRITE)', () => this.requester.write());
  }

  /** SELECT, ORF, READ. */
  openForReading(request: Partial<SelectRequest> = {}, from: SyncPoint = START): Parameters {
    this.read = new Collector();
    const selected = this.step('ACK(SELECT)', () => this.requester.select({ ...SELECT, ...request }));
    this.step('ACK(ORF)', () => this.requester.open(this.compression));
    this.step('ACK(READ)', () => this.requester.read(from));
    return selected;
  }

  /** Sends articles from the requester; @returns the index of the first that is left when the window stays full. */
  send(articles: readonly Buffer[], next = 0): number {
    let at = next;
    while (at < articles.length && this.requester.sending && !this.requester.windowFull) {
      at = this.#burst(this.requester, this.server, 'requester', articles, at);
      this.settle();
      at = this.resumeAt() ?? at;
    }
    return at;
  }

  /** The article with which the requester goes on after a resynchronisation, once. */
  resumeAt(): number | undefined {
    const at = this.#sendFrom;
    this.#sendFrom = undefined;
    return at;
  }

  /** DTF.END (when the requester sends), TRANS.END, CRF, DESELECT. */
  closeFile(): Parameters {
    const ended = this.step('ACK(TRANS.END)', () => this.requester.endTransfer());
    this.leaveFile();
    return ended;
  }

  /** CRF and DESELECT. */
  leaveFile(): void {
    this.step('ACK(CRF)', () => this.requester.close());
    this.step('ACK(DESELECT)', () => this.requester.deselect());
  }

  /** A whole file from the requester to the server. */
  writeFile(articles: readonly Buffer[], request: Partial<CreateRequest> = {}, from: SyncPoint = START): Parameters {
    this.openForWriting(request);
    this.requester.startSending(from);
    const at = this.send(articles);
    if (at < articles.length) throw new Error(`the window stays full after ${at} of ${articles.length} articles`);
    this.requester.endData();
    this.settle();
    return this.closeFile();
  }

  /** A whole file from the server to the requester. */
  readFile(request: Partial<SelectRequest> = {}, from: SyncPoint = START): Parameters {
    this.openForReading(request, from);
    return this.closeFile();
  }

  /** The last transfer that the server received. */
  get lastReceived(): readonly Buffer[] {
    return this.received.at(-1)?.articles ?? [];
  }

  #move(from: Session, to: Session, name: 'requester' | 'server'): boolean {
    const output = from.takeOutput();
    this.#deliver(output, to, name);
    // The transport of a session that is closing is ended: the peer sees that after the last byte.
    const over = from.phase !== 'open' && to.phase !== 'closed';
    if (over) {
      to.connectionLost(this.now);
      from.connectionLost(this.now);
    }
    return over || output.length > 0;
  }

  #deliver(output: readonly Buffer[], to: Session, from: 'requester' | 'server'): void {
    if (output.length === 0) return;
    const bytes = Buffer.concat(output);
    this.sent.push({ from, bytes });
    const arriving = this.damage?.(Buffer.from(bytes), from) ?? bytes;
    for (const piece of this.#chance.split(arriving, this.#longest)) to.receive(Buffer.from(piece), this.now);
  }

  /** Brings the articles of one side to a point. */
  #goBack(side: 'requester' | 'server', point: SyncPoint): void {
    const reading = this.requester.state.startsWith('TDL');
    if (side === 'requester') {
      if (reading) this.read.goBack(point.articles);
      else this.#sendFrom = point.articles;
    } else if (reading) {
      this.#serving = { articles: this.behaviour.articles, next: point.articles };
    } else {
      this.received.at(-1)?.goBack(point.articles);
    }
  }

  #events(session: Session): boolean {
    let any = false;
    for (let event = session.nextEvent(); event !== undefined; event = session.nextEvent()) {
      any = true;
      if (session === this.server) {
        this.serverEvents.push(event);
        this.#answer(event);
      } else {
        this.requesterEvents.push(event);
        if (event.kind === 'ARTICLES') this.read.add(event.batch);
        if (event.kind === 'RESYN' && this.behaviour.resynchronise) {
          this.#goBack('requester', event.point);
          this.requester.acceptResyn();
        }
        if (event.kind === 'ACK(RESYN)') this.#goBack('requester', event.point);
        if (event.kind === 'SYN' && this.behaviour.acknowledge) this.requester.acknowledgeSyn(event.point.number);
      }
    }
    return any;
  }

  #burst(from: Session, to: Session, name: 'requester' | 'server', articles: readonly Buffer[], next: number): number {
    // What was put out before the burst leaves before it.
    this.#deliver(from.takeOutput(), to, name);
    const taken = this.#take(from, articles, next);
    if (taken === undefined) return next;
    if (taken.bytes.length > 0) this.#deliver([taken.bytes], to, name);
    else if (!from.burstIsVoid) throw new Error('a burst took nothing');
    return taken.at;
  }

  /**
   * Lays out a burst, unless one is; @returns it when the window lets it go, else `undefined`.
   * A burst that a resynchronisation has overtaken is empty and takes no article.
   */
  #take(session: Session, articles: readonly Buffer[], next: number): { bytes: Buffer; at: number } | undefined {
    if (this.#laidOut?.session !== session) {
      const { entitySize } = session === this.server ? this.server : this.requester;
      const buffer = Buffer.alloc(burstBufferSize(entitySize, 0));
      this.#laidOut = { session, at: fill(session.beginBurst(buffer), articles, next) };
    }
    if (session.windowFull) return undefined;
    const { at } = this.#laidOut;
    this.#laidOut = undefined;
    const bytes = Buffer.from(session.endBurst());
    return { bytes, at: bytes.length === 0 ? next : at };
  }

  /** @param into where the data go when the requester shall not hear of them */
  #serve(into?: Buffer[]): boolean {
    const serving = this.#serving;
    if (serving === undefined) return false;
    if (!this.server.sending) {
      this.#serving = undefined;
      return false;
    }
    if (this.server.windowFull) return false;
    if (serving.next < serving.articles.length) {
      if (into === undefined) {
        serving.next = this.#burst(this.server, this.requester, 'server', serving.articles, serving.next);
      } else {
        into.push(...this.server.takeOutput());
        const taken = this.#take(this.server, serving.articles, serving.next);
        if (taken !== undefined) {
          serving.next = taken.at;
          into.push(taken.bytes);
        }
      }
    }
    if (serving.next === serving.articles.length) {
      this.server.endData();
      this.#serving = undefined;
    }
    return true;
  }

  #answer(event: SessionEvent): void {
    const { behaviour, server } = this;
    if (event.kind === 'RESYN' && behaviour.resynchronise) {
      this.#goBack('server', event.point);
      server.acceptResyn();
    }
    if (event.kind === 'ACK(RESYN)') this.#goBack('server', event.point);
    if (event.kind === 'ARTICLES') this.received.at(-1)?.add(event.batch);
    if (event.kind === 'SYN') {
      if (behaviour.acknowledge) server.acknowledgeSyn(event.point.number);
      else this.unacknowledged.push(event.point.number);
    }
    if (event.kind !== 'FPDU' || behaviour.ignore.includes(event.name) || server.phase !== 'open') return;
    const refused = behaviour.refuse[event.name];
    if (refused !== undefined) {
      if (event.name === 'CONNECT') server.refuseConnection(refused);
      else if (event.name === 'TRANS.END') server.refuseEnd(refused);
      else if (event.name.startsWith('MSG')) server.refuseMessage(refused);
      else server.refuse(refused);
      return;
    }
    switch (event.name) {
      case 'CONNECT':
        server.acceptConnection(behaviour.answer);
        break;
      case 'CREATE':
        server.acceptCreate({ maxEntitySize: behaviour.maxEntitySize });
        break;
      case 'SELECT':
        server.acceptSelect({
          maxEntitySize: behaviour.maxEntitySize,
          fileName: 'FILE',
          transferId: 77,
          recordFormat: 0x80,
          recordLength: behaviour.recordLength,
          maxReservationKb: 1,
        });
        break;
      case 'ORF':
        server.acceptOpen(behaviour.compression);
        break;
      case 'WRITE':
        this.received.push(new Collector());
        server.acceptWrite(behaviour.from);
        break;
      case 'READ': {
        const point = behaviour.points.get(event.parameters.restartPoint ?? 0) ?? { ...START, index: 0 };
        server.acceptRead(point);
        this.#laidOut = undefined;
        this.#serving = { articles: behaviour.articles, next: point.index };
        break;
      }
      case 'TRANS.END':
        server.acceptEnd();
        break;
      case 'CRF':
        server.acceptClose();
        break;
      case 'DESELECT':
        server.acceptDeselect();
        break;
      case 'RELEASE':
        server.acceptRelease();
        break;
      default:
        break;
    }
  }
}

/** Events in a line, for the text of a failed step. */
export function describe(events: readonly SessionEvent[]): string {
  const words = events.map((event) => {
    if (event.kind === 'FPDU') return event.name;
    if (event.kind === 'ENDED') return `ENDED(${event.error?.message ?? ''})`;
    return event.kind === 'NOTICE' ? `NOTICE(${event.text})` : event.kind;
  });
  return words.length === 0 ? 'nothing' : words.join(', ');
}

/** The error of an ENDED or INTERRUPTED event. */
export function errorOf(events: readonly SessionEvent[], kind: 'ENDED' | 'INTERRUPTED'): PesitError | undefined {
  for (const event of events) {
    if ((event.kind === 'ENDED' || event.kind === 'INTERRUPTED') && event.kind === kind) return event.error;
  }
  return undefined;
}

export const notices = (events: readonly SessionEvent[]): string[] =>
  events.flatMap((event) => (event.kind === 'NOTICE' ? [event.text] : []));
