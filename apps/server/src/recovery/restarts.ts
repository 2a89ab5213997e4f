import { setTimeout as delay } from 'node:timers/promises';

import type { EventStream } from '@pesit-node/service';
import { TRANSFER_ASIDE } from '@pesit-node/transfers';

import type { ContextRow, TransferContexts } from '../transfers/contexts.js';
import type { AttemptOrigin, TransferStart } from '../transfers/record.js';
import type { CompletedRecords } from './completed-records.js';
import type { Recovery } from './recovery.js';
import { refusal } from '../exchange/refusal.js';
import type { RunningTransfers } from './running-transfers.js';

export interface RestartsOptions {
  readonly contexts: TransferContexts;
  readonly recovery: Recovery;
  readonly running: RunningTransfers;
  readonly completed: Pick<CompletedRecords, 'believe'>;
  readonly events: Pick<EventStream, 'publish'>;
  /**
   * How long a restart waits for the attempt before it to end, milliseconds: longer than the lease of a process that died,
   * shorter than the patience of partners (Tp, 30 s or more).
   */
  readonly waitMs: number;
}

const ASK_AGAIN_MS = 100;
/** How long a session that was ended for a restart may take to release its transfer. */
const LET_GO_MS = 5000;

/** The transfer that a partner restarts (PI 15 = 1). */
export class Restarts {
  readonly #options: RestartsOptions;

  constructor(options: RestartsOptions) {
    this.#options = options;
  }

  /**
   * The transfer that the partner restarts: interrupted, or COMPLETED. Nobody works on it by then: when another
   * session still has it, its end is waited for, and one whose process has died is brought to its end here. A session of this
   * process in which nothing has moved all the while is a connection that the partner has lost without our knowing: it ends.
   * @returns undefined when it is not known here: it begins anew (pesit-e.md §5)
   * @throws PesitError 2-207 while another session has it, 2-201 while its end is not recorded for certain
   */
  async find(start: TransferStart): Promise<ContextRow | undefined> {
    const { contexts, recovery, running, completed, waitMs } = this.#options;
    let deadline = performance.now() + waitMs;
    let first: { readonly id: number; readonly motion: string | undefined } | undefined;
    for (;;) {
      const row = await contexts.find(start);
      if (row === undefined) return undefined;
      if (row.status === 'COMPLETED') {
        // A file that is read is what this side has said of it.
        if (start.direction === 'RECEIVE' && !this.#isSame(row, start)) return undefined;
        const believed = await completed.believe(row);
        if (believed === 'changed') continue;
        if (believed !== 'open') return believed;
        // The partner may have been told that it has failed, and that counts.
        if (performance.now() >= deadline) throw notWithdrawn(row.id);
        await delay(ASK_AGAIN_MS);
        continue;
      }
      if (row.status === 'FAILED') return row;
      if (await recovery.conclude(row)) continue;
      if (first?.id !== row.id) first = { id: row.id, motion: running.motionOf(row.id) };
      if (performance.now() >= deadline) {
        if (first.motion === undefined || first.motion !== running.motionOf(row.id)) throw busy(row.id);
        running.abort(row.id, replaced(row.id));
        first = { id: row.id, motion: undefined };
        deadline += LET_GO_MS;
      }
      await delay(ASK_AGAIN_MS);
    }
  }

  /** Begins the next attempt. @throws PesitError 2-207 when another session was faster */
  async take(row: ContextRow, origin: AttemptOrigin): Promise<ContextRow> {
    const { listener, sessionId, remoteAddress } = origin;
    const taken = await this.#options.contexts.take(row, { listener, sessionId, remoteAddress });
    if (taken === undefined) throw busy(row.id);
    return taken;
  }

  /**
   * A completed transfer hides a new one that bears its identity by mistake, and that one would be lost: what the partner says
   * of the file must agree too (PI 37, PI 51).
   */
  #isSame(row: ContextRow, { label, creationDate }: TransferStart): boolean {
    if (row.label === (label ?? null) && row.creation_date === (creationDate ?? null)) return true;
    const facts = { label, creationDate };
    this.#options.events.publish(TRANSFER_ASIDE, { session: undefined, id: row.id, aside: 'another file sent', facts });
    return false;
  }
}

const replaced = (id: number) =>
  refusal(
    '3-314',
    `nothing moved in this session, and the partner restarts transfer ${id} in another: this connection was lost`,
    'the transfer was restarted in another connection',
  );

const notWithdrawn = (id: number) =>
  refusal(
    '2-201',
    `the end of transfer ${id} is not recorded for certain yet: the database is slow or away, for this process or for the one that ran it`,
    'the node cannot record the transfer for now: try again',
  );

const busy = (id: number) =>
  refusal(
    '2-207',
    `another session still runs transfer ${id}: let that one end, or wait until its connection is given up`,
    'this transfer is in progress already',
  );
