import { listLeftovers, removeLeftover } from '@pesit-node/storage';
import type { Leftover, RemoveOptions } from '@pesit-node/storage';
import type { AsLeader, EventStream, Logger, PeriodicHandle, PeriodicWork } from '@pesit-node/service';
import { TRANSFER_ASIDE } from '@pesit-node/transfers';

import type { TransferContexts } from '../transfers/contexts.js';
import type { Instances } from '../transfers/instances.js';
import type { SentPoints } from '../transfers/sent-points.js';
import type { CompletedRecords } from './completed-records.js';
import type { Recovery } from './recovery.js';

export interface HousekeepingOptions {
  readonly contexts: TransferContexts;
  readonly sentPoints: SentPoints;
  readonly instances: Instances;
  readonly recovery: Recovery;
  readonly completed: Pick<CompletedRecords, 'believe'>;
  /** Makes what the leader alone writes, and its judgements. */
  readonly asLeader: AsLeader;
  /** Every directory into which files are received now. */
  readonly receiveDirectories: () => Promise<readonly string[]>;
  /** `transfer.staging-retention`. */
  readonly retentionDays: number;
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly events: Pick<EventStream, 'publish'>;
  readonly logger: Logger;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Repeated work: transfers of processes that died, and data that nobody restarted in time. */
export class Housekeeping {
  readonly #options: HousekeepingOptions;
  readonly #tasks: PeriodicHandle[] = [];

  constructor(options: HousekeepingOptions) {
    this.#options = options;
  }

  /** To be called when the database is there and this process has recovered what it had left itself; may be called again. */
  start(): void {
    if (this.#tasks.length > 0) return;
    const { recovery, instances, periodic } = this.#options;
    // Two tasks: a sweep may take longer than the next look for dead processes is away.
    this.#tasks.push(
      periodic.add({
        // On every pod: partners wait for it, also while nobody leads because Redis is away. The fence of a record decides.
        name: 'recovery of transfers whose process is gone',
        intervalMs: instances.leaseMs,
        jitter: 0.1,
        first: 'after an interval',
        run: async () => {
          await recovery.run();
          await this.expire();
        },
      }),
      periodic.add({
        name: 'removal of leftovers of transfers',
        intervalMs: HOUR_MS,
        jitter: 0.1,
        runsOn: 'leader',
        run: () => this.sweep(),
      }),
    );
  }

  /** Begins no further work; resolves when all that was begun has ended. */
  async stop(): Promise<void> {
    await Promise.all(this.#tasks.splice(0).map((task) => task.remove()));
  }

  /** Ends interrupted transfers that can no longer be restarted, and removes their staged files. */
  async expire(): Promise<void> {
    const { contexts, events } = this.#options;
    for (const { id, fence, filename, directory, context } of await contexts.expire()) {
      events.publish(TRANSFER_ASIDE, { session: undefined, id, aside: 'expired', facts: { filename } });
      if (directory !== null) await this.#remove(directory, context, { claim: fence });
    }
  }

  /** Removes what is left of transfers that can no longer be restarted, and of others that nobody knows. */
  async sweep(): Promise<void> {
    const { instances, sentPoints, retentionDays, receiveDirectories, asLeader } = this.#options;
    await this.expire();
    for (const directory of await receiveDirectories()) await this.#sweepDirectory(directory);
    await asLeader((knex) => sentPoints.forgetOld(retentionDays, knex));
    await asLeader((knex) => instances.forgetOld(knex));
  }

  async #sweepDirectory(directory: string): Promise<void> {
    const { contexts, completed, retentionDays, asLeader, logger } = this.#options;
    const limit = Date.now() - retentionDays * DAY_MS;
    let old: readonly Leftover[];
    try {
      const leftovers = await listLeftovers(directory);
      // Nobody came back to them, and their process did not live to say so.
      const withdrawn = leftovers.filter((one) => one.withdrawn && UUID.test(one.key)).map(({ key }) => key);
      for (const row of withdrawn.length > 0 ? await contexts.completedAmong(withdrawn) : [])
        await completed.believe(row);
      // A delivered file waits for its record alone.
      old = leftovers.filter(
        ({ key, modified, delivered }) => UUID.test(key) && (delivered || modified.getTime() < limit),
      );
    } catch (error) {
      logger.warn({ directory, err: error }, 'could not list the staged files of the receive directory');
      return;
    }
    if (old.length === 0) return;
    const keys = old.map(({ key }) => key);
    // A leader that is late from here on removes no more than it has listed: what was claimed since stays.
    const wanted = await asLeader((knex) => contexts.wantedAmong(keys, knex));
    for (const { key, fence } of old) if (!wanted.has(key)) await this.#remove(directory, key, { upTo: fence });
  }

  async #remove(directory: string, key: string, options: RemoveOptions): Promise<void> {
    const { logger } = this.#options;
    try {
      if (await removeLeftover(directory, key, options))
        logger.info({ directory, key }, 'removed the staged file of an old transfer');
    } catch (error) {
      logger.warn({ directory, key, err: error }, 'could not remove the staged file of an old transfer');
    }
  }
}
