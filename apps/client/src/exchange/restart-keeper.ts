import { PesitError } from '@pesit-node/protocol';
import { isDatabaseUnavailable } from '@pesit-node/service';
import type { FileVersion, Pacing } from '@pesit-node/storage';

import type { Job } from '../transfers/row.js';
import type { TransferStore } from '../transfers/store.js';
import { Interruption } from '../queue/interruption.js';

/** Facts that a running attempt stores for the one after it. Every method rejects with a `PesitError`. */
export interface RestartKeeper {
  keepSourceVersion(version: FileVersion): Promise<void>;
  keepPacings(pacings: readonly Pacing[]): Promise<void>;
  /** @returns the new PI 13; 0 for a RECEIVE */
  startOver(): Promise<number>;
  /** Resolves when no other process can have this transfer. @throws Interruption `lost` */
  requireLease(): Promise<void>;
}

type Store = Pick<TransferStore, 'keepSourceVersion' | 'keepPacings' | 'startOver'>;

/** @param requireLease of the queue */
export const restartKeeper = (lease: Job, store: Store, requireLease: () => Promise<void>): RestartKeeper => {
  const written = async <T>(result: Promise<T | undefined | false>): Promise<T> => {
    const value = await result.catch((cause: unknown) => {
      throw isDatabaseUnavailable(cause) ? databaseAway('what a restart needs could not be stored', cause) : cause;
    });
    if (value === undefined || value === false) throw new Interruption('lost');
    return value;
  };
  return {
    keepSourceVersion: async ({ size, mtimeNs }) => {
      await written(store.keepSourceVersion(lease, { size, mtimeNs: String(mtimeNs) }));
    },
    keepPacings: async (pacings) => {
      await written(store.keepPacings(lease, pacings));
    },
    startOver: () => written(store.startOver(lease)),
    requireLease,
  };
};

/** Nobody's failure: the attempt ends, and another is made when the database is back. */
export const databaseAway = (what: string, cause: unknown): PesitError =>
  new PesitError(`the database is away: ${what}`, {
    fault: 'local',
    diagnostic: '2-201',
    peerText: 'a resource is missing for now',
    cause,
  });
