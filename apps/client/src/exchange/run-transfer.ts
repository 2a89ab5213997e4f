import type { PesitRequester, TransferTotals } from '@pesit-node/net';
import type { Logger, SecretBox } from '@pesit-node/service';

import type { Job, TransferEnd } from '../transfers/store.js';
import { errorCodeOf, explain, toPesitError } from './outcome.js';
import type { Phase } from './outcome.js';
import { receiving } from './receiving.js';
import type { ReceivedTree } from './received-tree.js';
import { sending } from './sending.js';
import type { Lease, SessionPool } from './session-pool.js';
import { sessionTarget } from './session-target.js';
import type { ExchangeSettings } from './settings.js';

/** How a transfer ends that went well. */
type Completed = Exclude<TransferEnd, { readonly status: 'PENDING' }>;

/** One direction of a transfer: what the two of them do alike is in `runTransfer`. */
export interface Work {
  /** Moves the file over a session. Called again on another session as long as it was not accepted. */
  run(session: PesitRequester, signal: AbortSignal): Promise<Completed>;
  /** The partner has answered the CREATE or SELECT with yes. */
  readonly accepted: boolean;
  /** Figures while it runs. */
  readonly totals: TransferTotals;
  /** Gives back what is open; removes what was not delivered. */
  close(): Promise<void>;
}

export interface TransferDeps {
  readonly settings: ExchangeSettings;
  readonly secrets: SecretBox;
  readonly pool: SessionPool;
  readonly receivedTree: ReceivedTree;
  readonly logger: Logger;
}

/** A transfer while this process runs it. */
export interface RunningTransfer {
  /** Never rejects. */
  readonly ended: Promise<TransferEnd>;
  /** Undefined before the partner accepted the file. */
  totals(): TransferTotals | undefined;
}

/** Starts one attempt. An aborted `signal` interrupts it; before the partner accepted the file, it is given back PENDING. */
export const runTransfer = (job: Job, deps: TransferDeps, signal: AbortSignal): RunningTransfer => {
  const attempt = new Attempt(job, deps, signal);
  return { ended: attempt.run(), totals: () => attempt.totals };
};

class Attempt {
  readonly #job: Job;
  readonly #deps: TransferDeps;
  readonly #signal: AbortSignal;
  readonly #log: Logger;
  #phase: Phase = 'connecting';
  #work: Work | undefined;

  constructor(job: Job, deps: TransferDeps, signal: AbortSignal) {
    this.#job = job;
    this.#deps = deps;
    this.#signal = signal;
    this.#log = deps.logger.child({ transferId: job.id, server: job.server_name });
  }

  get totals(): TransferTotals | undefined {
    return this.#work?.accepted === true ? this.#work.totals : undefined;
  }

  async run(): Promise<TransferEnd> {
    const { direction, filename, partner_id: partner, pesit_transfer_id: pesitTransferId } = this.#job;
    this.#log.info({ direction, filename, partner, pesitTransferId }, 'transfer started');
    try {
      this.#work = direction === 'SEND' ? await sending(this.#job, this.#deps) : receiving(this.#job, this.#deps);
      const end = await this.#exchange(this.#work);
      this.#log.info({ size: end.size, bytes: end.bytesTransferred, localPath: end.localPath }, 'transfer completed');
      return end;
    } catch (thrown) {
      return this.#failed(thrown);
    } finally {
      await this.#work?.close().catch((error: unknown) => this.#log.error({ err: error }, 'file not closed in order'));
    }
  }

  /** A session that was idle may be dead without anybody knowing; until the file is accepted, another can take its place. */
  async #exchange(work: Work): Promise<Completed> {
    const lease = await this.#acquire(false);
    try {
      return await work.run(lease.session, this.#signal);
    } catch (error) {
      if (!lease.reused || lease.session.usable || work.accepted || this.#signal.aborted) throw error;
      this.#log.info({ sessionId: lease.sessionId, reason: toPesitError(error).message }, 'idle session was dead');
    } finally {
      lease.release();
    }
    const fresh = await this.#acquire(true);
    try {
      return await work.run(fresh.session, this.#signal);
    } finally {
      fresh.release();
    }
  }

  async #acquire(fresh: boolean): Promise<Lease> {
    const { settings, secrets, pool } = this.#deps;
    const target = sessionTarget(this.#job.server, this.#job.partner_id, this.#job.settings, { settings, secrets });
    this.#phase = 'connecting';
    const lease = await pool.acquire(target, this.#signal, fresh);
    this.#phase = 'transferring';
    this.#log.debug({ sessionId: lease.sessionId, reused: lease.reused }, 'session taken');
    return lease;
  }

  #failed(thrown: unknown): TransferEnd {
    const error = toPesitError(thrown);
    const totals = this.totals;
    if (this.#signal.aborted && totals === undefined) {
      this.#log.info('transfer given back: the partner does not know of it yet');
      return { status: 'PENDING' };
    }
    if (error !== thrown) this.#log.error({ err: thrown }, 'transfer failed by an error of this side');
    const end = {
      diagnostic: error.diagnostic,
      errorCode: errorCodeOf(error, this.#phase),
      errorMessage: explain(error),
    };
    this.#log.warn({ diagnostic: end.diagnostic, errorCode: end.errorCode, reason: error.message }, 'transfer failed');
    return {
      status: 'FAILED',
      ...end,
      ...(totals === undefined ? {} : { bytesTransferred: totals.dataBytes, articles: totals.articles }),
    };
  }
}
