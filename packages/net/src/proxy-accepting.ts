/**
 * Connections that balancers pass on: before TLS and PeSIT the header of the PROXY protocol (`proxy-header.ts`) says from where
 * the partner came. Trusted balancers alone are believed. Connections that wait for their header are bounded in number and time.
 */
import type { Socket } from 'node:net';
import { timersOf } from '@pesit-node/protocol';
import { Crowd } from './crowd.js';
import { readProxyHeader } from './proxy-header.js';
import type { Arrivals } from './transport.js';

export type ProxyProtocol = 'off' | 'optional' | 'required';

export interface ProxyServing {
  /** Asked for each connection. */
  readonly mode: () => ProxyProtocol;
  /** Whether the header of this address is believed. Asked for each connection. */
  readonly isTrusted: (address: string) => boolean;
  /** Milliseconds from the connection to the end of its header. Default: Tc, as for CONNECT after it. */
  readonly timeout?: number;
  /** Connections that wait for their header at a time; beyond it the oldest gives way. Default 512. */
  readonly maxWaiting?: number;
}

/** Takes over a socket, paused, and the address of who is at its other end. */
type Next = (socket: Socket, address: string) => void;

/** Connections whose header is not over. */
export class ProxyDoor {
  readonly #serving: ProxyServing | undefined;
  readonly #failed: Arrivals['failed'];
  readonly #next: Next;
  readonly #crowd = new Crowd<Waiting>();

  /** @param serving undefined: no connection has a header */
  constructor(serving: ProxyServing | undefined, failed: Arrivals['failed'], next: Next) {
    this.#serving = serving;
    this.#failed = failed;
    this.#next = next;
  }

  /** @param socket paused, and nothing of it was read */
  take(socket: Socket): void {
    const { remoteAddress: address } = socket;
    const mode = this.#serving?.mode() ?? 'off';
    if (this.#serving === undefined || mode === 'off') {
      this.#next(socket, address ?? 'unknown');
      return;
    }
    if (address === undefined) {
      // It has left already, as health checks do.
      socket.on('error', () => undefined);
      socket.destroy();
      return;
    }
    const { isTrusted, maxWaiting = 512 } = this.#serving;
    const trusted = isTrusted(address);
    if (mode === 'required' && !trusted) {
      socket.on('error', () => undefined);
      socket.destroy();
      this.#failed(address, `${address} is not among trustedProxies, ${ASKED}: connect through the balancer, ${TRUST}`);
      return;
    }
    if (this.#crowd.size >= maxWaiting) {
      this.#crowd.oldest()?.fail(`${maxWaiting} connections wait for their PROXY header: the oldest gives way`);
    }
    this.#wait(socket, { address, mode, trusted });
  }

  /** Cuts the connections that wait. */
  close(): void {
    for (const waiting of this.#crowd) waiting.fail(undefined);
  }

  #wait(socket: Socket, caller: Caller): void {
    const { timeout = timersOf().connect } = this.#serving ?? {};
    const waiting: Waiting = new Waiting(socket, caller, timeout, {
      passed: (address) => {
        this.#crowd.delete(waiting);
        this.#next(socket, address);
      },
      failed: (reason) => {
        this.#crowd.delete(waiting);
        if (reason !== undefined) this.#failed(caller.address, reason);
      },
    });
    this.#crowd.add(waiting, caller.address);
    waiting.start();
  }
}

const ASKED = 'and proxyProtocol of the listener is required';
const TRUST = 'or add its address to trustedProxies';

interface Caller {
  /** The one that the connection itself has. */
  readonly address: string;
  readonly mode: 'optional' | 'required';
  readonly trusted: boolean;
}

interface WaitingEnd {
  readonly passed: (address: string) => void;
  /** undefined: it left without a byte, as health checks do, or the port was given up. */
  readonly failed: (reason: string | undefined) => void;
}

/** One connection until its header is over. */
class Waiting {
  readonly #socket: Socket;
  readonly #caller: Caller;
  readonly #end: WaitingEnd;
  readonly #timer: NodeJS.Timeout;
  #received = Buffer.alloc(0);
  #over = false;

  constructor(socket: Socket, caller: Caller, timeout: number, end: WaitingEnd) {
    this.#socket = socket;
    this.#caller = caller;
    this.#end = end;
    this.#timer = setTimeout(() => {
      const got = this.#received.length === 0 ? 'nothing was received' : `received ${this.#firstBytes}`;
      const awaited = caller.mode === 'required' ? 'no whole PROXY header' : 'neither a whole PROXY header nor CONNECT';
      this.fail(`${awaited} within ${timeout} ms: ${got}`);
    }, timeout);
  }

  start(): void {
    this.#socket.on('error', this.#left);
    this.#socket.on('close', this.#left);
    this.#socket.on('data', this.#take);
    this.#socket.resume();
  }

  fail(reason: string | undefined): void {
    if (!this.#settle()) return;
    this.#socket.destroy();
    this.#end.failed(reason);
  }

  get #firstBytes(): string {
    return this.#received.subarray(0, 16).toString('hex');
  }

  #settle(): boolean {
    if (this.#over) return false;
    this.#over = true;
    clearTimeout(this.#timer);
    return true;
  }

  readonly #left = (): void => {
    const isSilent = this.#received.length === 0;
    this.fail(isSilent ? undefined : `closed before its PROXY header was over; received ${this.#firstBytes}`);
  };

  readonly #take = (bytes: Buffer): void => {
    if (this.#over) return;
    this.#received = Buffer.concat([this.#received, bytes]);
    const { address, mode, trusted } = this.#caller;
    const header = readProxyHeader(this.#received);
    if (header.kind === 'more') return;
    if (header.kind === 'none') {
      if (mode === 'optional') this.#pass(0, address);
      else {
        const advice = 'switch the PROXY protocol on at the balancer, or set proxyProtocol to optional';
        this.fail(`${address} sent no PROXY header, ${ASKED}: ${advice}; first bytes ${this.#firstBytes}`);
      }
      return;
    }
    if (!trusted) {
      const what = `${address} sent a PROXY header, and is not among trustedProxies: it is not believed`;
      this.fail(`${what}; switch the header off there, ${TRUST}`);
    } else if (header.kind === 'malformed') {
      this.fail(`the PROXY header of ${address} is malformed: ${header.reason}; first bytes ${this.#firstBytes}`);
    } else this.#pass(header.length, header.address ?? address);
  };

  #pass(length: number, address: string): void {
    const socket = this.#socket;
    this.#settle();
    socket.pause();
    socket.off('data', this.#take);
    if (length < this.#received.length) socket.unshift(this.#received.subarray(length));
    this.#end.passed(address);
    socket.off('error', this.#left);
    socket.off('close', this.#left);
  }
}
