/** The client app over a database of the harness: REST through supertest, PeSIT over real sockets, everything it said kept. */
import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { loadPublicKey } from '@pesit-node/license';
import { HealthRegistry, Lifecycle, listen, SecretBox } from '@pesit-node/service';
import type { Config, Database, OpenApiDocument } from '@pesit-node/service';
import { answerViolations, captureLog, emptyTables, exchangedOf, testConfig } from '@pesit-node/service/testing';
import type { DatabaseHarness, TestDatabase } from '@pesit-node/service/testing';
import { expect } from '@jest/globals';
import type { Express } from 'express';
import request from 'supertest';

import { exchangeSettings } from '../../src/exchange/settings.js';
import type { ExchangeSettings } from '../../src/exchange/settings.js';
import { CLIENT_MIGRATIONS } from '../../src/migrations/index.js';
import { createNode } from '../../src/node.js';
import type { NodeOptions } from '../../src/node.js';

export const AUTHORIZATION = `Basic ${Buffer.from('admin:rest-secret-1').toString('base64')}`;

export interface ServiceOptions extends Partial<
  Pick<NodeOptions, 'configFile' | 'licenseKey' | 'licenseTimes' | 'freeSpace' | 'volumeFiles' | 'volumeLookMs'>
> {
  readonly settings?: Partial<ExchangeSettings>;
  readonly config?: Partial<Config<'client'>>;
  readonly node?: string;
  readonly pollMs?: number;
  readonly progressMs?: number;
  readonly leaseMs?: number;
  readonly placeLookMs?: number;
  readonly liveTickMs?: number;
  /** Default true: started when the queue runs. */
  readonly waitForDatabase?: boolean;
  /** Of an earlier service, whose files and secrets this one goes on with. */
  readonly data?: string;
}

const CONFIG = { 'admin.password': 'rest-secret-1', 'shutdown.drain-timeout': 0 };
const secrets = new SecretBox([Buffer.alloc(32, 7)]);
const evaluationKey = await loadPublicKey('');

export type Service = Awaited<ReturnType<typeof startService>>;

/** Every password that a test gave the service: none may be found in an answer or a log line. */
const used = new Set(['rest-secret-1']);
const answers: string[] = [];
/** Data directories and how many services run on each. */
const running = new Map<string, number>();
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

/** What the app says of its interface: the same for all services of a file, so that it is read once. */
let document: OpenApiDocument | undefined;

/** A blocked service does not show it. */
const readDocument = async (app: Express): Promise<void> => {
  if (document !== undefined) return;
  const { status, body } = await request(app).get('/openapi.json').set('Authorization', AUTHORIZATION);
  if (status === 200) document = body as OpenApiDocument;
};

/** @throws when an answer is not as the document of the interface has it */
const expectDocumented = (response: request.Response): void => {
  if (document !== undefined) expect(answerViolations(document, exchangedOf(response))).toEqual([]);
};

export const startService = async (database: Database, options: ServiceOptions = {}) => {
  const data = options.data ?? (await mkdtemp(join(tmpdir(), 'pesit-client-')));
  running.set(data, (running.get(data) ?? 0) + 1);
  const config = testConfig('client', { ...CONFIG, ...options.config, 'data.directory': data });
  const defaults = exchangeSettings(config);
  // A failure is the end, unless a test is about what follows it.
  // Longer than any partner that a test holds back, however slow the machine is.
  const once = { readTimeout: 60_000, retry: { ...defaults.retry, attempts: 1, initialDelay: 0, maxDelay: 0 } };
  const settings: ExchangeSettings = { ...defaults, ...once, ...options.settings };
  const log = captureLog();
  logs.push(log);
  const health = new HealthRegistry();
  const {
    node = 'test-node',
    pollMs = 60_000,
    progressMs = 60_000,
    licenseKey = evaluationKey,
    licenseTimes = {},
  } = options;
  const { app, license, cluster, exchange, supervisor, steps, servers, transfers, reloaded } = createNode({
    ...{
      config,
      settings,
      logger: log.logger,
      health,
      info: { name: 'pesit-client', version: '0.0.0' },
      database,
      secrets,
      licenseKey,
      licenseTimes,
    },
    ...(options.configFile === undefined ? {} : { configFile: options.configFile }),
    ...(options.freeSpace === undefined ? {} : { freeSpace: options.freeSpace }),
    ...(options.volumeFiles === undefined ? {} : { volumeFiles: options.volumeFiles }),
    ...(options.volumeLookMs === undefined ? {} : { volumeLookMs: options.volumeLookMs }),
    ...{ node, pollMs, progressMs, ...(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }) },
    ...(options.placeLookMs === undefined ? {} : { placeLookMs: options.placeLookMs }),
    ...(options.liveTickMs === undefined ? {} : { liveTickMs: options.liveTickMs }),
  });
  const lifecycle = new Lifecycle({ logger: log.logger, health });
  for (const step of [steps.database, steps.spans, steps.files, steps.exchange]) lifecycle.add(step);
  const http = await listen(app, { host: '127.0.0.1', port: 0 });
  await lifecycle.start().catch(async (error: unknown) => {
    await http.close(0);
    await rm(data, { recursive: true, force: true });
    throw error;
  });
  if (options.waitForDatabase !== false) {
    await supervisor.whenReady();
    await license.refresh();
    // Done already, or being done: either way the queue runs when this resolves.
    await exchange.queue.start();
  }

  await readDocument(app);
  const send = async (call: request.Test): Promise<request.Response> => {
    const response = await call.set('Authorization', AUTHORIZATION);
    answers.push(JSON.stringify(response.headers), response.text || '');
    expectDocumented(response);
    return response;
  };
  const base = `http://127.0.0.1:${http.port}/api/v1`;
  const agent = request(base);
  const api = {
    get: (path: string) => send(agent.get(path)),
    document: () => send(request(app).get('/openapi.json')),
    delete: (path: string) => send(agent.delete(path)),
    post: (path: string, body?: object) => {
      remember(body);
      return send(agent.post(path).send(body));
    },
    put: (path: string, body: object) => {
      remember(body);
      return send(agent.put(path).send(body));
    },
    /** A call to be completed by the test. */
    raw: (method: 'get' | 'post' | 'put' | 'head', path: string) =>
      agent[method](path).set('Authorization', AUTHORIZATION).expect(expectDocumented),
  };
  const end = async (): Promise<void> => {
    await lifecycle.stop('the test ends');
    await http.close(0);
    const others = (running.get(data) ?? 1) - 1;
    running.set(data, others);
    // They may be at work there still.
    if (others > 0) return;
    const open = (await readdir('/proc/self/fd').catch(() => [])).map((name) => `/proc/self/fd/${name}`);
    const paths = await Promise.all(open.map((name) => readlink(name).catch(() => '')));
    // A transfer that is over, however it ended, leaves no file open.
    expect(paths.filter((path) => path.startsWith(`${data}/`))).toEqual([]);
    await rm(data, { recursive: true, force: true });
  };
  let ended: Promise<void> | undefined;
  const stop = (): Promise<void> => (ended ??= end());
  return {
    api,
    app,
    cluster,
    data,
    database,
    exchange,
    health,
    http,
    license,
    log,
    /** The configuration was read again. */
    reloaded,
    servers,
    settings,
    stop,
    transfers,
  };
};

const remember = (body: object | undefined): void => {
  const password: unknown = body && (body as Readonly<Record<string, unknown>>)['password'];
  if (typeof password === 'string' && password.length > 3) used.add(password);
};

/** One database for the tests of a block, emptied before each. */
export const openDatabase = async (harness: DatabaseHarness): Promise<TestDatabase> =>
  harness.open({ migrations: [CLIENT_MIGRATIONS] });

export const empty = async (database: TestDatabase): Promise<void> => {
  await emptyTables(database, CLIENT_MIGRATIONS.schema);
  // Of no table: PI 13 of the next transfer is 1.
  await database.knex.raw('alter sequence pesit_transfer_id restart');
};
