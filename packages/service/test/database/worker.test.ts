import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import type { openDatabase } from '@pesit-node/service';
import { captureLog, silentLogger } from '@pesit-node/service/testing';

import { embeddedDatabase } from '../../src/database/embedded.js';
import { startPgliteWorker } from '../../src/database/pglite-process.js';
import type { PgliteInstance } from '../../src/database/pglite-process.js';
import { startInMemory } from '../../src/testing/embedded.js';
import { compileSources } from '../support/compile.js';

let directory: string;
let compiled: ReturnType<typeof compileSources>;

/** `openDatabase` as production has it: plain JavaScript, its worker beside it. */
const compiledOpen = async (): Promise<typeof openDatabase> => {
  const module = (await import(`${compiled.directory}/database/open.js`)) as { openDatabase: typeof openDatabase };
  return module.openDatabase;
};

beforeAll(() => {
  compiled = compileSources();
});
afterAll(() => {
  compiled.remove();
});
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pesit-worker-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

describe('the worker', () => {
  test('keeps rows over a restart, its directory closed to others and locked while open', async () => {
    const open = await compiledOpen();
    const options = { url: '', dataDirectory: directory, name: 'server', searchPath: ['public'], logger: silentLogger };
    const first = await open(options);
    await first.knex.raw('create table kept (id int primary key)');
    await first.knex('kept').insert({ id: 7 });
    expect([first.mode, first.description]).toEqual(['embedded', join(directory, 'database-server')]);
    expect((await stat(join(directory, 'database-server'))).mode & 0o777).toBe(0o700);
    await expect(open(options)).rejects.toThrow(
      new RegExp(`database-server.lock is held by process ${process.pid} on .*--data.directory`),
    );
    await first.close();
    await first.close();
    await expect(first.knex('kept').select()).rejects.toThrow();

    const second = await open(options);
    expect(await second.knex('kept').pluck('id')).toEqual([7]);
    await second.close();
    await expect(readFile(join(directory, 'database-server.lock'))).rejects.toThrow('ENOENT');
  });

  test('one that cannot start says why and leaves no lock', async () => {
    const open = await compiledOpen();
    await writeFile(join(directory, 'database-server'), 'a file where the directory should be');
    const options = { url: '', dataDirectory: directory, name: 'server', searchPath: ['public'], logger: silentLogger };
    await expect(open(options)).rejects.toThrow('EEXIST');
    await expect(readFile(join(directory, 'database-server.lock'))).rejects.toThrow('ENOENT');
  });

  test('one that dies fails what waits for it', async () => {
    const entry = join(directory, 'dying.mjs');
    await writeFile(
      entry,
      "import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => process.exit(3)); parentPort.postMessage({ kind: 'ready' });",
    );
    const instance = await startPgliteWorker(directory, pathToFileURL(entry));
    await expect(instance.exec(Buffer.from('x'))).rejects.toThrow('The embedded database has ended with code 3');
    await expect(instance.exec(Buffer.from('x'))).rejects.toThrow('The embedded database has ended with code 3');
    expect((await instance.ended).message).toContain('code 3');
    await instance.close();
  });
});

describe('an instance that aborts', () => {
  test('fails the query, and the next one runs on a new instance', async () => {
    const log = captureLog();
    const started: PgliteInstance[] = [];
    let abort: ((reason: Error) => void) | undefined;
    const start = async (): Promise<PgliteInstance> => {
      const real = await startInMemory();
      let dead: Error | undefined;
      const ended = new Promise<Error>((resolve) => {
        abort = (reason) => {
          dead = reason;
          resolve(reason);
        };
      });
      const instance: PgliteInstance = {
        ended,
        exec: (message) => (dead === undefined ? real.exec(message) : Promise.reject(dead)),
        close: () => real.close(),
      };
      started.push(instance);
      return instance;
    };
    const database = await embeddedDatabase({ start, description: 'test', searchPath: ['public'], logger: log.logger });
    await database.ping();
    abort?.(new Error('The embedded database has aborted: unreachable'));
    await expect(database.ping()).rejects.toThrow('unreachable');
    await database.ping();
    expect(started).toHaveLength(2);
    expect(log.entries().map(({ msg }) => msg)).toEqual(['embedded database lost, starting it again']);
    await database.close();
    await started[0]?.close();
  });

  test('a connection lost in a transaction leaves nothing to the next', async () => {
    const instance = await startInMemory();
    const database = await embeddedDatabase({
      start: () => Promise.resolve(instance),
      description: 'test',
      searchPath: ['public'],
      logger: silentLogger,
    });
    await database.knex.raw('create table t (id int)');
    const connection = await database.knex.client.acquireConnection();
    await connection.query('begin');
    await connection.query('insert into t values (1)');
    await connection.query("set application_name to 'leaked'");
    connection.connection.stream.destroy(new Error('cut'));
    await new Promise((resolve) => connection.once('end', resolve));
    await database.knex.client.releaseConnection(connection);
    expect(await database.knex('t').select()).toEqual([]);
    const { rows } = await database.knex.raw('show application_name');
    expect(rows[0].application_name).not.toBe('leaked');
    await database.close();
  });
});
