/** Tells both apps of a pair through REST what rows need: partners, virtual files, listeners, remote servers, stores. */
import type { ClientApp } from './client-app.js';
import type { Options } from './options.js';
import type { Papers } from './papers.js';
import { call } from './rest.js';
import { freePort } from './service.js';

export const SERVER_ID = 'BENCHSRV';
export const PARTNER_ID = 'BENCH';
/** PI 5 holds eight characters. */
export const PARTNER_PASSWORD = 'bench-pw';
/** A listener with places for a crowd, its partner, and the remote server that leads there. */
export const CROWD_ID = 'CROWD';
const CROWD_PLACES = 2000;
const CROWD_SILENCE_MS = 3_600_000;
/** Virtual file that partners write. */
const INBOX = 'INBOX';
/** Virtual file that partners read; the file to send has the same name (PI 12), so it can be read again and again. */
export const OUTBOX = 'OUTBOX';
const REMOTE = 'bench';
/** Names of the stores, the same in both apps. */
const STORES = { keystoreName: 'bench', truststoreName: 'bench' } as const;

/** Where the client sends to, instead of the plain remote server and inbox. */
export interface Target {
  /** Name of the remote server. */
  readonly remote: string;
  /** Virtual file. */
  readonly inbox: string;
  /** Further settings of the request. */
  readonly request?: Readonly<Record<string, unknown>> | undefined;
}

/** The plain remote server and inbox. */
export const PLAIN: Target = { remote: REMOTE, inbox: INBOX };

type Settings = Readonly<Record<string, unknown>>;

export class PairSetup {
  readonly #server: string;
  readonly #client: ClientApp;
  #port = 0;
  #crowdPort = 0;

  /** @param server base address of the server app */
  constructor(server: string, client: ClientApp) {
    this.#server = server;
    this.#client = client;
  }

  /** Port of the PeSIT listener, once there is one. */
  get port(): number {
    return this.#port;
  }

  /** Port of the listener of the crowd, once there is one. */
  get crowdPort(): number {
    return this.#crowdPort;
  }

  /** A started listener, one partner, its two virtual files, and the remote server that leads there. */
  async start({ entity, interval, window }: Options, papers: Papers | undefined): Promise<void> {
    const port = await freePort();
    this.#port = port;
    // The largest article that one entity carries whole: PI 25 less the 6 bytes of the DTF header (pesit-e.md §1).
    const recordLength = entity - 6;
    await this.#addPartner(PARTNER_ID);
    await this.addInbox(INBOX, { recordLength });
    await call('POST', `${this.#server}/api/v1/config/files`, {
      fileId: OUTBOX,
      direction: 'SEND',
      sendDirectory: 'outbox',
      recordLength,
    });
    const stores = papers === undefined ? {} : STORES;
    if (papers !== undefined) await this.#bring(papers);
    // The listener lowers nothing that a remote server asks for (PI 7).
    await this.#addListener(SERVER_ID, {
      ...(papers === undefined ? { port } : { port: null, tlsPort: port, sslEnabled: true, sslClientAuth: 'NEED' }),
      ...stores,
      syncInterval: 65_534,
      syncWindow: 255,
    });
    const secured = papers === undefined ? {} : { ...stores, tlsEnabled: true, tlsPort: port };
    await this.addRemote(REMOTE, { port, entity, interval, window }, secured);
  }

  /** A remote server that leads to the listener, directly or by another port. */
  async addRemote(
    name: string,
    remote: { readonly port: number } & Pick<Options, 'entity' | 'interval' | 'window'>,
    more: Settings = {},
  ): Promise<void> {
    const { port, entity, interval, window } = remote;
    await this.#client.addRemote({
      name,
      host: '127.0.0.1',
      port,
      serverId: SERVER_ID,
      clientId: PARTNER_ID,
      password: PARTNER_PASSWORD,
      maxEntitySize: entity,
      syncInterval: interval,
      syncWindow: window,
      ...more,
    });
  }

  /** A virtual file that partners write, with settings of its own. */
  async addInbox(fileId: string, settings: Settings): Promise<void> {
    await call('POST', `${this.#server}/api/v1/config/files`, {
      fileId,
      direction: 'RECEIVE',
      receiveDirectory: 'inbox',
      receiveFilenamePattern: '${uuid}',
      ...settings,
    });
  }

  /** As many partners, each with a remote server of its own. */
  async addPartners(count: number, options: Options): Promise<readonly Target[]> {
    const names = Array.from({ length: count }, (_, index) => `${PARTNER_ID}${index}`);
    for (const clientId of names) {
      await this.#addPartner(clientId);
      await this.addRemote(clientId, { ...options, port: this.#port }, { clientId });
    }
    return names.map((remote) => ({ remote, inbox: INBOX, request: { partnerId: remote } }));
  }

  /** A listener with room for a crowd, and the partner whose sessions they all are. */
  async addCrowd(options: Options): Promise<Target> {
    this.#crowdPort = await freePort();
    await this.#addListener(CROWD_ID, {
      ...{ port: this.#crowdPort, maxConnections: CROWD_PLACES, readTimeout: CROWD_SILENCE_MS },
    });
    await this.#addPartner(CROWD_ID, { maxConnections: CROWD_PLACES });
    const ids = { serverId: CROWD_ID, clientId: CROWD_ID };
    await this.addRemote(CROWD_ID, { ...options, port: this.#crowdPort }, ids);
    return { remote: CROWD_ID, inbox: INBOX, request: { partnerId: CROWD_ID } };
  }

  async #addListener(serverId: string, settings: Settings): Promise<void> {
    const path = `${this.#server}/api/v1/servers`;
    await call('POST', path, { serverId, autoStart: false, ...settings });
    await call('POST', `${path}/${serverId}/start`);
  }

  #addPartner(partnerId: string, more: Settings = {}): Promise<unknown> {
    return call('POST', `${this.#server}/api/v1/config/partners`, {
      partnerId,
      password: PARTNER_PASSWORD,
      allowedOperations: ['READ', 'WRITE'],
      enabled: true,
      ...more,
    });
  }

  /** The stores of both apps. */
  async #bring({ ca, ...identity }: Papers): Promise<void> {
    for (const base of [this.#server, this.#client.service.base]) {
      const path = `${base}/api/v1/certificates`;
      await call('POST', `${path}/keystores`, { name: STORES.keystoreName, ...identity });
      await call('POST', `${path}/truststores`, { name: STORES.truststoreName, certificates: ca });
    }
  }
}
