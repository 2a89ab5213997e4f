/** The client app over a database of the harness: REST through supertest, PeSIT over real sockets, everything it said kept. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { HealthRegistry, SecretBox } from '@pesit-node/service';
import type { Config } from '@pesit-node/service';
import { captureLog, emptyTables, testConfig } from '@pesit-node/service/testing';
import type { DatabaseHarness, TestDatabase } from '@pesit-node/service/testing';
import { expect } from '@jest/globals';
import request from 'supertest';

import { createApp } from '../../src/app.js';
import { createExchange } from '../../src/exchange/exchange.js';
import type { Exchange } from '../../src/exchange/exchange.js';
import { ReceivedTree } from '../../src/exchange/received-tree.js';
import { exchangeSettings } from '../../src/exchange/settings.js';
import type { ExchangeSettings } from '../../src/exchange/settings.js';
import { CLIENT_MIGRATIONS } from '../../src/migrations/index.js';
import { remoteServerStore } from '../../src/remote-servers/store.js';
import { SendTree } from '../../src/transfers/send-tree.js';
import { transferStore } from '../../src/transfers/store.js';

const AUTHORIZATION = `Basic ${Buffer.from('admin:rest-secret-1').toString('base64')}`;

export interface ServiceOptions {
  readonly settings?: Partial<ExchangeSettings>;
  readonly config?: Partial<Config<'client'>>;
  readonly node?: string;
  readonly pollMs?: number;
  readonly progressMs?: number;
  /** Of an earlier service, whose files and secrets this one goes on with. */
  readonly data?: string;
}

const secrets = new SecretBox([Buffer.alloc(32, 7)]);

export type Service = Awaited<ReturnType<typeof startService>>;

/** Every password that a test gave the service: none may be found in an answer or a log line. */
const used = new Set(['rest-secret-1']);
const answers: string[] = [];
const logs: { readonly lines: readonly string[] }[] = [];

/** To be called at the end of a test file. */
export const expectNoSecrets = (): void => {
  const said = [...answers, ...logs.flatMap(({ lines }) => lines)];
  expect(said.length).toBeGreaterThan(10);
  for (const secret of used) {
    const encoded = Buffer.from(secret).toString('base64');
    expect(said.filter((text) => text.includes(secret) || text.includes(encoded))).toEqual([]);
  }
};

export const startService = async (database: TestDatabase, options: ServiceOptions = {}) => {
  const data = options.data ?? (await mkdtemp(join(tmpdir(), 'pesit-client-')));
  const config = testConfig('client', { 'data.directory': data, 'admin.password': 'rest-secret-1', ...options.config });
  const settings: ExchangeSettings = { ...exchangeSettings(config), readTimeout: 5000, ...options.settings };
  const log = captureLog();
  logs.push(log);
  const servers = remoteServerStore(database.knex, secrets);
  const transfers = transferStore(database.knex);
  const sendTree = new SendTree(data);
  const receivedTree = new ReceivedTree(data);
  await sendTree.prepare();
  await receivedTree.prepare();
  const { logger } = log;
  const { node = 'test-node', pollMs = 60_000, progressMs = 60_000 } = options;
  const exchange: Exchange = createExchange({
    ...{ settings, secrets, transfers, servers, receivedTree, logger, node, pollMs, progressMs },
  });
  const health = new HealthRegistry();
  const state = { ready: true, statusReason: undefined as string | undefined };
  const app = createApp({
    ...{ config, settings, version: '0.0.0', logger, health, database: state },
    ...{ servers, transfers, sendTree, receivedTree, exchange },
  });
  await exchange.queue.start();

  const send = async (call: request.Test): Promise<request.Response> => {
    const response = await call.set('Authorization', AUTHORIZATION);
    answers.push(JSON.stringify(response.headers), response.text || '');
    return response;
  };
  const api = {
    get: (path: string) => send(request(app).get(`/api/v1${path}`)),
    delete: (path: string) => send(request(app).delete(`/api/v1${path}`)),
    post: (path: string, body?: object) => {
      remember(body);
      return send(request(app).post(`/api/v1${path}`).send(body));
    },
    put: (path: string, body: object) => {
      remember(body);
      return send(request(app).put(`/api/v1${path}`).send(body));
    },
    /** A call to be completed by the test. */
    raw: (method: 'get' | 'post' | 'put' | 'head', path: string) =>
      request(app)[method](`/api/v1${path}`).set('Authorization', AUTHORIZATION),
  };
  const stop = async (drainMs = 0): Promise<void> => {
    await exchange.stop(drainMs);
    if (options.data === undefined) await rm(data, { recursive: true, force: true });
  };
  return { app, api, data, database, exchange, log, servers, settings, stop, transfers, config };
};

const remember = (body: object | undefined): void => {
  const password: unknown = body && (body as Readonly<Record<string, unknown>>)['password'];
  if (typeof password === 'string' && password.length > 3) used.add(password);
};

/** One database for the tests of a block, emptied before each. */
export const openDatabase = async (harness: DatabaseHarness): Promise<TestDatabase> =>
  harness.open({ migrations: [CLIENT_MIGRATIONS] });

export const empty = (database: TestDatabase): Promise<void> => emptyTables(database, CLIENT_MIGRATIONS.schema);
