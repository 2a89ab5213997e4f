/**
 * The network between the two apps: a TCP proxy that passes entities on unchanged and in order until a fault strikes.
 * Faults are armed in a list and strike one after the other; each begins to count when the one before has struck.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Dialect } from '@pesit-node/protocol';
import { TLSSocket, connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { EntityReader, lineOf, type Framing, type SeenEntity } from './entities.js';
import { Trigger, type Action, type Direction, type Fault, type Victim } from './faults.js';

/** Lines of the wire that are kept: the last ones tell what happened. */
const LINES = 2000;

export interface Arming {
  readonly faults: readonly Fault[];
  /** Added to each direction, milliseconds. */
  readonly latencyMs: number;
  /** Ends a process at once. */
  readonly kill: (victim: Victim) => void;
}

/** Traffic since the proxy was armed. */
export interface Traffic {
  /** Faults that have struck. */
  readonly struck: number;
  readonly connections: number;
  /** Article bytes that arrived here, by direction, over all attempts. */
  readonly dataBytes: Readonly<Record<Direction, number>>;
  /** Attempts that came as far as WRITE, by the direction of their data `request`, or READ, `answer`. */
  readonly attempts: Readonly<Record<Direction, number>>;
  /** Resynchronisations that were answered: each goes back as a restart does. */
  readonly resyns: number;
  /** One line an FPDU, consecutive data FPDUs in one. */
  readonly wire: readonly string[];
}

/** PEM of the proxy, which ends TLS on both sides to see the entities, and of the CA of everybody. */
export interface ProxyIdentity {
  readonly certificate: string;
  readonly privateKey: string;
  readonly ca: string;
}

/** A connection, and the socket below it where it is secured. */
interface End {
  readonly socket: Socket;
  readonly raw: Socket;
}

/** One connection of the requester, and the one to the server that belongs to it. */
class Link {
  readonly #proxy: FaultProxy;
  readonly #sockets: Readonly<Record<Direction, Socket>>;
  readonly #raw: readonly Socket[];
  readonly #framing: Framing;
  /** A fault was here, and may still hold bytes back. */
  impaired = false;

  constructor(proxy: FaultProxy, fromRequester: End, fromServer: End, dialect: Dialect) {
    this.#proxy = proxy;
    this.#sockets = { request: fromRequester.socket, answer: fromServer.socket };
    this.#raw = [fromRequester.raw, fromServer.raw];
    this.#framing = { dialect, crc: false };
    for (const { socket, raw } of [fromRequester, fromServer]) {
      raw.setNoDelay(true);
      // Whatever ends a connection ends the pipe that reads or writes it.
      for (const one of [socket, raw]) one.on('error', () => undefined);
    }
  }

  /** Passes bytes on in both directions until both are over. */
  async run(): Promise<void> {
    await Promise.all([this.#pipe('request'), this.#pipe('answer')]);
    this.destroy();
  }

  destroy(): void {
    for (const socket of Object.values(this.#sockets)) socket.destroy();
  }

  reset(): void {
    for (const raw of this.#raw) raw.resetAndDestroy();
    this.destroy();
  }

  async #pipe(direction: Direction): Promise<void> {
    const from = this.#sockets[direction];
    const to = this.#sockets[direction === 'request' ? 'answer' : 'request'];
    const reader = new EntityReader(this.#framing);
    try {
      for await (const chunk of from.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        if (this.#proxy.latencyMs > 0) await delay(this.#proxy.latencyMs);
        if (!(await this.#passAll(direction, to, reader.push(chunk)))) {
          // Bytes that come after a half-close are lost, but the end of the connection must be seen.
          from.resume();
          return;
        }
      }
      await write(to, reader.rest);
      to.end();
    } catch {
      // One side was reset, or is gone: so is the other.
      this.destroy();
    }
  }

  /** @returns false when this direction is over */
  async #passAll(direction: Direction, to: Socket, entities: readonly SeenEntity[]): Promise<boolean> {
    let run: Buffer[] = [];
    for (const entity of entities) {
      const strike = this.#proxy.pass(direction, entity);
      if (strike === undefined) {
        run.push(entity.bytes);
        continue;
      }
      await write(to, Buffer.concat([...run, entity.bytes.subarray(0, strike.at)]));
      run = [];
      const goesOn = await this.#act(strike.action, to);
      if (!goesOn || to.destroyed) return false;
      if (strike.action.do === 'damage') run.push(damaged(entity.bytes, strike.action.at));
      else if (strike.action.do !== 'drop') run.push(entity.bytes.subarray(strike.at));
    }
    await write(to, Buffer.concat(run));
    return true;
  }

  /** @returns false when this direction is over */
  async #act(action: Action, to: Socket): Promise<boolean> {
    this.impaired = true;
    switch (action.do) {
      case 'stall':
        await delay(action.ms);
        return true;
      case 'half-close':
        to.end();
        return false;
      case 'drop':
        if (action.cut) this.destroy();
        return !action.cut;
      default:
        this.#proxy.act(action, this);
        return action.do === 'kill' || action.do === 'damage';
    }
  }
}

/** @param at any number: which bit, behind the length of the entity and that of its first FPDU */
const damaged = (bytes: Buffer, at: number): Buffer => {
  const copy = Buffer.from(bytes);
  const start = Math.min(4, copy.length - 1);
  const index = start + (Math.floor(at / 8) % (copy.length - start));
  copy[index] = (copy[index] as number) ^ (1 << (at % 8));
  return copy;
};

/** Resolves when the kernel has the bytes. */
const write = async (socket: Socket, bytes: Buffer): Promise<void> => {
  if (bytes.length === 0) return;
  await new Promise<void>((resolve, reject) => {
    socket.write(bytes, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
};

export class FaultProxy {
  readonly #server: Server;
  readonly #dialect: Dialect;
  /** Addresses on which a server listens: connections go to one after the other. */
  readonly #hosts: readonly string[];
  #next = 0;
  readonly #links = new Set<Link>();
  #arming: Arming = { faults: [], latencyMs: 0, kill: () => undefined };
  #trigger: Trigger | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #pendingKills = new Set<NodeJS.Timeout>();
  #struck = 0;
  #connections = 0;
  #attempts: Record<Direction, number> = { request: 0, answer: 0 };
  #resyns = 0;
  #dataBytes: Record<Direction, number> = { request: 0, answer: 0 };
  #lines: string[] = [];
  #began = performance.now();
  #run: { direction: Direction; fpdus: number; bytes: number } | undefined;

  /** Undefined: plain TCP. */
  readonly #context: SecureContext | undefined;

  private constructor(hosts: readonly string[], targetPort: number, dialect: Dialect, identity?: ProxyIdentity) {
    this.#context =
      identity &&
      createSecureContext({
        ...{ cert: identity.certificate, key: identity.privateKey, ca: identity.ca },
        // Without it no session is resumed where certificates are asked for.
        sessionIdContext: 'torture',
      });
    this.#hosts = hosts;
    this.#dialect = dialect;
    // Half-open: the end of one direction is not yet the end of the other.
    this.#server = createServer({ allowHalfOpen: true }, (fromRequester) => {
      void this.#accept(fromRequester, targetPort);
    });
  }

  /**
   * Listens on a free port of the loopback address, for connections to `targetPort` of the hosts in turn.
   * @param identity with it both connections are TLS, and everybody has to show a certificate
   */
  static async listen(
    targetPort: number,
    dialect: Dialect,
    hosts: readonly string[] = ['127.0.0.1'],
    identity?: ProxyIdentity,
  ): Promise<FaultProxy> {
    const proxy = new FaultProxy(hosts, targetPort, dialect, identity);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Which of the hosts had the newest connection. */
  get target(): number {
    return (this.#next + this.#hosts.length - 1) % this.#hosts.length;
  }

  get latencyMs(): number {
    return this.#arming.latencyMs;
  }

  /** Begins to count and to watch for the first fault. */
  arm(arming: Arming): void {
    this.#arming = arming;
    this.#struck = 0;
    this.#connections = 0;
    this.#attempts = { request: 0, answer: 0 };
    this.#resyns = 0;
    this.#dataBytes = { request: 0, answer: 0 };
    this.#lines = [];
    this.#began = performance.now();
    this.#armNext();
  }

  /** No kill is still to come of a fault that has struck. */
  async quiet(): Promise<void> {
    while (this.#pendingKills.size > 0) await delay(5);
  }

  /** No fault strikes from now on. */
  disarm(): Traffic {
    this.#stopTimers();
    this.#trigger = undefined;
    this.#arming = { faults: [], latencyMs: 0, kill: () => undefined };
    this.#endRun();
    // The bytes it holds back belong to this round.
    for (const link of this.#links) if (link.impaired) link.destroy();
    return {
      struck: this.#struck,
      connections: this.#connections,
      dataBytes: this.#dataBytes,
      attempts: this.#attempts,
      resyns: this.#resyns,
      wire: this.#lines,
    };
  }

  async close(): Promise<void> {
    this.#stopTimers();
    for (const link of this.#links) link.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  /** Counts an entity that is about to pass. @returns what happens to it, and after how many of its bytes */
  pass(direction: Direction, entity: SeenEntity): { readonly at: number; readonly action: Action } | undefined {
    this.#count(direction, entity);
    const trigger = this.#trigger;
    const names = entity.fpdus.map(({ name }) => name);
    const at = trigger?.strikesAt(direction, entity.bytes.length, names);
    if (trigger === undefined || at === undefined) return undefined;
    this.#strike(trigger, `${direction}, after ${at} of ${entity.bytes.length} bytes of ${names.join(' ')}`);
    return { at, action: trigger.fault.action };
  }

  /** Carries out an action that concerns more than one direction of one link. @param link undefined: all there are */
  act(action: Action, link?: Link): void {
    const links = link === undefined ? [...this.#links] : [link];
    if (action.do === 'cut') for (const one of links) one.destroy();
    if (action.do === 'reset') for (const one of links) one.reset();
    if (action.do === 'kill') this.#kill(action.victim, action.afterMs);
  }

  #kill(victim: Victim, afterMs: number): void {
    const { kill } = this.#arming;
    if (afterMs === 0) {
      kill(victim);
      return;
    }
    const timer = setTimeout(() => {
      this.#pendingKills.delete(timer);
      this.#line(`*** the ${victim} is killed`);
      kill(victim);
    }, afterMs);
    this.#pendingKills.add(timer);
  }

  #armNext(): void {
    clearTimeout(this.#timer);
    const fault = this.#arming.faults[this.#struck];
    this.#trigger = fault && new Trigger(fault);
    if (fault?.moment.at !== 'time') return;
    this.#timer = setTimeout(() => {
      this.#strike(this.#trigger as Trigger, 'its time');
      this.act(fault.action);
    }, fault.moment.ms);
  }

  #stopTimers(): void {
    clearTimeout(this.#timer);
    for (const timer of this.#pendingKills) clearTimeout(timer);
    this.#pendingKills.clear();
  }

  #strike({ fault }: Trigger, where: string): void {
    this.#struck++;
    this.#line(`*** ${JSON.stringify(fault.action)} at ${where}`);
    this.#armNext();
  }

  #count(direction: Direction, entity: SeenEntity): void {
    for (const fpdu of entity.fpdus) {
      this.#dataBytes[direction] += fpdu.dataBytes;
      if (fpdu.name === 'WRITE') this.#attempts.request++;
      if (fpdu.name === 'READ') this.#attempts.answer++;
      if (fpdu.name === 'ACK(RESYN)') this.#resyns++;
      if (fpdu.dataBytes === 0) {
        this.#line(`${direction === 'request' ? '-->' : '<--'} ${lineOf(fpdu)}`);
        continue;
      }
      if (this.#run?.direction !== direction) this.#endRun();
      this.#run ??= { direction, fpdus: 0, bytes: 0 };
      this.#run.fpdus++;
      this.#run.bytes += fpdu.dataBytes;
    }
  }

  #endRun(): void {
    const run = this.#run;
    this.#run = undefined;
    if (run === undefined) return;
    this.#line(`${run.direction === 'request' ? '-->' : '<--'} data: ${run.fpdus} FPDUs, ${run.bytes} bytes`);
  }

  #line(text: string): void {
    this.#endRun();
    if (this.#lines.length >= LINES) this.#lines.shift();
    this.#lines.push(`${String(Math.round(performance.now() - this.#began)).padStart(7)} ms ${text}`);
  }

  async #accept(fromRequester: Socket, targetPort: number): Promise<void> {
    const host = this.#hosts[this.#next] as string;
    this.#next = (this.#next + 1) % this.#hosts.length;
    const fromServer = connect({ host, port: targetPort, allowHalfOpen: true });
    try {
      await once(fromServer, 'connect');
    } catch {
      // Nobody listens: the requester meets the same.
      this.#line('*** the server cannot be reached');
      fromRequester.on('error', () => undefined).resetAndDestroy();
      return;
    }
    this.#connections++;
    this.#line(`*** connected${this.#hosts.length > 1 ? ` to ${host}` : ''}`);
    const link = new Link(this, ...this.#secured(fromRequester, fromServer), this.#dialect);
    this.#links.add(link);
    await link.run();
    this.#links.delete(link);
    this.#line('*** connection over');
  }

  /** Bytes that are written before a handshake is over wait for it; one that fails ends both connections. */
  #secured(fromRequester: Socket, fromServer: Socket): readonly [End, End] {
    const secureContext = this.#context;
    if (secureContext === undefined) {
      return [
        { socket: fromRequester, raw: fromRequester },
        { socket: fromServer, raw: fromServer },
      ];
    }
    const accepted = new TLSSocket(fromRequester, {
      ...{ isServer: true, secureContext, requestCert: true, rejectUnauthorized: true },
    });
    // The servers have addresses of their own, and one certificate.
    const opened = connectTls({ socket: fromServer, secureContext, checkServerIdentity: () => undefined });
    return [
      { socket: accepted, raw: fromRequester },
      { socket: opened, raw: fromServer },
    ];
  }
}
