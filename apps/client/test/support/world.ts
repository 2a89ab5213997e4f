/** What most tests need together: a service, remote servers, transfers; all of it closed after each test. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

import { afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import type { DatabaseHarness, TestDatabase } from '@pesit-node/service/testing';

import { startProxy } from './cutting-proxy.js';
import type { Cut } from './cutting-proxy.js';
import { startPartner } from './partner.js';
import type { Partner, PartnerOptions } from './partner.js';
import { startRawServer } from './raw-server.js';
import type { Choose, RawServer, Script } from './raw-server.js';
import { empty, openDatabase, startService } from './service.js';
import type { Service, ServiceOptions } from './service.js';

export const CONTENT = Buffer.from('hello world').toString('base64');

export interface Deferred {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

const open = new Set<Deferred>();

/**
 * A promise that the test resolves; at its end it is resolved all the same, so that a test that fails holds up neither its
 * partner nor the service that waits for it.
 */
export const deferred = (): Deferred => {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  const one = { promise, resolve };
  open.add(one);
  return one;
};

/** Asks again, turn by turn of the event loop, until the answer is yes; the test's own time limit ends it. */
export const until = async (isSo: () => Promise<boolean>): Promise<void> => {
  while (!(await isSo())) await new Promise(setImmediate);
};

/** Registers the hooks of a block; everything it starts is closed after the test. */
export const useWorld = (harness: DatabaseHarness) => {
  let database: TestDatabase;
  const closers: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    database = await openDatabase(harness);
  });
  beforeEach(() => empty(database));
  afterEach(async () => {
    for (const { resolve } of open) resolve();
    open.clear();
    for (const close of closers.splice(0).reverse()) await close();
  });

  const service = async (options: ServiceOptions = {}): Promise<Service> => {
    const started = await startService(database, options);
    closers.push(() => started.stop());
    return started;
  };
  const partner = async (options: PartnerOptions = {}): Promise<Partner> => {
    const started = await startPartner(options);
    closers.push(() => started.close());
    return started;
  };
  const rawServer = async (choose: Choose | Script): Promise<RawServer> => {
    const started = await startRawServer(choose);
    closers.push(() => started.close());
    return started;
  };
  const proxy = async (port: number, cuts: readonly (Cut | undefined)[]) => {
    const started = await startProxy(port, cuts);
    closers.push(() => started.close());
    return started;
  };
  /** Creates a remote server; its id. */
  const remote = async (at: Service, port: number, fields: object = {}): Promise<number> => {
    const { status, body } = await at.api.post('/servers', {
      ...{ name: 'bank', host: '127.0.0.1', port, serverId: 'BANKSRV', clientId: 'NODE1', password: 'pz#8kQ!v' },
      ...fields,
    });
    expect(status).toBe(201);
    return body.id as number;
  };
  /** Sends 11 bytes to `bank` and waits for the end. */
  const send = async (at: Service, fields: object = {}) =>
    (
      await at.api.post('/transfers/send?wait=90', {
        ...{ server: 'bank', virtualFile: 'FILE', remoteFilename: 'hello', fileContent: CONTENT },
        ...fields,
      })
    ).body;
  const receive = async (at: Service, fields: object = {}) =>
    (await at.api.post('/transfers/receive?wait=90', { server: 'bank', virtualFile: 'X', ...fields })).body;
  /** Every file below a tree of the service, staged ones included. */
  const filesIn = async (at: Service, tree: 'send' | 'received' | 'temp'): Promise<string[]> =>
    (await readdir(join(at.data, tree), { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map(({ name }) => name)
      .sort();
  return {
    ...{ service, partner, rawServer, proxy, remote, send, receive, filesIn },
    database: () => database,
  };
};

export type World = ReturnType<typeof useWorld>;
