import type { EventStream } from '@pesit-node/service';
import { codeOf } from '@pesit-node/ground';
import { claimStaged, finishTakingBack, removeLeftover, StagedFile } from '@pesit-node/storage';
import type { StagedFacts } from '@pesit-node/storage';
import { TRANSFER_ASIDE } from '@pesit-node/transfers';

import type { Completions } from '../transfers/completions.js';
import type { ContextRow, TransferContexts } from '../transfers/contexts.js';
import type { Instances } from '../transfers/instances.js';

export interface CompletedRecordsOptions {
  readonly contexts: Pick<TransferContexts, 'keep' | 'isCompleted'>;
  readonly completions: Pick<Completions, 'isWithdrawing' | 'withdraw'>;
  readonly instances: Pick<Instances, 'goneAmong'>;
  readonly events: Pick<EventStream, 'publish'>;
}

/**
 * Whether a record that says COMPLETED is to be believed. The commit may have come late: after its process had given the transfer up,
 * taken the file back and told the partner no, and before it could withdraw the record. Wherever the partner comes back to, and whatever
 * became of that process, one of both decides:
 *
 * - Of a file that was read, the fence: who takes the record first, with the next fence, believes it, or has withdrawn it.
 * - Of one that was received, the mark of its delivery, which is there from the final name until the commit is known: whoever renames it
 *   first has the file, for taking it back or for keeping it. A file system without hard links has no marks; what the record
 *   says there is believed.
 */
export class CompletedRecords {
  readonly #options: CompletedRecordsOptions;

  constructor(options: CompletedRecordsOptions) {
    this.#options = options;
  }

  /**
   * @returns the record, which nobody can withdraw then; `open` while its process may; `changed` when it says something else by now
   * @throws StorageError when the receive directory cannot be read; when the database cannot be asked
   */
  async believe(row: ContextRow): Promise<ContextRow | 'open' | 'changed'> {
    const { contexts, completions, instances } = this.#options;
    if (completions.isWithdrawing(row.id)) return 'open';
    if (row.direction === 'SEND') return (await contexts.keep(row)) ?? 'changed';
    const { directory, context } = row;
    if (directory === null || context === null) return row;
    const found = await peek(directory, context);
    if (found?.withdrawn === true) return this.#withdraw(row, directory, context);
    // Recorded; or withdrawn since the record was read, before its mark went.
    if (found?.delivered !== true) return (await contexts.isCompleted(row)) ? row : 'changed';
    const gone = await instances.goneAmong([row.instance]);
    if (!gone.has(row.instance)) return 'open';
    const kept = await contexts.keep(row);
    if (kept === undefined) return 'changed';
    await claimStaged(directory, context, kept.fence);
    // Its process, which only stood still, may have been faster.
    const claimed = await peek(directory, context);
    if (claimed?.withdrawn === true) return this.#withdraw(kept, directory, context);
    await removeLeftover(directory, context, { claim: kept.fence });
    return kept;
  }

  /** The mark stays until the next attempt, or the sweep, or the process that made it, removes it. */
  async #withdraw(row: ContextRow, directory: string, context: string): Promise<'changed'> {
    const { completions, events } = this.#options;
    const { id, path, overwrite } = row;
    if (path !== null && !overwrite) await finishTakingBack(directory, context, path);
    if (await completions.withdraw(row)) {
      events.publish(TRANSFER_ASIDE, { session: undefined, id, aside: 'completion withdrawn', facts: { path } });
    }
    return 'changed';
  }
}

/** Undefined when nothing is staged, or the directory is gone with all that was received there. */
const peek = async (directory: string, context: string): Promise<StagedFacts | undefined> => {
  try {
    return await StagedFile.peek(directory, context);
  } catch (error) {
    if (codeOf((error as Error).cause) !== 'ENOENT') throw error;
    return undefined;
  }
};
