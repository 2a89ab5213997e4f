/** Listeners and requesters of a test, all closed after it, and what they are given. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import type { Socket } from 'node:net';
import { afterEach } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import type { CreateRequest, Dialect, SelectRequest } from '@pesit-node/protocol';
import { PesitListener, PesitRequester } from '../../src/index.js';
import type { ListenerOptions, RequesterOptions } from '../../src/index.js';
import { TestHandler } from './partner.js';
import { BODIES, RawPeer, RawServer } from './wire.js';

export const closing = new PesitError('the test is over', { fault: 'local', diagnostic: '3-316' });

const open: (() => Promise<unknown>)[] = [];

/** Runs after the test, last opened first. */
export function atEnd(close: () => Promise<unknown>): void {
  open.push(close);
}

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** Destroys the socket after the test, and waits until it is closed. */
export const closeAtEnd = <S extends Socket>(socket: S): S => {
  atEnd(async () => {
    socket.destroy();
    if (!socket.closed) await once(socket, 'close');
  });
  return socket;
};

/** A connection that says nothing by itself, closed after the test; errors of it are its own affair. */
export const bareSocket = async (port: number): Promise<Socket> => {
  const socket = closeAtEnd(connectSocket({ host: '127.0.0.1', port }));
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
};

export interface Rejection {
  readonly address: string;
  readonly reason: string;
  /** Of TLS. */
  readonly code?: string;
}

/** A listener and every handler it asked for, in order. */
export class TestListener {
  readonly handlers: TestHandler[] = [];
  readonly rejected: Rejection[] = [];
  listener!: PesitListener;
  /** Asked for each new handler. */
  accept: ListenerOptions['accept'];
  #watchers: (() => void)[] = [];

  constructor(prepare: (handler: TestHandler) => void) {
    this.accept = (connection) => {
      const handler = new TestHandler(connection);
      prepare(handler);
      this.handlers.push(handler);
      this.notify();
      return handler;
    };
  }

  get port(): number {
    return this.listener.port;
  }

  /** The handler of the `index`th session, as soon as there is one. */
  async handler(index = 0): Promise<TestHandler> {
    await this.until(() => this.handlers.length > index);
    return this.handlers[index]!;
  }

  async rejections(count: number): Promise<readonly Rejection[]> {
    await this.until(() => this.rejected.length >= count);
    return this.rejected;
  }

  /** Checked whenever a handler or a rejection comes. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#watchers.push(resolve));
  }

  notify(): void {
    for (const wake of this.#watchers.splice(0)) wake();
  }
}

export async function listen(
  options: Partial<ListenerOptions> = {},
  prepare: (handler: TestHandler) => void = () => undefined,
): Promise<TestListener> {
  const listening = new TestListener(prepare);
  listening.listener = await PesitListener.listen({
    host: '127.0.0.1',
    port: 0,
    maxConnections: 10,
    tcpipHeader: 'auto',
    accept: (connection) => listening.accept(connection),
    rejected: (address, reason, code) => {
      listening.rejected.push({ address, reason, ...(code === undefined ? {} : { code }) });
      listening.notify();
    },
    ...options,
  });
  atEnd(() => listening.listener.close(closing, 0));
  return listening;
}

export async function connect(port: number, options: Partial<RequesterOptions> = {}): Promise<PesitRequester> {
  const requester = await PesitRequester.open({
    host: '127.0.0.1',
    port,
    dialect: 'length-prefixed',
    connectTimeout: 5000,
    connect: { requester: 'PART', server: 'SERV', accessType: 2, syncPoints: { intervalKb: 256, window: 8 } },
    ...options,
  });
  atEnd(() => requester.release());
  return requester;
}

/** A partner of a listener, moved by hand. */
export async function rawPeer(
  port: number,
  dialect: Dialect = 'length-prefixed',
  localAddress = '127.0.0.1',
): Promise<RawPeer> {
  const peer = await RawPeer.connect(port, dialect, localAddress);
  atEnd(() => {
    peer.socket.destroy();
    return peer.closed;
  });
  return peer;
}

/** A server moved by hand; what its script rejects with fails the test. */
export async function rawServer(
  serve: (peer: RawPeer) => Promise<void>,
  dialect: Dialect = 'length-prefixed',
): Promise<RawServer> {
  const server = await RawServer.start(serve, dialect);
  atEnd(async () => {
    await server.close();
    await Promise.all(server.served);
    if (server.errors.length > 0) throw server.errors[0];
  });
  return server;
}

export const create: CreateRequest = {
  fileIdentifier: { fileType: 0, fileName: 'FILE' },
  transferId: 5,
  maxEntitySize: 4096,
  recordFormat: 128,
  recordLength: 30_000,
  maxReservationKb: 100,
};

export const select: SelectRequest = {
  fileIdentifier: { fileType: 0, fileName: 'FILE' },
  transferId: 0,
  maxEntitySize: 4096,
};

export const articlesOf = (sizes: readonly number[]): Buffer[] => sizes.map((size) => randomBytes(size));

/** A promise and its end in other hands. */
export interface Gate<T = void> {
  readonly passed: Promise<T>;
  readonly open: (value: T) => void;
  readonly refuse: (error: unknown) => void;
}

export function gate<T = void>(): Gate<T> {
  let open!: (value: T) => void;
  let refuse!: (error: unknown) => void;
  const passed = new Promise<T>((resolve, reject) => {
    open = resolve;
    refuse = reject;
  });
  return { passed, open, refuse };
}

/** The error that `promise` rejects with; fails when it resolves. */
export async function rejectionOf(promise: Promise<unknown>): Promise<PesitError> {
  const outcome = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (outcome instanceof PesitError) return outcome;
  throw new Error(`expected a PesitError, got ${String(outcome)}`, { cause: outcome });
}

/** Resolves when a session with the listener's timers has timed out: time has passed, without a sleep. */
export async function tpHasPassed(port: number): Promise<void> {
  const witness = await rawPeer(port);
  await witness.open();
  await witness.exchange('CREATE', BODIES.CREATE, 'ACK(CREATE)');
  await witness.expect('ABORT');
}
