/**
 * The ground floor: what every other room would write for itself, and what knows neither PeSIT, nor files that are transferred, nor services. It
 * imports nothing but Node, and every room above may import it, `protocol` excepted, which uses no clock and no process.
 *
 * `deferred.ts`: promises that somebody else settles, waiting for at most so long, and work that is begun again until it is done.
 * `directories.ts`: making a directory and those above it.
 * `thrown.ts`: reading whatever was thrown, of another realm too. `processes.ts`: which process this is, and whether another one still runs, so that a lock or a lease can
 * tell a process from a later one with the same pid.
 */
export { makeDirectories } from './directories.js';
export { deferred, settledWithin, unlessAborted, untilDone, within } from './deferred.js';
export type { Deferred, Settled } from './deferred.js';
export { THIS_BOOT, THIS_PROCESS, isRunning } from './processes.js';
export type { ProcessName } from './processes.js';
export { codeOf, isError, reasonOf } from './thrown.js';
