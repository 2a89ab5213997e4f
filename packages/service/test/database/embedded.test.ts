import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { chmod, cp, lstat, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';

import type { Database } from '@pesit-node/service';

import { databaseFiles, prepareRoot } from '../../src/database/embedded/files.js';
import { hasEnded, runsOn } from '../../src/database/embedded/orphan.js';
import { findPrograms } from '../../src/database/embedded/programs.js';
import { EmbeddedServer } from '../../src/database/embedded/server.js';
import { compileSources } from '../support/compile.js';
import { embeddedDatabases, opening } from '../support/embedded.js';

const embedded = embeddedDatabases();

const parentOf = (pid: number): number =>
  Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
const modeOf = async (path: string): Promise<string> => ((await lstat(path)).mode & 0o777).toString(8);
const said = (): readonly unknown[] => embedded.log.entries().map(({ msg }) => msg);
const asked = async ({ knex }: Database, sql: string): Promise<Record<string, unknown>> => {
  const { rows } = await knex.raw<{ rows: Record<string, unknown>[] }>(sql);
  return rows[0] ?? {};
};
/** Until another PostgreSQL than `pid` answers, asked again and again as by a `DatabaseSupervisor`. */
const untilAnother = async (database: Database, pid: number): Promise<void> => {
  const another = async (): Promise<boolean> => {
    await database.ping();
    return embedded.pid() !== pid;
  };
  while (!(await another().catch(() => false)));
};

describe('the embedded database', () => {
  test('is a PostgreSQL that keeps its rows over a restart, as durable as any', async () => {
    const database = await embedded.start();
    expect(await database.knex('kept').pluck('id')).toEqual([7]);
    expect([database.mode, database.description]).toEqual(['embedded', join(embedded.directory, 'database')]);
    expect(
      await asked(
        database,
        `select current_setting('server_version_num')::int >= 180000 as recent, current_setting('fsync') as fsync,
           current_setting('synchronous_commit') as commit, current_setting('full_page_writes') as pages,
           current_setting('data_checksums') as checksums, current_setting('server_encoding') as encoding`,
      ),
    ).toEqual({ recent: true, fsync: 'on', commit: 'on', pages: 'on', checksums: 'on', encoding: 'UTF8' });
    await database.close();
    await database.close();
    await expect(database.knex('kept').select()).rejects.toThrow();
    expect(existsSync(join(embedded.data(), 'postmaster.pid'))).toBe(false);
    expect((await readdir(join(embedded.directory, 'database'))).filter((name) => name.endsWith('.lock'))).toEqual([]);
  });

  test('can be reached by its service alone: no TCP port, a closed directory, one role with its password', async () => {
    const database = await embedded.start();
    expect(
      await asked(
        database,
        `select current_setting('listen_addresses') as tcp, rolsuper from pg_roles where rolname = current_user`,
      ),
    ).toEqual({
      ...{ tcp: '', rolsuper: false },
    });
    const root = join(embedded.directory, 'database');
    expect(await Promise.all([root, join(root, 'data'), join(root, 'socket')].map(modeOf))).toEqual([
      '700',
      '700',
      '700',
    ]);
    expect(await Promise.all([join(root, 'password'), join(root, 'socket/holders')].map(modeOf))).toEqual([
      '600',
      '600',
    ]);
    const login = async (user: string, password: string, name: string): Promise<string> => {
      const client = new pg.Client({ host: join(root, 'socket'), user, password, database: name });
      try {
        await client.connect();
        return 'in';
      } catch (error) {
        return (error as Error).message;
      } finally {
        await client.end();
      }
    };
    const password = (await readFile(join(root, 'password'), 'utf8')).trim();
    expect(password).toMatch(/^[0-9a-f]{48}$/);
    expect(await login('pesit', password, 'pesit')).toBe('in');
    expect(await login('pesit', `${password}0`, 'pesit')).toContain('password authentication failed');
    expect(await login('postgres', password, 'pesit')).toContain('no pg_hba.conf entry');
    expect(await login('pesit', password, 'template1')).toContain('no pg_hba.conf entry');
    expect(JSON.stringify(embedded.log.lines)).not.toContain(password);
  });

  test('is stopped in order: the next start has nothing to recover', async () => {
    await embedded.start();
    await embedded.stopAll();
    await embedded.start();
    const text = await readFile(join(embedded.directory, 'database/postgresql.log'), 'utf8');
    expect(text).toContain('database system was shut down at');
    expect(text).not.toContain('not properly shut down');
  });

  test('one for both apps: whoever is first starts it, and it ends with the last', async () => {
    const [server, client] = await Promise.all([embedded.start('server'), embedded.start('client')]);
    const pid = embedded.pid();
    expect(said().filter((msg) => msg === 'embedded database started')).toHaveLength(1);
    await server.knex('kept').insert({ id: 8 });
    expect(await client.knex('kept').orderBy('id').pluck('id')).toEqual([7, 8]);
    const [first, second] = embedded.log.entries().some(({ at }) => at === undefined)
      ? [client, server]
      : [server, client];
    await first.close();
    expect(embedded.pid()).toBe(pid);
    expect(await second.knex('kept').orderBy('id').pluck('id')).toEqual([7, 8]);
    await second.close();
    expect(runsOn(embedded.data())).toBe(false);
  });

  test('a second service of the same app is refused', async () => {
    const first = await embedded.start();
    await expect(embedded.start()).rejects.toThrow(
      new RegExp(`database/server.lock is held by process ${process.pid} on .*--data.directory`),
    );
    await first.ping();
  });

  test('below a directory whose path is longer than that of a socket may be', async () => {
    const long = join(embedded.directory, 'x'.repeat(120));
    await mkdir(long);
    await embedded.copyInto(long);
    const database = await embedded.start('server', long);
    expect(await database.knex('kept').pluck('id')).toEqual([7]);
    expect(await readdir(join(long, 'database/socket'))).toContain('.s.PGSQL.5432');
  });

  test('makes the links to its libraries itself, and mends them', async () => {
    const libraries = join(embedded.directory, 'database/libraries');
    const [name = ''] = (await readdir(libraries)).filter((one) => one.startsWith('libpq.so.'));
    const to = readlinkSync(join(libraries, name));
    expect(existsSync(to)).toBe(true);
    await rm(join(libraries, name));
    await embedded.start();
    expect(readlinkSync(join(libraries, name))).toBe(to);
  });

  test('runs from a package as npm unpacks it, without a link and for its owner alone', async () => {
    const native = join(embedded.directory, 'native');
    const links = new Set(
      (
        JSON.parse(await readFile(join(findPrograms().directory, 'pg-symlinks.json'), 'utf8')) as { target: string }[]
      ).map(({ target }) => basename(target)),
    );
    await cp(findPrograms().directory, native, { recursive: true, filter: (path) => !links.has(basename(path)) });
    for (const name of await readdir(native, { recursive: true })) {
      const path = join(native, name);
      await chmod(path, (await stat(path)).mode & 0o700);
    }
    const programs = { directory: native, initdb: join(native, 'bin/initdb'), postgres: join(native, 'bin/postgres') };
    const files = databaseFiles(join(embedded.directory, 'another'));
    await prepareRoot(files);
    const server = new EmbeddedServer({ files, programs, logger: embedded.log.logger });
    await server.ensureRunning();
    expect(runsOn(files.data)).toBe(true);
    await server.release();
    expect(runsOn(files.data)).toBe(false);
    expect(await readdir(join(native, 'lib'))).not.toContain([...links][0]);
  });
});

describe('after a crash', () => {
  test('PostgreSQL killed: started again, said in the log, and the service goes on', async () => {
    const database = await embedded.start();
    const pid = embedded.pid();
    await database.knex('kept').insert({ id: 9 });
    process.kill(pid, 'SIGKILL');
    await untilAnother(database, pid);
    expect(await database.knex('kept').orderBy('id').pluck('id')).toEqual([7, 9]);
    expect(said().slice(0, 2)).toEqual(['embedded database started', 'embedded database lost, starting it again']);
    expect(embedded.log.entries()[1]).toMatchObject({
      reason: 'ended with code 137',
      at: join(embedded.directory, 'database'),
    });
  });

  test('the watcher killed: PostgreSQL is stopped and started under a new one', async () => {
    const database = await embedded.start();
    const pid = embedded.pid();
    const watcher = parentOf(pid);
    for (const child of execFileSync('ps', ['-o', 'pid=', '--ppid', String(watcher)], { encoding: 'utf8' }).split(
      '\n',
    )) {
      if (child.trim() !== '' && Number(child) !== pid) process.kill(Number(child), 'SIGKILL');
    }
    process.kill(watcher, 'SIGKILL');
    await untilAnother(database, pid);
    expect(said()).toContain('embedded database without a watcher: stopped, starting it again');
    expect(parentOf(embedded.pid())).not.toBe(watcher);
  });

  test('a process number that another program has by now is no hindrance', async () => {
    await writeFile(join(embedded.data(), 'postmaster.pid'), `${process.pid}\n${embedded.data()}\n`);
    const database = await embedded.start();
    expect(await database.knex('kept').pluck('id')).toEqual([7]);
  });

  test('what a start left behind that was cut off is removed', async () => {
    await mkdir(join(embedded.directory, 'database/new-123'));
    await embedded.start();
    expect(await readdir(join(embedded.directory, 'database'))).not.toContain('new-123');
  });
});

describe('a service that is killed', () => {
  let compiled: ReturnType<typeof compileSources>;
  beforeAll(() => {
    compiled = compileSources();
  });
  afterAll(() => compiled.remove());

  /** A process that opens the database and stays. */
  const service = async (name: string): Promise<ChildProcess> => {
    const child = spawn(process.execPath, opening(compiled.directory, embedded.directory, name), {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    expect(String(said)).toBe('open');
    return child;
  };

  test('takes its database along, in order, unless the other app uses it', async () => {
    const server = await service('server');
    const client = await service('client');
    const pid = embedded.pid();
    server.kill('SIGKILL');
    await once(server, 'exit');
    const other = await embedded.start();
    expect(await other.knex('kept').pluck('id')).toEqual([7]);
    expect(embedded.pid()).toBe(pid);
    await other.close();
    client.kill('SIGKILL');
    await once(client, 'exit');
    expect(await hasEnded(embedded.data(), 30_000)).toBe(true);
    expect(await readFile(join(embedded.directory, 'database/postgresql.log'), 'utf8')).toContain(
      'database system is shut down',
    );
  });
});

test('silent where nothing is wrong', async () => {
  await embedded.start();
  await embedded.stopAll();
  const text = await readFile(join(embedded.directory, 'database/postgresql.log'), 'utf8');
  expect(text).not.toMatch(/WARNING|ERROR|FATAL|PANIC/);
  expect(said()).toEqual(['embedded database started']);
});
