import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';

import { runAs } from './account.js';
import type { Prepared } from './files.js';
import { environment } from './run.js';

/**
 * Parent of PostgreSQL, a shell of one megabyte. Its standard input is the pipe of `Holders`: at its end PostgreSQL gets SIGINT,
 * which is its fast shutdown (sessions end, everything is written, no recovery at the next start). PostgreSQL itself does not
 * inherit the pipe, so that no watcher means no reader. Ends when PostgreSQL has ended, with its code.
 */
const SCRIPT = `trap '' HUP INT TERM
exec 3<&0 </dev/null
"$@" 3<&- &
server=$!
{ while read -r _; do :; done; kill -INT "$server"; } <&3 3<&- &
reader=$!
exec 3<&-
wait "$server"
code=$?
kill -KILL "$reader" 2>/dev/null
exit "$code"`;

export interface WatcherOptions extends Prepared {
  readonly postgres: string;
  readonly args: readonly string[];
  /** PostgreSQL's data directory. */
  readonly data: string;
  /** End of the pipe that it reads; the caller keeps it open until this returns. */
  readonly pipe: number;
  /** Where PostgreSQL and the watcher write. */
  readonly log: number;
}

/** Starts PostgreSQL under its watcher, in a session of its own: Ctrl-C on a terminal reaches the service, not its database. */
export const startWatcher = ({ account, libraries, postgres, args, data, pipe, log }: WatcherOptions): ChildProcess => {
  const {
    command,
    args: words,
    ...as
  } = runAs(account, ['/bin/sh', '-c', SCRIPT, 'watcher', postgres, ...args], {
    directory: data,
    runs: postgres,
  });
  const child = spawn(command, words, {
    ...as,
    cwd: '/',
    env: environment(libraries),
    detached: true,
    stdio: [pipe, log, log],
  });
  child.unref();
  return child;
};
