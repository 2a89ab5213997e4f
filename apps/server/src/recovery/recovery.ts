import { lstat } from 'node:fs/promises';

import type { Config, EventStream } from '@pesit-node/service';
import {
  claimStaged,
  ensureReceiveDirectory,
  finishTakingBack,
  freeEmptyName,
  hashOfFile,
  removeLeftover,
  StagedFile,
} from '@pesit-node/storage';

import { TRANSFER_ASIDE } from '@pesit-node/transfers';
import type { Facts, TransferAside } from '@pesit-node/transfers';

import type { ContextRow, TransferContexts } from '../transfers/contexts.js';
import type { Instances } from '../transfers/instances.js';
import type { TransferJournal } from '../transfers/journal.js';
import type { RecordHandle, TransferCompletion } from '../transfers/record.js';
import { finalPath, INTENT_FROM } from '../files/final-name.js';

export interface RecoveryOptions {
  readonly config: Pick<Config<'server'>, 'transfer.checksum'>;
  readonly contexts: TransferContexts;
  readonly journal: TransferJournal;
  readonly instances: Instances;
  readonly events: Pick<EventStream, 'publish'>;
}

/** Outcome of a transfer without its process, judged by the file system. */
type Finding =
  { readonly kind: 'delivered'; readonly completion: TransferCompletion } | { readonly kind: 'interrupted' };

const STOPPED = { status: 'FAILED', diagnostic: '2-223', message: 'the service stopped during the transfer' } as const;

/**
 * Brings transfers to their end whose process has died: what it had delivered is COMPLETED, anything else is left to the
 * partner to restart. At start, every few seconds for processes of other machines, and when a partner asks.
 */
export class Recovery {
  readonly #options: RecoveryOptions;
  /** Records that could not be looked at, so that the log says it once. */
  readonly #stuck = new Set<number>();
  /** Claims to be given back, with the process that had the transfer before. */
  readonly #claimed = new Map<number, { readonly record: RecordHandle; readonly instance: string }>();
  #running: Promise<void> | undefined;

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  /** All transfers that were left behind. @throws when the database cannot be asked */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** @returns whether the transfer was left behind; its record says now how it ended */
  async conclude(row: ContextRow): Promise<boolean> {
    const gone = await this.#options.instances.goneAmong([row.instance]);
    if (!gone.has(row.instance)) return false;
    await this.#bringToEnd(row);
    return true;
  }

  async #run(): Promise<void> {
    const { contexts, instances } = this.#options;
    await this.#giveBack();
    const rows = await contexts.elsewhere();
    const gone = await instances.goneAmong([...new Set(rows.map(({ instance }) => instance))]);
    for (const row of rows) {
      if (!gone.has(row.instance)) continue;
      try {
        await this.#bringToEnd(row);
        this.#stuck.delete(row.id);
      } catch (error) {
        if (!this.#stuck.has(row.id)) this.#aside(row, 'not inspected', {}, error);
        this.#stuck.add(row.id);
      }
    }
  }

  /**
   * Takes the record, then the files, and looks then: of two that come at once one decides, and the process that has lost them, if it
   * only stood still, delivers nothing after the look.
   */
  async #bringToEnd(row: ContextRow): Promise<void> {
    const { contexts, journal } = this.#options;
    const { filename, directory, context } = row;
    // A volume that is not mounted says nothing.
    if (directory !== null) await ensureReceiveDirectory(directory);
    const record = await contexts.claim(row);
    if (record === undefined) return;
    let finding: Finding;
    try {
      finding = await this.#look(row, record);
    } catch (error) {
      this.#claimed.set(row.id, { record, instance: row.instance });
      await this.#giveBack();
      throw error;
    }
    if (finding.kind === 'interrupted') {
      await journal.failed(record, { ...STOPPED, restartable: context !== null });
      this.#aside(row, 'failed with its process', { filename });
      return;
    }
    await journal.completions.complete(record, finding.completion, journal.completions.deadline());
    this.#aside(row, 'completed without its process', { filename, path: finding.completion.path });
    if (directory !== null && context !== null) await removeLeftover(directory, context, { claim: record.fence });
  }

  #aside({ id }: ContextRow, aside: TransferAside, facts: Facts, error?: unknown): void {
    this.#options.events.publish(TRANSFER_ASIDE, { session: undefined, id, aside, error, facts });
  }

  /** Gives back the transfers that could not be looked at: another look may follow, here or in another process. */
  async #giveBack(): Promise<void> {
    for (const [id, { record, instance }] of this.#claimed) {
      await this.#options.contexts.giveBack(record, instance);
      this.#claimed.delete(id);
    }
  }

  async #look(row: ContextRow, { fence }: RecordHandle): Promise<Finding> {
    const { directory, context, filename } = row;
    if (row.direction === 'SEND' || directory === null || context === null) return { kind: 'interrupted' };
    await claimStaged(directory, context, fence);
    const staged = await StagedFile.peek(directory, context);
    const path = await finalPath({ directory, path: filename });
    if (staged?.withdrawn === true) {
      if (!row.overwrite) await finishTakingBack(directory, context, path);
      return { kind: 'interrupted' };
    }
    if (staged?.delivered === true) {
      return { kind: 'delivered', completion: await this.#completionOf(row, path, staged) };
    }
    const final = await lstat(path).catch(() => undefined);
    if (final?.isFile() !== true) return { kind: 'interrupted' };
    if (staged !== undefined && staged.size > 0) {
      if (!row.overwrite && (await freeEmptyName(path))) {
        this.#aside(row, 'name freed', { path });
      }
      return { kind: 'interrupted' };
    }
    const { size } = final;
    const isOurs = row.delivering ? await this.#isIntended(row, path, size) : await this.#isOnlyOurs(row, path, size);
    return isOurs
      ? { kind: 'delivered', completion: await this.#completionOf(row, path, { path, size }) }
      : { kind: 'interrupted' };
  }

  async #isIntended({ size, checksum }: ContextRow, path: string, found: number): Promise<boolean> {
    return size === found && (checksum === null || checksum === (await hashOfFile(path)));
  }

  /**
   * Small files have no intent. Their staged file is gone only when it was delivered, or never written; the name was free when
   * the transfer began, unless it may replace another; so a file of that name that no other record speaks of is this one.
   */
  async #isOnlyOurs(row: ContextRow, path: string, size: number): Promise<boolean> {
    if (row.overwrite || size >= INTENT_FROM) return false;
    return !(await this.#options.contexts.isDelivered(path, row));
  }

  /** @param content where its bytes can be read: the file may have been fetched from its final path */
  async #completionOf(
    row: ContextRow,
    path: string,
    { path: content, size }: { readonly path: string | undefined; readonly size: number },
  ): Promise<TransferCompletion> {
    const { filename } = row;
    if (row.delivering) {
      const { checksum, sync_point: syncPoint, point_bytes: dataBytes, point_articles: articles } = row;
      return {
        dataBytes: row.bytes_transferred,
        articles: row.articles,
        syncPoint,
        size: row.size ?? size,
        checksum: checksum ?? undefined,
        path,
        filename,
        compression: row.compression ?? 'none',
        lastPoint: { number: syncPoint, dataBytes, articles },
      };
    }
    const isHashed = this.#options.config['transfer.checksum'] === 'sha256' && content !== undefined;
    const checksum = isHashed ? await hashOfFile(content) : undefined;
    return { dataBytes: size, articles: 0, syncPoint: 0, size, checksum, path, filename, compression: 'none' };
  }
}
