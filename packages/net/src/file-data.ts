/**
 * The one place where the events of a session are told apart: those of the data of the open file end here, the others go to
 * the role (`server-connection.ts`, `requester.ts`).
 *
 * Going back to a sync point (RESYN, §3.6.3 p). The sender's source, or the receiver's sink, is brought there first. When
 * the partner asked, ACK(RESYN) leaves then and says so; when we asked, its ACK(RESYN) has come and the data follow it at
 * once: what came with it waits until the sink is ready, and nothing more is read. A file that cannot go back is
 * interrupted (2-218), to be restarted.
 */
import type {
  ArticleSink,
  ArticleSource,
  FpduName,
  Parameters,
  PesitError,
  SessionEvent,
  SingleArticleStyle,
  SyncPoint,
} from '@pesit-node/protocol';
import type { Connection } from './connection.js';
import { ArticleIntake } from './article-intake.js';
import { ArticleOutflow } from './article-outflow.js';
import type { DataLimits } from './data-limits.js';
import { cannotGoBack } from './errors.js';
import type { Pace } from './pace.js';

/** How a role handles the events that are not about data. */
export interface SessionListener {
  /** An FPDU to answer, or an answer that was waited for. */
  fpdu(name: FpduName, parameters: Parameters): void;
  /**
   * The transfer goes back to a sync point: DTF.END, and what came after it, is void, and comes or is sent once more.
   * @throws PesitError when it is too late for that: the transfer is interrupted
   */
  goesBack(): void;
  /**
   * The receiver has everything up to this point on stable storage, and has said so.
   * @param waitedMs since its SYN, where we are the receiver
   */
  acknowledged(point: SyncPoint, waitedMs?: number): void;
  interrupted(error: PesitError, endCode: number): void;
  learned(style: SingleArticleStyle): void;
  /** A request that the session itself has refused. */
  refused?(name: FpduName, parameters: Parameters, error: PesitError): void;
  notice(text: string): void;
  ended(error: PesitError | undefined): void;
  /** The file cannot continue here: interrupt the transfer. */
  failed(error: unknown): void;
}

export class FileData {
  readonly #connection: Connection;
  readonly #listener: SessionListener;
  readonly #limits: DataLimits;
  #sink: ArticleSink | undefined;
  #pace: Pace | undefined;
  #intake: ArticleIntake | undefined;
  #outflow: ArticleOutflow | undefined;
  /** Where this attempt began. */
  #from = 0;
  /** Events that came while the sink goes back. */
  #deferred: SessionEvent[] | undefined;

  constructor(connection: Connection, listener: SessionListener, limits: DataLimits = {}) {
    this.#connection = connection;
    this.#listener = listener;
    this.#limits = limits;
  }

  /** Articles go to `sink` from now on. */
  receive(sink: ArticleSink, pace?: Pace): void {
    this.#sink = sink;
    this.#pace = pace;
    this.#intake = this.#newIntake(sink);
  }

  /** DTF.END came: nothing more is written or acknowledged, unless the transfer goes back. */
  received(): void {
    this.#intake?.stop();
  }

  /** Articles come from `source`, which stands at `from`; to be `run`. */
  send(source: ArticleSource, from: SyncPoint, pace?: Pace): ArticleOutflow {
    this.#from = from.number;
    this.#pace = pace;
    this.#outflow = new ArticleOutflow(this.#connection, source, this.#limits.burst, pace);
    return this.#outflow;
  }

  /** The transfer is over, well or not. */
  stop(): void {
    this.#deferred = undefined;
    this.#pace?.close();
    this.#pace = undefined;
    this.#sink = undefined;
    this.#intake?.stop();
    this.#intake = undefined;
    this.#outflow?.stop();
    this.#outflow = undefined;
  }

  handle(event: SessionEvent): void {
    switch (event.kind) {
      case 'INTERRUPTED':
        this.stop();
        this.#listener.interrupted(event.error, event.endCode);
        return;
      case 'ENDED':
        this.stop();
        this.#listener.ended(event.error);
        return;
      default:
        if (this.#deferred === undefined) this.#take(event);
        else this.#deferred.push(event);
    }
  }

  #take(event: Exclude<SessionEvent, { kind: 'INTERRUPTED' | 'ENDED' }>): void {
    switch (event.kind) {
      case 'ARTICLES':
        this.#intake?.take(event.batch);
        break;
      case 'SYN':
        this.#intake?.checkpoint(event.point);
        break;
      case 'ACK(SYN)':
        this.#outflow?.wake();
        this.#listener.acknowledged(event.point);
        break;
      case 'RESYN':
        this.#listener.notice(`${event.error.message}: back to sync point ${event.point.number}`);
        this.#goBack(event.point, true);
        break;
      case 'ACK(RESYN)':
        this.#goBack(event.point, false);
        break;
      case 'FPDU':
        this.#listener.fpdu(event.name, event.parameters);
        break;
      case 'STYLE':
        this.#listener.learned(event.style);
        break;
      case 'REFUSED':
        this.#listener.refused?.(event.name, event.parameters, event.error);
        break;
      case 'NOTICE':
        this.#listener.notice(event.text);
        break;
    }
  }

  /** @param answer the partner has asked, and waits for ACK(RESYN) */
  #goBack(point: SyncPoint, answer: boolean): void {
    const arrived = (): void => {
      if (answer) this.#connection.session.acceptResyn();
      this.#connection.attend();
    };
    try {
      this.#listener.goesBack();
      if (this.#outflow !== undefined) {
        // Points before the start were placed by an earlier attempt, whose places nobody has at hand.
        if (point.number < this.#from) throw cannotGoBack(point);
        this.#outflow.goBack(point, arrived);
      } else if (this.#sink !== undefined) {
        this.#bringBack(this.#sink, point, answer, arrived);
      } else {
        throw cannotGoBack(point);
      }
    } catch (error) {
      this.#listener.failed(error);
    }
  }

  #bringBack(sink: ArticleSink, point: SyncPoint, answer: boolean, arrived: () => void): void {
    if (sink.goBack === undefined) throw cannotGoBack(point);
    this.#intake?.stop();
    // Checkpoints of the old one may still be flushed: they are no longer acknowledged.
    const intake = this.#newIntake(sink);
    this.#intake = intake;
    this.#deferred = [];
    const back = sink.goBack(point).then(
      () => {
        if (this.#intake !== intake) return;
        const deferred = this.#deferred ?? [];
        this.#deferred = undefined;
        arrived();
        for (const event of deferred) this.handle(event);
      },
      (error: unknown) => {
        if (this.#intake === intake) this.#listener.failed(error);
      },
    );
    // Until ACK(RESYN) has left, nothing comes but what ends the transfer.
    if (answer) this.#connection.pauseClock(back);
    else this.#connection.hold(back);
  }

  #newIntake(sink: ArticleSink): ArticleIntake {
    const failed = (error: unknown): void => {
      this.#listener.failed(error);
    };
    const acknowledged = (point: SyncPoint, waitedMs: number): void => {
      this.#listener.acknowledged(point, waitedMs);
    };
    return new ArticleIntake(this.#connection, sink, { failed, acknowledged }, this.#limits.read, this.#pace);
  }
}
