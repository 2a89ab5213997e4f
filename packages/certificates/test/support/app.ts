/** The endpoints of the stores over a database of the harness, and pods that share it. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { createHttpApp, eventStream, HealthRegistry, PeriodicWork, SecretBox } from '@pesit-node/service';
import type { ChangeAudit, MigrationSet, OpenApiDocument } from '@pesit-node/service';
import {
  answerViolations,
  captureLog,
  emptyTables,
  exchangedOf,
  testConfig,
  testMetrics,
} from '@pesit-node/service/testing';
import type { DatabaseHarness, TestDatabase } from '@pesit-node/service/testing';
import type { Express } from 'express';
import request from 'supertest';
import type { Response, Test } from 'supertest';

import { Certificates } from '../../src/certificates.js';
import type { StoreUse } from '../../src/ports.js';
import { authorityRoutes, publicRoutes } from '../../src/routes/authority.js';
import { certificateRoutes } from '../../src/routes/routes.js';
import { LocalAuthority } from '../../src/authority/authority.js';
import { ownLists } from '../../src/authority/own-lists.js';
import { createAuthorityTables } from '../../src/authority/tables.js';
import { createExpiryTables, createFetchedCrlTables, createStoreTables } from '../../src/tables.js';

const nothing = (): Promise<void> => Promise.resolve();
/** The apps have one, and its tests. */
export const NO_AUDIT: ChangeAudit = { change: () => nothing, entry: () => nothing };

export const STORES: MigrationSet = {
  schema: 'pesit_server',
  migrations: [
    { name: '0001-stores', up: createStoreTables },
    { name: '0002-expiry', up: createExpiryTables },
    { name: '0003-authority', up: createAuthorityTables },
    { name: '0004-fetched-crls', up: createFetchedCrlTables },
  ],
};

export const secrets = new SecretBox([Buffer.alloc(32, 7)]);
const LOGIN = { username: 'admin', password: 'rest-secret-1' };

export interface Pod {
  readonly certificates: Certificates;
  readonly authority: LocalAuthority;
  readonly app: Express;
}

/** Pods hear each other's hints unless `deaf`. */
export const useStores = (harness: DatabaseHarness) => {
  const log = captureLog();
  const answers: string[] = [];
  const hidden: string[] = [LOGIN.password];
  const listeners = new Set<() => Promise<void>>();
  const pods: { readonly stop: () => Promise<void> }[] = [];
  const uses: StoreUse[] = [];
  /** The clock of the local CA. */
  const clock = { now: Date.now() };
  let database: TestDatabase;

  beforeAll(async () => {
    database = await harness.open({ migrations: [STORES] });
  });
  beforeEach(() => emptyTables(database, 'pesit_server'));
  beforeEach(() => {
    clock.now = Date.now();
  });
  afterEach(async () => {
    await Promise.all(pods.splice(0).map((pod) => pod.stop()));
    uses.splice(0);
    listeners.clear();
  });
  afterAll(() => {
    const said = [...answers, ...log.lines].join('\n');
    // The document of the interface shows what the PEM of a key looks like.
    expect(said.replaceAll('-----BEGIN PRIVATE KEY-----\\nMIGH…', '')).not.toMatch(/BEGIN [A-Z ]*PRIVATE KEY/);
    for (const text of hidden) expect(said).not.toContain(text);
  });

  /** @param options `lookMs`, and whether hints of other pods are lost */
  const pod = (options: { readonly lookMs?: number; readonly deaf?: boolean } = {}): Pod => {
    const periodic = new PeriodicWork({ logger: log.logger });
    const certificates = new Certificates({
      ...{ knex: database.knex, secrets, periodic, lookMs: options.lookMs ?? 3_600_000, own: ownLists(database.knex) },
      hints: {
        tell: () => {
          for (const listener of listeners) void listener();
        },
        subscribe: (listener) => {
          if (options.deaf !== true) listeners.add(listener);
          return () => listeners.delete(listener);
        },
      },
    });
    const authority = new LocalAuthority({ knex: database.knex, secrets, certificates, now: () => clock.now });
    periodic.start();
    pods.push({ stop: () => periodic.stop() });
    const events = eventStream({ app: 'server', node: 'pod' }, log.logger);
    const app = createHttpApp({
      config: testConfig('server', { 'data.directory': '/nowhere', 'admin.password': LOGIN.password }),
      info: { name: 'pesit-server', version: '0.0.0' },
      logger: log.logger,
      health: new HealthRegistry(),
      metrics: testMetrics('server'),
      events,
      open: (routes) => publicRoutes(routes, authority),
      routes: (routes) => {
        authorityRoutes(routes, { authority, knex: database.knex, events, audit: NO_AUDIT });
        certificateRoutes(routes, { certificates, uses: () => Promise.resolve(uses), events, audit: NO_AUDIT });
      },
    });
    return { certificates, authority, app };
  };

  const rest = ({ app }: Pod) => {
    const document = request(app)
      .get('/openapi.json')
      .auth(LOGIN.username, LOGIN.password)
      .then(({ body }) => body as OpenApiDocument);
    const send = async (test: Test): Promise<Response> => {
      const response = await test.auth(LOGIN.username, LOGIN.password);
      answers.push(response.text, JSON.stringify(response.headers));
      expect(answerViolations(await document, exchangedOf(response))).toEqual([]);
      return response;
    };
    const at = (path: string): string => `/api/v1/certificates${path}`;
    return {
      send,
      get: (path: string) => send(request(app).get(at(path))),
      post: (path: string, body: object) => send(request(app).post(at(path)).send(body)),
      put: (path: string, body: object) => send(request(app).put(at(path)).send(body)),
      delete: (path: string) => send(request(app).delete(at(path))),
      /** A form with a file, last. */
      form: (method: 'post' | 'put', path: string, fields: Readonly<Record<string, string>>, file: Buffer) => {
        const call = request(app)[method](at(path));
        for (const [name, value] of Object.entries(fields)) void call.field(name, value);
        return send(call.attach('file', file, 'upload.bin'));
      },
    };
  };

  return {
    pod,
    rest,
    uses,
    clock,
    log,
    database: () => database,
    /** A text that must be in no answer and no log line. */
    hide: <T extends string>(text: T): T => {
      hidden.push(text);
      return text;
    },
  };
};
