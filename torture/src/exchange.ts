/** Calls of both apps through REST, and the traces of a transfer afterwards: records, files, leftovers. */
import { link, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Dialect } from '@pesit-node/protocol';
import type { Observation } from './judge.js';
import type { Papers } from './papers.js';
import type { SessionPlan, TransferPlan } from './plan.js';
import type { Traffic } from './proxy.js';
import { call, RestError, type Json } from './rest.js';
import { sha256 } from './source.js';

const SERVER_ID = 'TORTURE';
const PARTNER_ID = 'PARTNER';
/** PI 5 holds eight characters. */
const PARTNER_PASSWORD = 'torture1';
/** Virtual files that partners write: the server app takes lengths from the sender, text or not from the virtual file. */
const INBOX = { binary: 'INB', text: 'INT' } as const;
/** The virtual file that partners read; it gets the format of each round. */
const OUTBOX = 'OUT';
/** Names of the stores, the same in both apps. */
const STORES = { keystoreName: 'own', truststoreName: 'everybody' } as const;
const STAGING = '.pesit';
const RETRY_MS = 50;
/** A client app that has not begun again after so long does not mean to. */
const GIVEN_UP_MS = 8000;
/** How long a service may be away in a round: a restart on a machine that is busy. */
const START_AGAIN_MS = 60_000;

/** PI 31, text and PI 16 of a format, as both apps take them. */
const recordFields = ({ file: { format, recordLength, ebcdic } }: TransferPlan): Json => ({
  recordLength,
  // Not set: PI 31 is left out.
  recordFormat: format === 'BU' ? null : format.endsWith('F') ? 0 : 128,
  text: format.startsWith('T'),
  ebcdic,
});

const withoutNulls = (fields: Json): Json =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

/** The same question until there is an answer: the service or its database may be away. */
const insist = async <T>(ask: () => Promise<T>, limitMs: number): Promise<T> => {
  const limit = performance.now() + limitMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if ((error instanceof RestError && error.status < 500) || performance.now() > limit) throw error;
      await delay(RETRY_MS);
    }
  }
};

export class Exchange {
  readonly #directory: string;
  readonly #server: string;
  readonly #client: string;
  /** The newest record of the server app before the round. */
  #lastServerRecord = 0;

  /** @param bases of the REST interfaces, without a slash at the end */
  constructor(directory: string, bases: Readonly<Record<'server' | 'client', string>>) {
    this.#directory = directory;
    this.#server = bases.server;
    this.#client = bases.client;
  }

  /**
   * Makes the two know each other.
   * @param port of the listener
   * @param proxies where the client app finds it, by dialect
   * @param readTimeout of the listener, milliseconds
   * @param papers with them the listener takes TLS alone, from those who have a certificate
   */
  async configure(
    port: number,
    proxies: ReadonlyMap<Dialect, { readonly port: number }>,
    readTimeout: number,
    papers?: Papers,
  ): Promise<void> {
    const server = this.#server;
    await call('POST', `${server}/api/v1/config/partners`, {
      partnerId: PARTNER_ID,
      password: PARTNER_PASSWORD,
      allowedOperations: ['READ', 'WRITE'],
    });
    for (const fileId of Object.values(INBOX)) {
      await call('POST', `${server}/api/v1/config/files`, {
        fileId,
        direction: 'RECEIVE',
        receiveDirectory: 'inbox',
        // A second delivery gets another name: it must be seen, not refused.
        receiveFilenamePattern: '${virtualFile}_${uuid}',
        text: fileId === INBOX.text,
        compression: 'both',
      });
    }
    await call('POST', `${server}/api/v1/config/files`, {
      fileId: OUTBOX,
      direction: 'SEND',
      sendDirectory: 'outbox',
      compression: 'both',
    });
    if (papers !== undefined) await this.#bringPapers(papers);
    const door =
      papers === undefined
        ? { port }
        : { port: null, tlsPort: port, sslEnabled: true, sslClientAuth: 'NEED', ...STORES };
    await call('POST', `${server}/api/v1/servers`, { serverId: SERVER_ID, readTimeout, ...door });
    await call('POST', `${server}/api/v1/servers/${SERVER_ID}/start`);
    for (const [dialect, proxy] of proxies) {
      await call('POST', `${this.#client}/api/v1/servers`, {
        name: dialect,
        host: '127.0.0.1',
        port: proxy.port,
        ...(papers === undefined ? {} : { tlsEnabled: true, tlsPort: proxy.port, ...STORES }),
        serverId: SERVER_ID,
        clientId: PARTNER_ID,
        password: PARTNER_PASSWORD,
        tcpipHeader: dialect,
      });
    }
    await mkdir(this.#sendTree, { recursive: true });
    await mkdir(this.#outbox, { recursive: true });
  }

  async #bringPapers({ ca, ...papers }: Papers): Promise<void> {
    for (const [base, paper] of [
      [this.#server, papers.server],
      [this.#client, papers.client],
    ] as const) {
      const stores = `${base}/api/v1/certificates`;
      await call('POST', `${stores}/keystores`, { name: STORES.keystoreName, ...paper });
      await call('POST', `${stores}/truststores`, { name: STORES.truststoreName, certificates: ca });
    }
  }

  get #sendTree(): string {
    return join(this.#directory, 'client', 'send');
  }

  get #outbox(): string {
    return join(this.#directory, 'server', 'outbox');
  }

  #arrivals(plan: TransferPlan): string {
    return plan.direction === 'push'
      ? join(this.#directory, 'server', 'inbox')
      : join(this.#directory, 'client', 'received');
  }

  /** Puts the source where the sender of this round finds it, and prepares the server app. */
  async prepare(plan: TransferPlan, source: string, name: string): Promise<void> {
    if (plan.direction === 'push') {
      await link(source, join(this.#sendTree, name));
    } else {
      await link(source, join(this.#outbox, name));
      await call('PUT', `${this.#server}/api/v1/config/files/${OUTBOX}`, recordFields(plan));
    }
  }

  /** Records that the server app makes from now on are of this round. */
  async beginRound(): Promise<void> {
    const [last] = await this.#serverRecords(1);
    this.#lastServerRecord = Number(last?.['id'] ?? 0);
  }

  /** Asks the client app for the transfer. @returns its id */
  async request(plan: TransferPlan, session: SessionPlan, name: string): Promise<string> {
    const { direction, file } = plan;
    const body = {
      server: session.dialect,
      remoteFilename: name,
      maxEntitySize: session.entity,
      syncPointsEnabled: session.interval > 0,
      syncInterval: session.interval,
      syncWindow: session.window,
      compression: session.compression,
      crc: session.crc,
      resync: session.resync,
      ...(direction === 'push'
        ? {
            filename: name,
            virtualFile: INBOX[file.format.startsWith('T') ? 'text' : 'binary'],
            ...withoutNulls(recordFields(plan)),
          }
        : { virtualFile: OUTBOX, text: file.format.startsWith('T'), localName: name }),
    };
    return insist(async () => {
      // The client app may have been killed by this very transfer, before it answered the request for it.
      const known = await this.#clientRecords(name);
      const record =
        known[0] ??
        (await call('POST', `${this.#client}/api/v1/transfers/${direction === 'push' ? 'send' : 'receive'}`, body));
      return String(record['id']);
    }, START_AGAIN_MS);
  }

  /** The record of the client app as it is when it has ended, also FAILED for good, or at the limit. */
  async finalRecord(id: string, limitMs: number): Promise<Json> {
    const limit = performance.now() + limitMs;
    let record: Json = {};
    let changed = performance.now();
    for (;;) {
      try {
        const before = record;
        record = await call('GET', `${this.#client}/api/v1/transfers/${id}`);
        if (record['status'] !== before['status'] || record['attempts'] !== before['attempts']) {
          changed = performance.now();
        }
      } catch (error) {
        if (error instanceof RestError && error.status < 500) throw error;
        changed = performance.now();
      }
      const status = String(record['status']);
      if (status === 'COMPLETED' || status === 'CANCELLED') return record;
      if (status === 'FAILED' && performance.now() - changed > GIVEN_UP_MS) return record;
      if (performance.now() > limit) return record;
      await delay(20);
    }
  }

  async #clientRecords(name: string): Promise<readonly Json[]> {
    const page = await call('GET', `${this.#client}/api/v1/transfers/history?size=10&sort=createdTime,desc`);
    return (page['content'] as readonly Json[]).filter((record) => record['remoteFilename'] === name);
  }

  async #serverRecords(size: number): Promise<readonly Json[]> {
    const page = await insist(
      () => call('GET', `${this.#server}/api/v1/transfers?size=${size}&sort=id,desc`),
      START_AGAIN_MS,
    );
    return page['content'] as readonly Json[];
  }

  async #filesIn(directory: string): Promise<Observation['delivered']> {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
    const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    const own = paths.filter((path) => !path.split('/').includes(STAGING));
    return Promise.all(own.map(async (path) => ({ path, size: (await stat(path)).size, hash: await sha256(path) })));
  }

  /** All there is to see of a transfer. */
  async observe(plan: TransferPlan, name: string, hash: string, traffic: Traffic): Promise<Observation> {
    const arrivals = this.#arrivals(plan);
    const staged = await readdir(join(arrivals, STAGING)).catch(() => []);
    const serverRecords = await this.#serverRecords(50);
    const way = plan.direction === 'push' ? 'request' : 'answer';
    const isOurs = ({ id, direction }: Json): boolean =>
      Number(id) > this.#lastServerRecord && direction === (plan.direction === 'push' ? 'RECEIVE' : 'SEND');
    return {
      hash,
      delivered: await this.#filesIn(arrivals),
      leftovers: staged,
      clientRecords: await insist(() => this.#clientRecords(name), START_AGAIN_MS),
      serverRecords: serverRecords.filter(isOurs),
      dataBytes: traffic.dataBytes[way],
      attempts: traffic.attempts[way],
      resyns: traffic.resyns,
    };
  }

  /** Removes what the round has left on purpose: its source and the delivered file. */
  async tidy(plan: TransferPlan, name: string, { delivered }: Observation): Promise<void> {
    const sender = plan.direction === 'push' ? this.#sendTree : this.#outbox;
    for (const path of [join(sender, name), ...delivered.map((one) => one.path)]) await rm(path, { force: true });
  }
}
