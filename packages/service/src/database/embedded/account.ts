import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

import { EmbeddedDatabaseError, OR_DATABASE_URL } from './error.js';

/** A user to run PostgreSQL as, group of the same number; undefined: the user of this process. */
export type Account = number | undefined;

/**
 * PostgreSQL refuses to run as root. Under root it runs as a user that nobody else is: this number belongs to no range that
 * distributions give to people, services or containers (systemd, "Users, Groups, UIDs and GIDs"), and it needs no entry in /etc/passwd.
 */
export const DATABASE_UID = 60_932;

/** Capabilities by which a process reaches what is closed to its user, the weaker one first; bits as in capabilities(7). */
const PASSING = [
  // Passes directories and reads files, but does not run one.
  { name: 'dac_read_search', bit: 2n, runs: false },
  { name: 'dac_override', bit: 1n, runs: true },
];

const isRoot = (): boolean => process.getuid?.() === 0;

/** @param owner of the database that is there, if one is */
export const databaseAccount = (owner: number | undefined): Account => {
  if (!isRoot()) return undefined;
  return owner === undefined || owner === 0 ? DATABASE_UID : owner;
};

/**
 * A user that initdb can run as: it insists on a name for its number. Its files are given to the account of the database
 * afterwards.
 * @throws {EmbeddedDatabaseError} when root is the only user that this system knows
 */
export const makerAccount = (): Account => {
  if (!isRoot()) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .filter(([, , uid]) => /^[1-9]\d*$/.test(uid ?? ''));
  const [, , uid] = users.find(([name]) => name === 'nobody') ?? users[0] ?? [];
  if (uid !== undefined) return Number(uid);
  throw new EmbeddedDatabaseError(
    `The embedded database cannot be made by root, and /etc/passwd names no other user: add one (nobody, say), ${OR_DATABASE_URL}`,
  );
};

/** Directories on the way to `path`, the outermost first, without itself. */
const above = (path: string): readonly string[] => {
  const parent = dirname(path);
  return parent === path ? [] : [...above(parent), parent];
};

/** Whether `uid` may pass through this directory, or run this file. */
const isOpen = (uid: number, path: string): boolean => {
  const { mode, uid: owner, gid } = statSync(path);
  const bit = owner === uid ? 0o100 : gid === uid ? 0o010 : 0o001;
  return (mode & bit) !== 0;
};

/** How to start a program as another user. */
export interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly uid?: number;
  readonly gid?: number;
}

const findSetpriv = (path: string): string | undefined =>
  path
    .split(delimiter)
    .filter((directory) => directory !== '')
    .map((directory) => join(directory, 'setpriv'))
    .find((candidate) => {
      try {
        accessSync(candidate, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });

const effectiveCapabilities = (): bigint => {
  try {
    return BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'}`);
  } catch {
    return 0n;
  }
};

export interface RunAsOptions {
  /** Directory that the program must reach. */
  readonly directory: string;
  /** Another program that it runs. */
  readonly runs: string;
  /** Where to look for `setpriv`. Default: where the system has its programs. */
  readonly searchPath?: string;
}

/**
 * How to run a program as `account`. Where the way is closed to that user (a data directory below /root), it takes
 * root's capability to pass through along, which is less than root has: no changed rights on directories that are not ours.
 * @throws {EmbeddedDatabaseError} when that is not possible, naming the directory and the command that opens the way
 */
export const runAs = (
  account: Account,
  program: readonly [string, ...string[]],
  { directory, runs, searchPath = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin' }: RunAsOptions,
): Command => {
  const [command, ...args] = program;
  if (account === undefined) return { command, args };
  const closed = [...above(directory), ...above(runs)].find((path) => !isOpen(account, path));
  const mayRun = isOpen(account, runs);
  if (closed === undefined && mayRun) return { command, args, uid: account, gid: account };
  const setpriv = findSetpriv(searchPath);
  const own = effectiveCapabilities();
  const passing = PASSING.find((one) => ((own >> one.bit) & 1n) === 1n && (mayRun || one.runs))?.name;
  if (setpriv === undefined || passing === undefined) {
    const [problem, remedy] =
      closed === undefined
        ? [`run ${runs}`, 'install the packages with umask 022']
        : [`pass through ${closed}`, `run chmod o+x ${closed} (others may then pass, not look)`];
    throw new EmbeddedDatabaseError(
      `The embedded database runs as user ${account}, because PostgreSQL refuses root, and that user may not ${problem}: ` +
        `${remedy}, choose another --data.directory, ${OR_DATABASE_URL}`,
    );
  }
  const capability = `+${passing}`;
  return {
    command: setpriv,
    // Without no_setuid_fixup the kernel forgets the capability in access(2), which PostgreSQL asks about its own program.
    args: ['--reuid', String(account), '--regid', String(account), '--clear-groups', '--inh-caps', capability].concat([
      ...['--ambient-caps', capability, '--securebits', '+no_setuid_fixup', '--', command],
      ...args,
    ]),
  };
};
