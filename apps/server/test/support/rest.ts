import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { Certificates, LocalAuthority } from '@pesit-node/certificates';
import { createHooks } from '@pesit-node/hooks';
import { KnexLicenseStore, LICENSE_MIGRATIONS, LicenseKeeper, loadPublicKey } from '@pesit-node/license';
import { Audit, eventStream, HealthRegistry, PeriodicWork, Traces } from '@pesit-node/service';
import type { Config, OpenApiDocument } from '@pesit-node/service';
import {
  answerViolations,
  captureLog,
  emptyTables,
  exchangedOf,
  testConfig,
  testMetrics,
} from '@pesit-node/service/testing';
import type { CapturedLog, DatabaseHarness, TestDatabase } from '@pesit-node/service/testing';
import { LocalBus, PodRequests } from '@pesit-node/cluster';
import { LocalFileStores } from '@pesit-node/storage';
import { LiveTransfers } from '@pesit-node/transfers';
import type { Express } from 'express';
import request from 'supertest';
import type { Response, Test } from 'supertest';

import { createApp } from '../../src/app.js';
import { availableFiles } from '../../src/files/available.js';
import { Directories } from '../../src/files/directories.js';
import { listenerRequests } from '../../src/listeners/requests.js';
import type { BindPort } from '../../src/listeners/running.js';
import { ListenersHere } from '../../src/listeners/listeners-here.js';
import { PodLines } from '../../src/listeners/pod-lines.js';
import { ListenerService } from '../../src/listeners/service.js';
import { ListenerStore } from '../../src/listeners/store.js';
import { MIGRATIONS } from '../../src/migrations/index.js';
import { partnerService } from '../../src/partners/service.js';
import { PartnerStore } from '../../src/partners/store.js';
import { RunningTransfers } from '../../src/recovery/running-transfers.js';
import { SessionService } from '../../src/sessions/service.js';
import { SessionsHere } from '../../src/sessions/sessions-here.js';
import { toTransfer } from '../../src/transfers/answers.js';
import { cancelling } from '../../src/transfers/cancel.js';
import { transferContent } from '../../src/transfers/content.js';
import { liveSource } from '../../src/transfers/live-source.js';
import { TransferStore } from '../../src/transfers/store.js';
import { partnerTests } from '../../src/trials/partner-tests.js';
import { Trials } from '../../src/trials/trials.js';
import { virtualFileService } from '../../src/virtual-files/service.js';
import { VirtualFileStore } from '../../src/virtual-files/store.js';
import { passwords, secrets } from './passwords.js';

type Body = Readonly<Record<string, unknown>>;

const key = await loadPublicKey('');

export const ADMIN = { username: 'operator', password: 'adm:in-Pa55' } as const;

/** Every password that a test of this file uses; none may appear in an answer or a log line. */
const SECRETS: string[] = [ADMIN.password, Buffer.from(`${ADMIN.username}:${ADMIN.password}`).toString('base64')];

/** A partner password, remembered as a secret. */
export const secret = (password: string): string => {
  SECRETS.push(password);
  return password;
};

export interface Rest {
  readonly app: Express;
  readonly database: TestDatabase;
  readonly data: string;
  readonly log: CapturedLog;
  readonly listeners: ListenerService;
  readonly audit: Audit;
  readonly listenersHere: ListenersHere;
  /** Lets time pass for the listeners, for which it stands still otherwise. */
  readonly pass: (ms: number) => void;
  readonly get: (path: string) => Promise<Response>;
  readonly post: (path: string, body?: Body) => Promise<Response>;
  readonly put: (path: string, body: Body) => Promise<Response>;
  readonly delete: (path: string) => Promise<Response>;
}

/** A pod without a cluster. */
const ALONE = { enabled: false, clusterName: 'pesit', members: [], memberCount: 0 };
const alone = { ...ALONE, nodeName: 'rest', isLeader: true, redis: null };

/** Takes the port for real; nobody is served. */
const bindOnly: BindPort = async ({ settings }) => {
  const server = createServer((socket) => socket.destroy());
  const failed = once(server, 'error').then(([error]) => Promise.reject(error as Error));
  server.listen(settings().port ?? 0, '0.0.0.0');
  await Promise.race([once(server, 'listening'), failed]);
  failed.catch(() => undefined);
  const closed = once(server, 'close').then(() => undefined);
  const close = (): Promise<void> => {
    server.close();
    return closed;
  };
  return { activeConnections: 0, abandon: close, close };
};

/** The REST interface over a fresh database and data directory; tables are emptied before each test. */
export const useRest = (harness: DatabaseHarness, overrides: Partial<Config<'server'>> = {}): Rest => {
  const rest = { log: captureLog() } as { -readonly [K in keyof Rest]: Rest[K] };
  const answers: string[] = [];
  const began = Date.now();
  let passed = 0;
  rest.pass = (ms) => {
    passed += ms;
  };

  beforeAll(async () => {
    rest.database = await harness.open({ migrations: [LICENSE_MIGRATIONS, MIGRATIONS] });
  });

  beforeEach(async () => {
    await emptyTables(rest.database, 'pesit_server');
    rest.data = await mkdtemp(join(tmpdir(), 'pesit-rest-'));
    const config = testConfig('server', {
      'data.directory': rest.data,
      'storage.roots': [rest.data],
      'admin.username': ADMIN.username,
      'admin.password': ADMIN.password,
      ...overrides,
    });
    const { knex } = rest.database;
    const events = eventStream({ app: 'server', node: 'rest' }, rest.log.logger);
    // Never started: nothing happens beside a test.
    const periodic = new PeriodicWork({ logger: rest.log.logger });
    rest.audit = new Audit({
      ...{ knex, asLeader: (work) => work(knex), node: 'rest', config, periodic, logger: rest.log.logger },
    });
    const listenerStore = new ListenerStore(knex);
    rest.listenersHere = new ListenersHere({
      store: listenerStore,
      bind: bindOnly,
      logger: rest.log.logger,
      drainMs: 1000,
      now: () => began + passed,
      changed: () => undefined,
    });
    const pod = { name: 'rest', instance: randomUUID() };
    rest.listeners = new ListenerService({
      ...{ events, audit: rest.audit, pod, store: listenerStore, here: rest.listenersHere, logger: rest.log.logger },
      lines: new PodLines(knex, pod.instance),
      living: () => [pod],
      tell: () => undefined,
      now: () => began + passed,
    });
    const store = new KnexLicenseStore(knex);
    const keeper = { store, key, evaluationDays: 30, periodic, logger: rest.log.logger, node: 'rest' };
    const license = new LicenseKeeper(keeper);
    await license.refresh();
    const certificates = new Certificates({
      ...{ knex, periodic, secrets },
      hints: { tell: () => undefined, subscribe: () => () => undefined },
    });
    const hooks = createHooks({
      ...{ knex, secrets, config, periodic, events, node: 'rest', metrics: testMetrics('server'), audit: rest.audit },
      ...{ app: 'server', logger: rest.log.logger, supervisor: { ready: true }, asLeader: (work) => work(knex) },
      which: () => 'failures',
      recordOf: toTransfer,
      casOf: () => Promise.resolve(undefined),
      requireTruststore: (truststoreName) => certificates.require({ truststoreName }),
    });
    const transfers = new TransferStore(knex);
    const directories = new Directories(config);
    const stores = new LocalFileStores();
    const volumes = { fault: undefined };
    const [partners, virtualFiles] = [new PartnerStore(knex), new VirtualFileStore(knex)];
    const requests = new PodRequests({
      ...{ knex, instance: pod.instance, others: () => [], isAlone: true, periodic, logger: rest.log.logger },
      events: new LocalBus().join(),
    });
    const app = (rest.app = createApp({
      config,
      info: { name: 'pesit-server', version: '0.0.0' },
      logger: rest.log.logger,
      health: new HealthRegistry(),
      metrics: testMetrics('server'),
      events,
      database: { ready: true, statusReason: undefined },
      periodic,
      license,
      audit: rest.audit,
      cluster: { status: () => Promise.resolve(alone), overview: () => Promise.resolve(ALONE) },
      certificates,
      authority: new LocalAuthority({ knex, secrets, certificates }),
      knex,
      partners: partnerService({ config, partners, passwords, events, audit: rest.audit }),
      virtualFiles: virtualFileService({ virtualFiles, directories, events, audit: rest.audit }),
      listeners: rest.listeners,
      listenerRequests: listenerRequests({ listeners: rest.listeners, directories, certificates }),
      transfers,
      cancel: cancelling({ store: transfers, running: new RunningTransfers(), requests }),
      testPartner: partnerTests({
        ...{ config, partners, virtualFiles, listeners: rest.listeners, listenersHere: rest.listenersHere, events },
        ...{ trials: new Trials(), tls: { toItself: () => () => Promise.reject(new Error('no TLS here')) } },
      }),
      openContent: transferContent({ config, transfers, directories, stores, volumes, audit: rest.audit }),
      sessions: new SessionService({ here: new SessionsHere(events, 'rest'), requests, listeners: listenerStore }),
      live: new LiveTransfers({
        ...{ events, periodic, source: liveSource(knex, transfers), mostConnections: () => 100 },
        hints: { tell: () => undefined, subscribe: () => () => undefined },
      }),
      traces: new Traces({
        ...{ knex, asLeader: (work) => work(knex), node: 'rest', retentionDays: 7, periodic, logger: rest.log.logger },
        owners: { table: 'partners', key: 'partner_id' },
      }),
      available: availableFiles({
        ...{ config, partners, listeners: listenerStore },
        files: { virtualFiles, directories, stores, volumes, outgoing: new Set() },
        journal: { sentAmong: () => Promise.resolve(new Map()) },
      }),
      hooks,
    }));
    const send = async (test: Test, body?: Body): Promise<Response> => {
      const response = await test.auth(ADMIN.username, ADMIN.password).send(body);
      answers.push(response.text, JSON.stringify(response.headers));
      expect(answerViolations(await document, exchangedOf(response))).toEqual([]);
      return response;
    };
    const document = Promise.resolve(request(app).get('/openapi.json').auth(ADMIN.username, ADMIN.password)).then(
      (response) => response.body as OpenApiDocument,
    );
    rest.get = (path) => send(request(app).get(path));
    rest.post = (path, body) => send(request(app).post(path), body ?? {});
    rest.put = (path, body) => send(request(app).put(path), body);
    rest.delete = (path) => send(request(app).delete(path));
  });

  afterEach(async () => {
    await rest.listenersHere.close();
    await rm(rest.data, { recursive: true, force: true });
  });

  afterAll(() => {
    const said = [...answers, ...rest.log.lines].join('\n');
    for (const text of SECRETS) expect(said).not.toContain(text);
    expect(said).not.toContain('$scrypt$');
  });

  return rest;
};

/** The fields named by a 400 or 422. */
export const faultyFields = (response: Response): readonly string[] =>
  ((response.body as { details?: { field: string }[] }).details ?? []).map(({ field }) => field);
