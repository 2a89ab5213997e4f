import { readFileSync } from 'node:fs';
import { chmod, cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, jest } from '@jest/globals';

import { openDatabase } from '@pesit-node/service';
import type { Database } from '@pesit-node/service';
import { captureLog } from '@pesit-node/service/testing';
import type { CapturedLog } from '@pesit-node/service/testing';

export interface EmbeddedDatabases {
  /** Data directory of this test: a database in it that was stopped in order, with the table `kept` and its one row, 7. */
  readonly directory: string;
  readonly log: CapturedLog;
  /** Opens it as an app does; closed after the test. */
  readonly start: (name?: string, dataDirectory?: string) => Promise<Database>;
  readonly stopAll: () => Promise<void>;
  /** PostgreSQL's own data directory. */
  readonly data: () => string;
  /** Process of the PostgreSQL that runs. */
  readonly pid: () => number;
  /** Puts a copy of the database into another data directory. */
  readonly copyInto: (dataDirectory: string) => Promise<void>;
}

/** A fresh embedded database for each test of a file: copies of one, because initdb flushes a thousand files. */
export const embeddedDatabases = (): EmbeddedDatabases => {
  jest.setTimeout(120_000);
  let home: string;
  let made: string;
  let directory: string;
  let log = captureLog();
  const open: Database[] = [];
  const start: EmbeddedDatabases['start'] = async (name = 'server', dataDirectory = directory) => {
    const database = await openDatabase({
      ...{ url: '', dataDirectory, name, searchPath: ['public'], logger: log.logger },
    });
    open.push(database);
    return database;
  };
  const stopAll = async (): Promise<void> => {
    for (const database of open.splice(0)) await database.close();
  };
  const copyInto = (dataDirectory: string): Promise<void> =>
    cp(join(made, 'database'), join(dataDirectory, 'database'), { recursive: true, verbatimSymlinks: true });
  const data = (): string => join(directory, 'database/data');

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'pesit-embedded-'));
    await chmod(home, 0o755);
    made = join(home, 'made');
    const database = await start('server', made);
    await database.knex.raw('create table kept (id int primary key)');
    await database.knex('kept').insert({ id: 7 });
    await stopAll();
    // A pipe cannot be copied.
    await rm(join(made, 'database/socket'), { recursive: true });
  });
  afterAll(() => rm(home, { recursive: true, force: true }));
  beforeEach(async () => {
    directory = await mkdtemp(join(home, 'data-'));
    await copyInto(directory);
    log = captureLog();
  });
  afterEach(stopAll);

  return {
    get directory() {
      return directory;
    },
    get log() {
      return log;
    },
    ...{ start, stopAll, data, copyInto },
    pid: () => Number(readFileSync(join(data(), 'postmaster.pid'), 'utf8').split('\n')[0]),
  };
};

/**
 * Arguments of Node for a process that opens the database, says `open` and stays.
 * @param compiled see `compileSources`
 */
export const opening = (compiled: string, dataDirectory: string, name: string): readonly string[] => [
  '--input-type=module',
  '-e',
  `import { openDatabase } from '${compiled}/database/open.js';
  import { createLogger } from '${compiled}/logging.js';
  await openDatabase({ url: '', dataDirectory: '${dataDirectory}', name: '${name}', searchPath: ['public'],
    logger: createLogger({ 'log.level': 'silent' }, { name: 'test' }) });
  process.stdout.write('open');
  setInterval(() => undefined, 1000);`,
];
