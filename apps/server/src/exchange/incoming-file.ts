import { randomUUID } from 'node:crypto';

import { PesitError, START } from '@pesit-node/protocol';
import type { ArticleSink, CreateAnswer, Parameters } from '@pesit-node/protocol';
import { removeLeftover } from '@pesit-node/storage';
import type { GrowthRules, ReceivedFile, RemoveOptions, TakenBack } from '@pesit-node/storage';
import { settledWithin } from '@pesit-node/ground';
import {
  compressionMode,
  compressionName,
  keepsTrust,
  FILE_FLUSHED,
  TRANSFER_DELIVERED,
  TRANSFER_ASIDE,
} from '@pesit-node/transfers';
import type { AttemptTerms, TransferAside } from '@pesit-node/transfers';

import type { ContextRow } from '../transfers/contexts.js';
import type {
  RecordHandle,
  TransferCompletion,
  TransferFailure,
  TransferProgress,
  TransferStart,
} from '../transfers/record.js';
import { virtualFileFor } from '../admission/access.js';
import type { Beginning, IncomingTransfer } from './file-transfer.js';
import { INTENT_FROM } from '../files/final-name.js';
import type { FileParts, Files, Records } from './parts.js';
import { isRestart, startOf, termsOf } from './proven-partner.js';
import type { ProvenPartner } from './proven-partner.js';
import type { Claim, QuotaRoom } from '../admission/quotas.js';
import { checkPlace, largerThan, leastBytes, newPlace, requireReachable, samePlace } from '../files/receive-place.js';
import type { ReceivePlace } from '../files/receive-place.js';
import { asking, failureOf, refusal } from './refusal.js';
import { ReplayedFile } from './replayed-file.js';
import { requestOf } from '../recovery/unanswered.js';

/** How long the database may keep the end of a session waiting, milliseconds. */
const ASK_MS = 500;

/** Answers a CREATE. @throws PesitError with the diagnostic of the refusal; nothing is left then. */
export const acceptIncoming = async (
  proven: ProvenPartner,
  parts: FileParts,
  parameters: Parameters,
): Promise<IncomingTransfer> => {
  const { files, records } = parts;
  const { fileName = '', fileType = 0 } = parameters.fileIdentifier ?? {};
  const { file, quota } = await virtualFileFor(proven, files, 'WRITE', fileName, fileType);
  const start = startOf(proven, 'RECEIVE', parameters);
  const answer = {
    maxEntitySize: proven.listener.max_entity_size ?? files.config['transfer.max-entity-size'],
    compression: compressionMode(file.compression),
  };
  const request = requestOf(start);
  const claimOf = (place: ReceivePlace): Claim => ({
    partnerId: proven.partner.partner_id,
    announced: leastBytes(parameters, place),
  });
  const isRestarted = isRestart(parameters);
  const { maxEntitySize: askedEntity } = parameters;
  // Before the record says that the transfer is this process's.
  const { term } = records.lease;
  const before = await asking('2-201', () => (isRestarted ? records.restarts.find(start) : unanswered(records, start)));
  if (before?.status === 'COMPLETED') return new ReplayedFile(proven, records.contexts, before, answer, file.text);
  if (before !== undefined) {
    const began = { directory: before.directory ?? '', path: before.filename, key: before.context ?? '' };
    const place = samePlace(files, file, parameters, began);
    await checkPlace(files, place, parameters);
    const room = await files.quotas.roomFor(quota, { ...claimOf(place), record: before.id });
    const taken = await asking('2-201', () => records.restarts.take(before, start));
    const attempt = { place, request, before: taken, isRestarted, room, term, askedEntity };
    return new IncomingFile(proven, parts, taken, answer, attempt);
  }
  const place = newPlace(proven, files, file, parameters, randomUUID());
  await checkPlace(files, place, parameters);
  const claim = claimOf(place);
  const room = await files.quotas.roomFor(quota, claim);
  const staging = { ...place, announced: claim.announced };
  const record = await records.journal.begin({ ...start, filename: place.path, staging }, room?.admit);
  const attempt = { place, request, before, isRestarted, room, term, askedEntity };
  return new IncomingFile(proven, parts, record, answer, attempt);
};

interface Attempt {
  readonly place: ReceivePlace;
  /** See `UnansweredRequests`. */
  readonly request: string;
  /** The record when an attempt went before this one. */
  readonly before: ContextRow | undefined;
  /** PI 15: the partner continues where this side says. */
  readonly isRestarted: boolean;
  /** PI 25 as it was asked for. */
  readonly askedEntity: number | undefined;
  /** Room of a partner with a quota. */
  readonly room: QuotaRoom | undefined;
  /** Term of the lease of this process in which the attempt began. */
  readonly term: number | undefined;
}

/** The record of the same request when nothing came of it; what the partner says of the file must agree. */
const unanswered = async (
  { unanswered: requests, contexts }: Records,
  start: TransferStart,
): Promise<ContextRow | undefined> => {
  const id = requests.take(requestOf(start));
  const row = id === undefined ? undefined : await contexts.untouched(id);
  const { label = null, creationDate = null } = start;
  return row?.label === label && row.creation_date === creationDate ? row : undefined;
};

/**
 * A file that a partner writes.
 *
 * The order at its end, whatever is lost and whenever: data on stable storage → what will be delivered recorded (large files,
 * those with sync points, and any when our lease is not certain) → final name on stable storage → record COMPLETED committed → ACK(TRANS.END). If this process
 * dies in between, `Recovery` finishes it or leaves it to the partner to restart, and knows of a delivery by its mark although
 * the file was fetched meanwhile; if the database is away, the commit is tried again while the partner waits, and when it
 * finally fails the delivered file is taken back before the partner is told no: what it then sends again is not there twice.
 */
export class IncomingFile implements IncomingTransfer {
  readonly direction = 'RECEIVE';
  readonly type = 'FILE';
  readonly id: number;
  readonly peer: string;
  readonly record: RecordHandle;
  readonly name: string;
  readonly answer: CreateAnswer;
  readonly #proven: ProvenPartner;
  readonly #files: Files;
  readonly #records: Records;
  readonly #place: ReceivePlace;
  readonly #attempt: Attempt;
  /** Where it continues. */
  #fromPoint = 0;
  #staged: ReceivedFile | undefined;

  constructor(
    proven: ProvenPartner,
    { files, records }: FileParts,
    record: RecordHandle,
    answer: CreateAnswer,
    attempt: Attempt,
  ) {
    this.id = record.id;
    this.peer = proven.partner.partner_id;
    this.record = { id: record.id, fence: record.fence, attempts: attempt.before?.attempts ?? 1 };
    this.name = attempt.place.path;
    this.answer = answer;
    this.#proven = proven;
    this.#files = files;
    this.#records = records;
    this.#place = attempt.place;
    this.#attempt = attempt;
  }

  readonly progress = (): TransferProgress => {
    if (this.#staged !== undefined) {
      // As PI 27 counts them: compressed articles are longer in the file.
      return { ...this.#proven.session.totals, syncPoint: this.#staged.stablePoint?.number ?? 0 };
    }
    const { bytes_transferred: dataBytes = 0, articles = 0, sync_point: syncPoint = 0 } = this.#attempt.before ?? {};
    return { dataBytes, articles, syncPoint };
  };

  /** WRITE: from the newest point of earlier attempts whose bytes are proved to be there. */
  async write(): Promise<Beginning & { readonly sink: ArticleSink }> {
    const { partner, session } = this.#proven;
    const { config, stores } = this.#files;
    const { directory, key, format, durability } = this.#place;
    const store = stores.at(directory);
    const options = {
      key,
      fence: this.record.fence,
      format,
      checksum: config['transfer.checksum'],
      durability,
      writeSize: config['transfer.write-buffer-size'],
      memo: `transfer ${this.record.id} of ${partner.partner_id}`,
      growth: this.#growth(),
      flushed: (ms: number) => this.#proven.events.publish(FILE_FLUSHED, { ms }),
    };
    const { before, isRestarted } = this.#attempt;
    if (before === undefined) {
      this.#staged = await store.receive(options);
      return { from: START, attempt: 'first', facts: {}, sink: this.#staged };
    }
    // Without points in this session, or PI 15, the partner could not be told where to continue.
    const fromStart = !isRestarted || (session.terms?.syncInterval ?? 0) === 0;
    if (fromStart && !(await removeLeftover(store.staging, key, this.#claim))) throw inUse();
    const { file, point, reason } = await store.resume(options);
    this.#staged = file;
    const { number, dataBytes, articles } = point;
    const from = { number, dataBytes, articles };
    this.#fromPoint = number;
    return { from, attempt: 'next', facts: { attempt: before.attempts, reason }, sink: file };
  }

  #growth(): GrowthRules {
    const { directory, maxSize } = this.#place;
    const { room } = this.#attempt;
    const watch = this.#files.reserve.watch(directory);
    const limits = [
      ...(maxSize === undefined ? [] : [{ bytes: maxSize.bytes, exceeded: () => largerThan(maxSize) }]),
      ...(room === undefined ? [] : [room]),
    ];
    return {
      limit: limits.sort((a, b) => a.bytes - b.bytes)[0],
      watch: {
        ...watch,
        check: async () => {
          await watch.check();
          await room?.check(this.record.id, this.#staged?.size ?? 0);
        },
      },
    };
  }

  async end(): Promise<void> {
    const staged = this.#staged;
    if (staged === undefined) throw refusal('3-311', 'TRANS.END without WRITE');
    const { directories } = this.#files;
    const { lease, journal } = this.#records;
    const { completions } = journal;
    const { directory, overwrite, path } = this.#place;
    const content = await staged.prepareDelivery();
    // Others may have grown beside it: each says how large it is before it is delivered.
    await this.#attempt.room?.check(this.record.id, content.size);
    const deadline = completions.deadline();
    const completionOf = (where: string): TransferCompletion => ({
      ...this.progress(),
      size: content.size,
      checksum: content.checksum,
      path: where,
      filename: path,
      lastPoint: staged.stablePoint,
      compression: compressionName(this.#proven.session.fileTerms?.compression ?? 0),
      terms: this.#terms,
    });
    // After a gap in the lease the intent asks, too, whether the transfer is still ours: before the file has its name.
    const isOurs = lease.term !== undefined && lease.term === this.#attempt.term;
    if (staged.stablePoint !== undefined || content.size >= INTENT_FROM || !isOurs) {
      await completions.intend(this.record, completionOf(path), deadline);
    }
    const delivery = await staged.deliver({
      path,
      overwrite,
      marked: true,
      admit: (final) => requireReachable(directories, directory, final),
    });
    this.#proven.events.publish(TRANSFER_DELIVERED, { transfer: this, path: delivery.path, ...content });
    try {
      await completions.complete(this.record, completionOf(delivery.path), deadline);
    } catch (error) {
      // Who has claimed the transfer may have found the file delivered: it is his to keep.
      if (isClaimLost(error)) throw error;
      const outcome = await this.#takeBack(staged, delivery.path);
      if (outcome !== 'fetched' || !isDatabaseAway(error)) {
        if (outcome !== undefined) void this.#forgetMark(staged);
        throw error;
      }
      // Sent again it would come twice: the partner is told that it is here, as it is, and the record follows.
      completions.completeLater(this.record, completionOf(delivery.path));
    }
    await staged.recorded();
  }

  async fail(error: PesitError, endCode: number | undefined): Promise<TransferFailure> {
    const failure = failureOf(error, endCode);
    const totals = this.progress();
    await this.#quietly(() => this.#letGo(failure));
    const progress = { ...totals, syncPoint: this.progress().syncPoint };
    const { restartable } = await this.#records.journal.failed(this.record, failure, progress, this.#terms);
    if (restartable && progress.dataBytes === 0) this.#records.unanswered.add(this.#attempt.request, this.record.id);
    if (failure.restartable && !restartable) {
      const { directory, key } = this.#place;
      await this.#quietly(() => removeLeftover(directory, key, this.#claim));
    }
    return { ...failure, restartable };
  }

  get #terms(): AttemptTerms | undefined {
    return termsOf(this.#proven, { maxEntitySize: this.#attempt.askedEntity, fromPoint: this.#fromPoint });
  }

  async #quietly(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (problem) {
      this.#aside('staging not released', { error: problem });
    }
  }

  #aside(aside: TransferAside, { error, ...facts }: { readonly error?: unknown; readonly path?: string }): void {
    const { events, observed: session } = this.#proven;
    events.publish(TRANSFER_ASIDE, { session, id: this.record.id, aside, error, facts });
  }

  /** Keeps what a restart can use, and removes nothing that another session may be at work with. */
  async #letGo({ restartable, diagnostic }: TransferFailure): Promise<void> {
    const { directory, key } = this.#place;
    const isUseful = restartable && keepsTrust(diagnostic, 'RECEIVE');
    const staged = this.#staged;
    if (staged === undefined) {
      const isLeft = this.#attempt.before !== undefined && !isUseful;
      if (isLeft && (await this.#isOwned())) await removeLeftover(directory, key, this.#claim);
    } else if ((isUseful && (await staged.lastPoint()) !== undefined) || !(await this.#isOwned())) {
      await staged.release();
    } else {
      await staged.discard();
    }
  }

  get #claim(): RemoveOptions {
    return { claim: this.record.fence };
  }

  /** True while the database cannot say otherwise: who would take a transfer has to ask it, too. */
  async #isOwned(): Promise<boolean> {
    const asked = await settledWithin(this.#records.contexts.isOwned(this.record), ASK_MS);
    return asked.kind !== 'done' || asked.value;
  }

  /** @returns undefined when the file may still be there */
  async #takeBack(staged: ReceivedFile, path: string): Promise<TakenBack | undefined> {
    try {
      const outcome = await staged.takeBack();
      this.#aside(TAKEN_BACK[outcome], { path });
      return outcome;
    } catch (error) {
      this.#aside('delivery not taken back', { path, error });
      return undefined;
    }
  }

  /** Until the record is withdrawn its mark tells other processes that it is to be. */
  async #forgetMark(staged: ReceivedFile): Promise<void> {
    if (await this.#records.journal.completions.withdrawn(this.record.id)) await staged.recorded();
  }
}

const TAKEN_BACK = {
  fetched: 'fetched before recorded',
  stays: 'delivery stays',
  claimed: 'delivery claimed',
  'taken back': 'delivery taken back',
} as const satisfies Record<TakenBack, TransferAside>;

const isClaimLost = (error: unknown): boolean => error instanceof PesitError && error.condition === 'claim lost';

const isDatabaseAway = (error: unknown): boolean => error instanceof PesitError && error.condition === 'database away';

const inUse = (): PesitError =>
  refusal('2-207', 'another attempt of this transfer is still at work with its staged file: let it end');
