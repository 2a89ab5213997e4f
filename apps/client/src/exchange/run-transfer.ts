import type { PesitRequester, TransferTotals } from '@pesit-node/net';
import { explain, keptBytes, logWords, printable, SUCCESS } from '@pesit-node/protocol';
import type { PesitError } from '@pesit-node/protocol';
import {
  attemptTermsOf,
  compressionName,
  delayAfter,
  errorCodeOf,
  keepsTrust,
  outcomeOf,
  toPesitError,
  TRANSFER_ASIDE,
  verdictOn,
} from '@pesit-node/transfers';
import type { Facts, Figures, ObservedTransfer, Phase, TransferAside } from '@pesit-node/transfers';

import type { AttemptEnd, AttemptPlace, Ended, Job, TransferRow } from '../transfers/row.js';
import { ATTEMPT_ENDED, ATTEMPT_STARTED, ATTEMPT_STARTED_OVER } from './events.js';
import type { AttemptFacts } from './events.js';
import { extrasOf } from './file-extras.js';
import { Interruption } from '../queue/interruption.js';
import { messaging } from './messaging.js';
import { receiving } from './receiving.js';
import { restartKeeper } from './restart-keeper.js';
import { sending } from './sending.js';
import type { TakenSession } from '../sessions/session-pool.js';
import { sessionTarget } from '../sessions/session-target.js';
import type { SessionTarget } from '../sessions/session-target.js';
import type { Completed, Keep, TransferDeps, Work } from './work.js';

/** A transfer while this process runs it. */
export interface RunningTransfer {
  /** Never rejects. */
  readonly ended: Promise<AttemptEnd>;
  /** Undefined before the partner accepted the file. */
  totals(): TransferTotals | undefined;
  /** As all events about the attempt name it. */
  readonly observed: ObservedTransfer;
  /** To be called when the record says that the transfer is over. @param restartable as the record says */
  cleanUp(row: Pick<TransferRow, 'restartable' | 'content'>): Promise<void>;
}

/**
 * Starts one attempt. An `Interruption` as the reason of `signal` ends it; before the partner knew of it, it is given back.
 * @param requireLease see `RestartKeeper`
 */
export const runTransfer = (
  job: Job,
  deps: TransferDeps,
  signal: AbortSignal,
  requireLease: () => Promise<void>,
): RunningTransfer => {
  const attempt = new Attempt(job, deps, signal, requireLease);
  return {
    ended: attempt.run(),
    totals: () => attempt.totals,
    observed: attempt.observed,
    cleanUp: (row) => attempt.cleanUp(row),
  };
};

/** With what was seen of the line, and advice where the sync points held the transfer up: only a long one is. */
const lineSeen = (end: Completed, { roundTripMs, terms, advice }: PesitRequester): Completed => {
  const isLong = (end.bytesTransferred ?? 0) > terms.syncInterval * terms.syncWindow;
  return { ...end, roundTrip: Math.round(roundTripMs * 10) / 10, advice: isLong ? advice : undefined };
};

class Attempt {
  readonly observed: ObservedTransfer;
  readonly #job: Job;
  readonly #deps: TransferDeps;
  readonly #signal: AbortSignal;
  readonly #requireLease: () => Promise<void>;
  readonly #names: AttemptFacts;
  readonly #about: AttemptFacts;
  #phase: Phase = 'connecting';
  #work: Work | undefined;
  /** An earlier attempt had delivered the file: its note is all that is left. */
  #wasDelivered = false;
  #interruption: Interruption | undefined;
  /** Free text in the partner's answers. */
  #said: Pick<Ended, 'diagnosticComplement' | 'answerFreeMessage'> = {};
  /** Discard the staged data, but retry the transfer. */
  #startsAnew = false;
  /** Where it is made, as far as it came. */
  #where: AttemptPlace | undefined;
  #target: SessionTarget | undefined;

  constructor(job: Job, deps: TransferDeps, signal: AbortSignal, requireLease: () => Promise<void>) {
    this.#job = job;
    this.#deps = deps;
    this.#signal = signal;
    this.#requireLease = requireLease;
    const { id, type, direction, server_name: peer } = job;
    this.observed = { id, type, direction, peer, progress: () => this.progress, from: () => this.from };
    this.#names = { transferId: job.id, server: job.server_name };
    const { filename, partner_id: partner, pesit_transfer_id: pesitTransferId } = job;
    this.#about = { direction, filename, partner, pesitTransferId };
  }

  get totals(): TransferTotals | undefined {
    return this.#work?.accepted === true ? this.#work.totals : undefined;
  }

  get progress(): Figures | undefined {
    const { totals } = this;
    return (
      totals && { dataBytes: totals.dataBytes, syncPoint: this.#work?.syncPoint ?? 0, announced: this.#work?.announced }
    );
  }

  get from(): Figures | undefined {
    const point = this.#work?.startPoint;
    return point && { dataBytes: point.dataBytes, syncPoint: point.number };
  }

  async cleanUp({ restartable, content }: Pick<TransferRow, 'restartable' | 'content'>): Promise<void> {
    if (content === 'REMOVED') await this.#deps.sendTree.spool.remove(this.#job.id);
    // No attempt took the staged file up again: there is no work that could remove it.
    const isLeft = this.#work === undefined && this.#job.direction === 'RECEIVE' && !restartable;
    if (this.#wasDelivered || isLeft) await this.#deps.receivedTree.forget(this.#job.id, this.#job.fence);
    await this.#work?.cleanUp(restartable);
  }

  async run(): Promise<AttemptEnd> {
    const { attempts, direction } = this.#job;
    this.#deps.events.publish(ATTEMPT_STARTED, { ...this.#names, ...this.#about, attempt: attempts });
    let end: AttemptEnd;
    try {
      const begun = await this.#begin();
      if ('status' in begun) this.#wasDelivered = true;
      else this.#work = begun;
      const completed = 'status' in begun ? begun : await this.#exchange(begun);
      const { size, bytesTransferred: bytes, localPath, advice } = completed;
      const restart = attempts > 1 ? { attempt: attempts, restartPoint: this.from?.syncPoint ?? 0 } : {};
      const partnerSaid = printable(this.#said.diagnosticComplement) || undefined;
      this.#publishEnd('completed', { size, bytes, localPath, ...restart, advice, partnerSaid });
      end = { ...completed, diagnostic: SUCCESS };
    } catch (thrown) {
      end = this.#failed(thrown);
    }
    const unclosed = direction === 'SEND' ? 'file not closed' : 'staging not released';
    await this.#work?.close(this.#kept(end)).catch((error: unknown) => {
      this.#aside(unclosed, {}, error);
    });
    // Points that were on their way to the disk are there now.
    const { facts } = this.#work ?? {};
    if (end.status === 'PENDING' && end.counts === 'untouched') return end;
    const where = this.#where;
    if ('restartable' in end) return { ...end, ...facts, ...this.#said, where };
    return 'counts' in end ? end : { ...end, ...this.#said, where };
  }

  #aside(aside: TransferAside, facts: Facts, error?: unknown): void {
    const { server_name: server, id } = this.#job;
    this.#deps.events.publish(TRANSFER_ASIDE, { session: undefined, id, aside, error, facts: { server, ...facts } });
  }

  #begin(): Promise<Work | Completed> {
    const { store } = this.#deps;
    const keeper = restartKeeper(this.#job, store, this.#requireLease);
    const { type, direction } = this.#job;
    if (type === 'MESSAGE') return Promise.resolve(messaging(this.#job));
    return direction === 'SEND'
      ? sending(this.#job, this.#deps, this.observed, keeper)
      : receiving(this.#job, this.#deps, this.observed, keeper, this.#signal);
  }

  async #exchange(work: Work): Promise<Completed> {
    for (;;) {
      try {
        return await this.#overSession(work);
      } catch (thrown) {
        const error = toPesitError(thrown);
        if (this.#signal.aborted || !(await work.startOver(error))) throw thrown;
        this.#deps.events.publish(ATTEMPT_STARTED_OVER, { ...this.#names, ...logWords(error) });
      }
    }
  }

  /**
   * A session that was idle may be dead, or out of date (3-304), without anybody knowing; until the file is accepted, another
   * can take its place.
   */
  async #overSession(work: Work): Promise<Completed> {
    // Nobody could tell whether an idle session that turns out to be dead has brought a message there.
    const taken = await this.#acquire(this.#job.type === 'MESSAGE');
    try {
      return lineSeen(await work.run(taken.session, this.#signal), taken.session);
    } catch (error) {
      taken.failed(error);
      if (!taken.reused || taken.usable || work.accepted || this.#signal.aborted) throw error;
      this.#aside('session replaced', { sessionId: taken.sessionId, reason: toPesitError(error).message });
    } finally {
      this.#end(taken);
    }
    const fresh = await this.#acquire(true);
    try {
      return lineSeen(await work.run(fresh.session, this.#signal), fresh.session);
    } catch (error) {
      fresh.failed(error);
      throw error;
    } finally {
      this.#end(fresh);
    }
  }

  #end(taken: TakenSession): void {
    const { diagnosticComplement, freeMessage } = taken.session.texts;
    this.#said = {
      diagnosticComplement: diagnosticComplement && keptBytes(diagnosticComplement),
      answerFreeMessage: freeMessage && keptBytes(freeMessage),
    };
    this.#where = this.#placeOf(taken);
    taken.release();
  }

  #placeOf({ session, sessionId }: TakenSession): AttemptPlace {
    const { asked, address: remoteAddress = '' } = this.#target ?? {};
    const { settings, server } = this.#job;
    // A session that is used again still has the terms of the file before.
    const fileTerms = this.#work?.accepted === true ? session.fileTerms : undefined;
    const wanted = {
      maxEntitySize: settings.maxEntitySize ?? server.max_entity_size ?? this.#deps.settings.maxEntitySize,
      ...{ syncInterval: asked?.intervalKb ?? null, syncWindow: asked?.window ?? null },
      ...{
        compression: compressionName(extrasOf(this.#job).compression ?? 0),
        resync: asked?.resynchronisation ?? null,
      },
    };
    const terms = attemptTermsOf({ terms: session.terms, fileTerms }, wanted, this.#work?.startPoint?.number ?? 0);
    return { sessionId, remoteAddress, terms: terms ?? null };
  }

  async #acquire(fresh: boolean): Promise<TakenSession> {
    const { settings, secrets, tls, pool } = this.#deps;
    const target = sessionTarget(this.#job.server, this.#job.partner_id, this.#job.settings, {
      settings,
      secrets,
      tls,
    });
    this.#target = target;
    this.#where = { sessionId: null, remoteAddress: target.address, terms: null };
    this.#phase = 'connecting';
    // Told while a file was read: nobody hears of the transfer.
    this.#signal.throwIfAborted();
    const taken = await pool.acquire(target, this.#job.id, this.#signal, fresh);
    this.#phase = 'transferring';
    return taken;
  }

  #publishEnd(outcome: 'completed' | 'failed' | 'put off' | 'interrupted', facts: AttemptFacts): void {
    this.#deps.events.publish(ATTEMPT_ENDED, { outcome, facts: { ...this.#names, ...this.#about, ...facts } });
  }

  #failed(thrown: unknown): AttemptEnd {
    // Found out on the way, or told.
    const reason: unknown = thrown instanceof Interruption ? thrown : this.#signal.reason;
    this.#interruption = reason instanceof Interruption ? reason : undefined;
    const restartable = this.#work?.restartable ?? this.#job.restartable;
    const totals = this.totals;
    const figures = totals === undefined ? {} : { bytesTransferred: totals.dataBytes, articles: totals.articles };
    if (this.#interruption === undefined) return this.#refused(thrown, restartable, figures);
    const { kind, diagnostic, message: errorMessage } = this.#interruption;
    this.#publishEnd('interrupted', { reason: errorMessage });
    if (kind === 'cancelled') return { status: 'CANCELLED', ...figures, diagnostic, errorMessage };
    if (this.#work?.repeatable === false) return this.#refused(this.#interruption, false, figures);
    if (totals === undefined) return { status: 'PENDING', counts: 'untouched' };
    const errorCode = errorCodeOf(this.#interruption, this.#phase);
    return {
      status: 'PENDING',
      counts: 'none',
      delay: 0,
      restartable,
      ...figures,
      diagnostic,
      errorCode,
      errorMessage,
    };
  }

  /** Not from this side: whether another attempt follows is for the error to say. */
  #refused(thrown: unknown, mayRestart: boolean, figures: Pick<Ended, 'bytesTransferred' | 'articles'>): AttemptEnd {
    const error = toPesitError(thrown);
    if (error !== thrown) this.#aside('fault of this node', {}, thrown);
    const { retry } = this.#deps.settings;
    const { failures, postponements } = this.#job;
    const isUnsure = this.#work?.repeatable === false && error.fault !== 'refused';
    const verdict = isUnsure ? 'final' : verdictOn(error);
    const restartable = mayRestart && keepsTrust(error.diagnostic, this.#job.direction);
    this.#startsAnew = this.#isMisunderstood(error);
    const diagnostic = error.diagnostic;
    const end = { ...figures, restartable, diagnostic, errorCode: errorCodeOf(error, this.#phase) };
    const facts = { ...logWords(error), errorCode: end.errorCode, restartable };
    if (verdict === 'final' || (verdict === 'again' && failures + 1 >= retry.attempts)) {
      this.#publishEnd('failed', facts);
      const tries = verdict === 'again' && failures > 0 ? ` (given up after ${failures + 1} attempts)` : '';
      const unsure = isUnsure
        ? ': this node does not know whether the partner has it, and does not send it again by itself'
        : '';
      return { status: 'FAILED', ...end, errorMessage: `${explain(error)}${tries}${unsure}` };
    }
    const delay = delayAfter(1 + (verdict === 'later' ? postponements : failures), retry);
    this.#publishEnd('put off', { ...facts, delay });
    const counts = verdict === 'later' ? 'later' : 'failed';
    return { status: 'PENDING', counts, delay, ...end, errorMessage: explain(error) };
  }

  /**
   * A file that is read and was to continue did not come a point further, twice in a row, for the partner sent what does not fit:
   * it means something else by this point, and would again. It stays the same transfer, for the partner may count it as complete.
   */
  #isMisunderstood(error: PesitError): boolean {
    if (this.#work === undefined || error.fault !== 'remote') return false;
    const { from = 0, facts } = this.#work;
    const isSame = error.diagnostic === this.#job.diagnostic && outcomeOf(error.diagnostic).misunderstandsPoint;
    return isSame && from > 0 && (facts.syncPoint ?? 0) <= from;
  }

  #kept(end: AttemptEnd): Keep {
    if (this.#interruption?.kind === 'lost') return 'all';
    if (this.#startsAnew) return 'nothing';
    return end.status === 'CANCELLED' || ('restartable' in end && !end.restartable) ? 'nothing' : 'what is of use';
  }
}
