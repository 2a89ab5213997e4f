import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { loadPublicKey } from '@pesit-node/license';
import { PesitRequester } from '@pesit-node/net';
import type { RequesterOptions } from '@pesit-node/net';
import type { CreateRequest, SelectRequest } from '@pesit-node/protocol';
import { HealthRegistry, listen, PasswordVerifier } from '@pesit-node/service';
import type { Config, HttpServer, OpenApiDocument } from '@pesit-node/service';
import { answerViolations, captureLog, emptyTables, testConfig, freePort } from '@pesit-node/service/testing';
import type { CapturedLog, DatabaseHarness, TestDatabase } from '@pesit-node/service/testing';
import { FileSource, formatOf, StagedFile, STAGING_DIRECTORY } from '@pesit-node/storage';
import type { RecordSettings } from '@pesit-node/storage';
import { createNode } from '../../src/node.js';
import type { NodeOptions, ServerNode } from '../../src/node.js';
import { MIGRATIONS } from '../../src/migrations/index.js';
import { passwords, secrets } from './passwords.js';

type Json = Readonly<Record<string, unknown>>;

export const PASSWORD = 'qV8#kT2z';
const ADMIN = { username: 'operator', password: 'adm:in-Pa55' };
const LOGIN = `Basic ${Buffer.from(`${ADMIN.username}:${ADMIN.password}`).toString('base64')}`;

/** A connection for each request: one that is kept may be closed by the server just when a slow test goes on. */
const ask = async (
  port: number,
  method: string,
  path: string,
  body?: Json,
): Promise<{ status: number; contentType: string | undefined; text: string }> => {
  const headers = { authorization: LOGIN, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
  const request = httpRequest({ port, host: '127.0.0.1', agent: false, method: method.toUpperCase(), path, headers });
  request.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode ?? 0,
    contentType: response.headers['content-type'],
    text: Buffer.concat(chunks).toString(),
  };
};

/** What the app says of its interface: the same for all nodes of a file, so that it is read once. */
let document: OpenApiDocument | undefined;

/** Undefined: a blocked service does not show it. */
const documentAt = async (port: number): Promise<OpenApiDocument | undefined> => {
  if (document !== undefined) return document;
  const { status, text } = await ask(port, 'get', '/openapi.json');
  return status === 200 ? (document ??= JSON.parse(text) as OpenApiDocument) : undefined;
};

/** What this process has open there: a transfer that is over, however it ended, leaves none. */
const openFilesBelow = async (directory: string): Promise<readonly string[]> => {
  const descriptors = await readdir('/proc/self/fd').catch(() => []);
  const paths = await Promise.all(descriptors.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
  return paths.filter((path) => path.startsWith(`${directory}/`));
};

/** Data directories and how many nodes run on each: pods of one test share theirs. */
const running = new Map<string, number>();

/** A record of the history, as the interface answers it. */
export interface TransferRecord {
  readonly id: number;
  readonly status: string;
  readonly diagnostic: string | null;
  readonly errorMessage: string | null;
  readonly [field: string]: unknown;
}

/** Hashed once for all tests, and verified once. */
let hash: Promise<string> | undefined;
const verifier = new PasswordVerifier({ check: (password, stored) => passwords.verify(password, stored) });

const licenseKey = await loadPublicKey('');

export class TestNode {
  readonly database: TestDatabase;
  readonly data: string;
  readonly log: CapturedLog;
  readonly config: Config<'server'>;
  /** Everything that was answered, to be searched for secrets. */
  readonly answers: string[] = [];
  node: ServerNode;
  port = 0;
  readonly #options: Partial<NodeOptions>;
  readonly #sessions: PesitRequester[] = [];
  #http: HttpServer | undefined;
  #transferId = 100;

  constructor(
    database: TestDatabase,
    data: string,
    log: CapturedLog,
    { settings, ...options }: Partial<NodeOptions> & Pick<UseNodeOptions, 'settings'>,
  ) {
    this.database = database;
    this.data = data;
    this.log = log;
    this.config = testConfig('server', {
      'data.directory': data,
      'storage.roots': [data],
      'admin.username': ADMIN.username,
      'admin.password': ADMIN.password,
      'shutdown.drain-timeout': 5,
      'listener.host': '127.0.0.1',
      ...(typeof settings === 'function' ? settings(data) : settings),
    });
    this.#options = options;
    this.node = this.#create();
  }

  #create(): ServerNode {
    return createNode({
      config: this.config,
      logger: this.log.logger,
      health: new HealthRegistry(),
      info: { name: 'pesit-server', version: '0.0.0' },
      database: this.database,
      licenseKey,
      node: 'node-a',
      secrets,
      passwords,
      verifier,
      ...this.#options,
    });
  }

  async start(): Promise<void> {
    running.set(this.data, (running.get(this.data) ?? 0) + 1);
    this.#http = await listen(this.node.app, { host: '127.0.0.1', port: 0 });
    await this.node.databaseStep.start?.(new AbortController().signal);
    await this.node.exchangeStep.start?.(new AbortController().signal);
    await this.node.supervisor.whenReady();
    // What a node begins with would go on beside the test otherwise.
    await this.node.whenBegun();
    await this.node.license.refresh();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#sessions.splice(0).map((session) => session.release()));
    await this.node.exchangeStep.stop?.();
    await this.node.databaseStep.stop?.();
    await this.#http?.close();
    const others = (running.get(this.data) ?? 1) - 1;
    running.set(this.data, others);
    if (others === 0) expect(await openFilesBelow(this.data)).toEqual([]);
  }

  /** As after the end of the process: a new one on the same data. */
  async restart(): Promise<void> {
    await this.stop();
    this.node = this.#create();
    await this.start();
  }

  /** The same, with the listener: it runs when what was left behind is brought to its end. */
  async restartListening(serverId = 'NODE1'): Promise<void> {
    const path = `/api/v1/servers/${serverId}`;
    await this.call('put', path, { autoStart: true });
    await this.restart();
    await until(async () => (await this.call('get', path))['status'] === 'RUNNING' || undefined);
  }

  async call(method: 'get' | 'post' | 'put' | 'delete', path: string, body?: Json): Promise<Json> {
    const text = await this.text(method, path, body);
    return (text === '' ? {} : JSON.parse(text)) as Json;
  }

  /** Port of the REST interface, and the login of an admin. */
  get restPort(): number {
    return this.#http?.port ?? 0;
  }

  readonly authorization = LOGIN;

  /** What the readiness probe says. */
  async readiness(): Promise<{ readonly code: number; readonly components: Readonly<Record<string, Json>> }> {
    const { status: code, text } = await ask(this.#http?.port ?? 0, 'get', '/actuator/health/readiness');
    return { code, components: (JSON.parse(text) as { components: Readonly<Record<string, Json>> }).components };
  }

  /** An answer that need not be JSON. */
  async text(method: string, path: string, body?: Json): Promise<string> {
    const port = this.#http?.port ?? 0;
    const { status, contentType, text } = await ask(port, method, path, body);
    this.answers.push(text);
    const documented = await documentAt(port);
    if (documented !== undefined) {
      const [pathname = path] = path.split('?', 1);
      const asked = { method: method.toUpperCase(), path: pathname };
      expect(answerViolations(documented, { ...asked, status, contentType, text })).toEqual([]);
    }
    if (status >= 400) throw new Error(`${method} ${path}: ${status} ${text}`);
    return text;
  }

  /** A running listener NODE1, a partner ACME, and the virtual files IN, OUT and BOTH. */
  async configure(listener: Json = {}): Promise<void> {
    this.port = await freePort();
    await this.call('post', '/api/v1/servers', { serverId: 'NODE1', port: this.port, autoStart: false, ...listener });
    await this.call('post', '/api/v1/servers/NODE1/start');
    await this.partner('ACME');
    await this.virtualFile('IN', { direction: 'RECEIVE', receiveFilenamePattern: '${uuid}' });
    await this.virtualFile('OUT', { direction: 'SEND' });
    await this.virtualFile('BOTH', { direction: 'BOTH' });
  }

  /** With the password of all of them. */
  async partner(partnerId: string, fields: Json = {}): Promise<void> {
    await this.database.knex('partners').insert({
      partner_id: partnerId,
      password_hash: await (hash ??= passwords.hash(PASSWORD)),
      enabled: true,
      access_type: 'BOTH',
    });
    if (Object.keys(fields).length > 0) await this.call('put', `/api/v1/config/partners/${partnerId}`, fields);
  }

  /** Each has directories of its own: `<data>/<id>/in` and `<data>/<id>/out`. */
  async virtualFile(fileId: string, fields: Json = {}): Promise<void> {
    await this.call('post', '/api/v1/config/files', {
      fileId,
      receiveDirectory: `${fileId}/in`,
      sendDirectory: `${fileId}/out`,
      ...fields,
    });
  }

  async connect(
    options: Partial<RequesterOptions['connect']> &
      Partial<Pick<RequesterOptions, 'host' | 'port' | 'preconnection' | 'connectTimeout' | 'transport'>> = {},
  ): Promise<PesitRequester> {
    const { host = '127.0.0.1', port = this.port, preconnection, connectTimeout = 5000, ...more } = options;
    const { transport, ...connect } = more;
    const session = await PesitRequester.open({
      host,
      port,
      dialect: 'length-prefixed',
      connectTimeout,
      preconnection,
      ...(transport === undefined ? {} : { transport }),
      connect: {
        requester: 'ACME',
        server: 'NODE1',
        password: PASSWORD,
        accessType: 2,
        syncPoints: { intervalKb: 64, window: 4 },
        ...connect,
      },
    });
    this.#sessions.push(session);
    return session;
  }

  createRequest(fileName: string, more: Partial<CreateRequest> = {}): CreateRequest {
    return {
      fileIdentifier: { fileType: 0, fileName },
      transferId: ++this.#transferId,
      maxEntitySize: 32_768,
      recordFormat: 128,
      recordLength: 4096,
      maxReservationKb: 0,
      ...more,
    };
  }

  /** Writes `content` to the virtual file. */
  async send(
    session: PesitRequester,
    fileName: string,
    content: Buffer,
    more: Partial<CreateRequest> = {},
    records: RecordSettings = { recordLength: more.recordLength ?? 4096 },
  ): Promise<void> {
    const directory = join(this.data, 'peer');
    await mkdir(directory, { recursive: true });
    const path = join(directory, randomUUID());
    await writeFile(path, content);
    const source = await FileSource.open(path, formatOf(records));
    try {
      await session.sendFile({ request: this.createRequest(fileName, more), source });
    } finally {
      await source.close();
    }
  }

  /** Reads what the virtual file offers. */
  async receive(session: PesitRequester, fileName: string, more: Partial<SelectRequest> = {}): Promise<Buffer> {
    const directory = join(this.data, 'peer');
    await mkdir(directory, { recursive: true });
    const name = randomUUID();
    let staged: StagedFile | undefined;
    try {
      await session.receiveFile({
        request: { fileIdentifier: { fileType: 0, fileName }, transferId: 0, maxEntitySize: 32_768, ...more },
        open: async (attributes) => {
          const { recordFormat, recordLength = 0 } = attributes.logicalAttributes ?? {};
          const format = formatOf({ recordFormat, recordLength });
          staged = await StagedFile.create({ receiveDirectory: directory, key: name, format });
          return { from: { number: 0, dataBytes: 0, articles: 0 }, sink: staged };
        },
        stored: async () => {
          await staged?.prepareDelivery();
        },
      });
      await staged?.deliver({ path: name, overwrite: false });
      return await readFile(join(directory, name));
    } finally {
      await staged?.discard();
    }
  }

  /** Names below a directory of the node, staged files included. */
  async files(path: string): Promise<readonly string[]> {
    const entries = await readdir(join(this.data, path), { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
  }

  /** What is staged in the directory of a virtual file, journals and locks included. */
  staged(fileId: string): Promise<readonly string[]> {
    return this.files(`${fileId}/in/.pesit`).catch(() => []);
  }

  /** The files that a virtual file has received. */
  async received(fileId: string): Promise<readonly Buffer[]> {
    const directory = join(this.data, fileId, 'in');
    const entries = await readdir(directory, { recursive: true, withFileTypes: true });
    const delivered = entries.filter((entry) => entry.isFile() && !entry.parentPath.endsWith(STAGING_DIRECTORY));
    return Promise.all(delivered.map((entry) => readFile(join(entry.parentPath, entry.name))));
  }

  /** The history, newest first. */
  async history(query = ''): Promise<readonly TransferRecord[]> {
    return (await this.call('get', `/api/v1/transfers?sort=id,desc&size=500${query}`))['content'] as TransferRecord[];
  }

  /** The newest record, once `accept` takes it. */
  record(accept: (record: TransferRecord) => boolean): Promise<TransferRecord> {
    return until(async () => {
      const [record] = await this.history();
      return record !== undefined && accept(record) ? record : undefined;
    });
  }

  /** The newest record when it has ended. */
  ended(): Promise<TransferRecord> {
    return this.record(({ status }) => !['PENDING', 'IN_PROGRESS'].includes(status));
  }
}

/** Asks until there is an answer; fails after a minute, so that a test that is wrong does not go on beside the next. */
export const until = async <T>(ask: () => T | undefined | Promise<T | undefined>): Promise<T> => {
  const limit = performance.now() + 60_000;
  while (performance.now() < limit) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    await new Promise(setImmediate);
  }
  throw new Error('what was waited for did not happen within a minute');
};

export const bytes = (size: number): Buffer => randomBytes(size);

/** What a rejected operation of a requester carries. */
export const refusedWith = (diagnostic: string) => expect.objectContaining({ fault: 'refused', diagnostic });

export interface UseNodeOptions extends Partial<NodeOptions> {
  /** Fields of the listener NODE1. */
  readonly listener?: Json;
  /** Keys of the configuration that are not as for every test. */
  readonly settings?: Partial<Config<'server'>> | ((data: string) => Partial<Config<'server'>>);
}

/** A node with a running listener on a database of its own; configuration and history are fresh for each test. */
export const useNode = (harness: DatabaseHarness, { listener, ...options }: UseNodeOptions = {}): (() => TestNode) => {
  const log = captureLog();
  const answers: string[] = [];
  let database: TestDatabase;
  let current: TestNode;

  beforeAll(async () => {
    database = await harness.open({ migrations: [MIGRATIONS] });
  });

  beforeEach(async () => {
    await emptyTables(database, 'pesit_server');
    const data = join(await mkdtemp(join(tmpdir(), 'pesit-node-')), 'data');
    await mkdir(data);
    current = new TestNode(database, data, log, options);
    await current.start();
    await current.configure(listener);
  });

  afterEach(async () => {
    await current.stop();
    answers.push(...current.answers);
    await rm(dirname(current.data), { recursive: true, force: true });
  });

  afterAll(() => {
    const said = [...answers, ...log.lines].join('\n');
    for (const text of [PASSWORD, ADMIN.password, LOGIN, '$scrypt$']) expect(said).not.toContain(text);
    const bugs = log
      .entries()
      .filter(({ msg }) => msg === 'session failed because of an error in this node' || msg === 'request failed');
    expect(bugs).toEqual([]);
  });

  return () => current;
};
