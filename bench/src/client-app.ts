/** The client app as a process, and its transfers. */
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freshDatabase, type DatabaseKind } from './database.js';
import { call } from './rest.js';
import { Service } from './service.js';

const FINAL = ['COMPLETED', 'FAILED', 'CANCELLED'];

/** Sessions of the client: one kept open for all transfers, or a new one for each. */
export type Sessions = 'kept' | 'each';

export type Direction = 'push' | 'pull';

/** Settings in which apps differ from the defaults. */
export interface AppOptions {
  readonly sessions: Sessions;
  /** Transfers of the client at a time. Default 32. */
  readonly atOnce?: number;
  /** Environment of the apps. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Record of the client for a transfer that has ended. */
export type Ended = Readonly<Record<string, unknown>>;

/** Paths of the files under `directory`, without those that are staged. */
export const filesIn = async (directory: string): Promise<string[]> => {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('.pesit'))
    .map((entry) => join(entry.parentPath, entry.name));
};

export class ClientApp {
  readonly service: Service;

  private constructor(service: Service) {
    this.service = service;
  }

  /** Starts it with its data in `directory`. */
  static async start(directory: string, database: DatabaseKind, options: AppOptions): Promise<ClientApp> {
    const { sessions, atOnce = 32, settings = {} } = options;
    const service = await Service.start('client', directory, {
      ...(await freshDatabase(database, 'client')),
      ...settings,
      TRANSFER_EXECUTOR_CORE_POOL_SIZE: String(atOnce),
      TRANSFER_EXECUTOR_MAX_POOL_SIZE: String(atOnce),
      TRANSFER_CONNECTION_POOL_MAX_CONNECTIONS_PER_HOST: String(atOnce),
      ...(sessions === 'each' ? { TRANSFER_CONNECTION_POOL_IDLE_TIMEOUT: '0' } : {}),
    });
    const app = new ClientApp(service);
    await mkdir(app.sendDirectory, { recursive: true });
    return app;
  }

  /** The folder whose files it can send. */
  get sendDirectory(): string {
    return join(this.service.dataDirectory, 'send');
  }

  /** The folder where pulled files arrive. */
  get receivedDirectory(): string {
    return join(this.service.dataDirectory, 'received');
  }

  async addRemote(fields: Readonly<Record<string, unknown>>): Promise<void> {
    await call('POST', `${this.service.base}/api/v1/servers`, fields);
  }

  /** Asks for a transfer and waits for its end. @throws Error with the record when it did not complete */
  async transfer(direction: Direction, request: Readonly<Record<string, unknown>>): Promise<Ended> {
    const api = `${this.service.base}/api/v1/transfers`;
    let record = await call('POST', `${api}/${direction === 'push' ? 'send' : 'receive'}?wait=30`, request);
    while (!FINAL.includes(record['status'] as string)) {
      await delay(50);
      record = await call('GET', `${api}/${record['id'] as string}`);
    }
    if (record['status'] !== 'COMPLETED') {
      throw this.service.failure(`did not complete a transfer: ${JSON.stringify(record)}`);
    }
    return record;
  }
}
