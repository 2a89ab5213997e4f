import { basename } from 'node:path';

import {
  claimStaged,
  DeliveryNotes,
  findDelivered,
  removeLeftover,
  StagedFile,
  StorageError,
} from '@pesit-node/storage';
import type { ReceivedFile, ResumedReceiving } from '@pesit-node/storage';
import type { PesitRequester, TransferTotals } from '@pesit-node/net';
import { keptBytes, readable, START } from '@pesit-node/protocol';
import type { Parameters, PesitError, SyncPoint } from '@pesit-node/protocol';
import {
  firstAnswerIn,
  firstAnswerOf,
  formatIn,
  namesFor,
  outcomeOf,
  receivedName,
  refusesRestart,
  FILE_FLUSHED,
  TRANSFER_DELIVERED,
  TRANSFER_ASIDE,
  TRANSFER_POINT,
} from '@pesit-node/transfers';
import type { Facts, FirstAnswer, ObservedTransfer, TransferAside } from '@pesit-node/transfers';

import type { Job } from '../transfers/row.js';
import { confirmName, fileToSelect, withAskedFile } from './asked-file.js';
import { codePageOf, extrasOf } from './file-extras.js';
import { readNote, writeNote } from './delivery-note.js';
import type { ReceivedTree } from './received-tree.js';
import type { RestartKeeper } from './restart-keeper.js';
import { Interruption } from '../queue/interruption.js';
import type { Completed, Keep, TransferDeps, Work } from './work.js';
import { paceOf } from './pace.js';

const KILOBYTES = 0;
/** Up to here a file is had again faster than it is noted for a power cut: the note survives the process alone. */
const SMALL_FILE = 1_048_576;

/** The size that the partner announces, in bytes; PI 42 counts kilobytes when PI 41 says so, and is no help otherwise. */
const announcedSize = ({ physicalAttributes }: Parameters): number =>
  physicalAttributes?.reservationUnit === KILOBYTES ? (physicalAttributes.maxReservation ?? 0) * 1024 : 0;

/** @param staged bytes that are there already */
const requireSpace = async ({ root, reserve }: ReceivedTree, attributes: Parameters, staged: number): Promise<void> => {
  const announced = announcedSize(attributes);
  // An announcement is rounded up to the next kilobyte.
  const missing = announced - 1024 - staged;
  if (missing <= 0) return;
  const { free, usable } = await reserve.look(root);
  if (missing <= usable) return;
  throw new StorageError(
    `the partner announces ${announced} bytes, the volume of ${root} has ${free} free, and ${free - usable} of them must stay (storage.reserve): free space or enlarge the volume`,
    {
      fault: 'local',
      diagnostic: '2-219',
      condition: 'disk full',
      peerText: 'not enough space for the announced size',
    },
  );
};

/** @param path absolute */
const storedAs = (path: string) => ({ filename: basename(path), localPath: path });

type Deps = Pick<TransferDeps, 'settings' | 'receivedTree' | 'rates' | 'events'>;

/** State that earlier attempts left. */
interface Begun {
  readonly resumed: (ResumedReceiving & { readonly first: FirstAnswer }) | undefined;
  /** PI 13 of the first attempt; undefined: the partner has to be asked for a new one. */
  readonly transferId: number | undefined;
}

const asideOf = ({ id }: Job, aside: TransferAside, facts: Facts = {}) => ({ session: undefined, id, aside, facts });

const NOTHING: Begun = { resumed: undefined, transferId: undefined };

/** Before the connection: what is staged is read for its hash, and the partner should not wait for that. */
const resume = async (
  job: Job,
  { settings, receivedTree, events }: Deps,
  signal: AbortSignal,
): Promise<Begun | Completed> => {
  const { root, reserve } = receivedTree;
  if (!job.restartable) {
    await reserve.admit(root);
    return NOTHING;
  }
  // Before the look: whoever ran it may only stand still, and delivers nothing from now on.
  await claimStaged(root, job.id, job.fence);
  const noted = await readNote(root, job.id);
  if (noted !== undefined) {
    const path = await findDelivered(root, job.id, noted, signal);
    if (path !== undefined) {
      events.publish(TRANSFER_ASIDE, asideOf(job, 'delivery completed', { localPath: path }));
      const { size, checksum, bytesTransferred, articles } = noted;
      const { transferId } = noted.first;
      return {
        status: 'COMPLETED',
        ...storedAs(path),
        pesitTransferId: transferId,
        size,
        checksum,
        bytesTransferred,
        articles,
      };
    }
  }
  await reserve.admit(root);
  const first = firstAnswerIn(await StagedFile.peek(root, job.id));
  const transferId = first?.transferId ?? noted?.first.transferId ?? job.pesit_transfer_id ?? 0;
  // Without a PI 13 the next SELECT cannot be a restart, and a new transfer begins at its first byte (pesit-e.md §5).
  if (transferId === 0) return NOTHING;
  if (first === undefined) return { resumed: undefined, transferId };
  const { checksum, durability, writeBufferSize: writeSize } = settings;
  const resumed = await receivedTree.store.resume({
    ...{ key: job.id, fence: job.fence, format: formatIn(first), checksum, durability, writeSize, signal },
    memo: JSON.stringify(first),
    growth: { watch: reserve.watch(root) },
    flushed: (ms) => events.publish(FILE_FLUSHED, { ms }),
  });
  const { point, reason } = resumed;
  const facts = { syncPoint: point.number, fileOffset: point.fileOffset, reason };
  events.publish(TRANSFER_ASIDE, asideOf(job, 'staging resumed', facts));
  return { resumed: { ...resumed, first }, transferId };
};

/**
 * A file on its way in: staged under the transfer's id, delivered when both sides have ended well.
 * @param signal looked at while what is staged is read
 * @returns the end, when an earlier attempt had delivered it already
 */
export const receiving = async (
  job: Job,
  deps: Deps,
  transfer: ObservedTransfer,
  restart: RestartKeeper,
  signal: AbortSignal,
): Promise<Work | Completed> => {
  const begun = await resume(job, deps, signal);
  if ('status' in begun) return begun;
  return new Receiving(job, deps, transfer, restart, begun);
};

class Receiving implements Work {
  readonly #job: Job;
  readonly #deps: Deps;
  readonly #transfer: ObservedTransfer;
  readonly #restart: RestartKeeper;
  readonly repeatable = true;
  #begun: Begun;
  #attributes: Parameters | undefined;
  #staged: ReceivedFile | undefined;
  #hasNote: boolean;
  #nameConfirmed: boolean | undefined;
  startPoint: SyncPoint | undefined;
  /** As PI 27 and PI 28 count: bytes of compressed articles, not those of the file. */
  #totals = (): TransferTotals => START;

  constructor(job: Job, deps: Deps, transfer: ObservedTransfer, restart: RestartKeeper, begun: Begun) {
    this.#job = job;
    this.#deps = deps;
    this.#transfer = transfer;
    this.#restart = restart;
    this.#begun = begun;
    this.#staged = begun.resumed?.file;
    this.#hasNote = job.restartable;
  }

  get accepted(): boolean {
    return this.#attributes !== undefined;
  }

  get from(): number {
    return this.#begun.resumed?.point.number ?? 0;
  }

  get restartable(): boolean {
    return this.#transferId !== 0;
  }

  get totals(): TransferTotals {
    return this.#totals();
  }

  get syncPoint(): number {
    return this.#staged?.stablePoint?.number ?? 0;
  }

  get announced(): number | undefined {
    const size = this.#attributes === undefined ? undefined : announcedSize(this.#attributes);
    return size === 0 ? undefined : size;
  }

  get facts(): Work['facts'] {
    const { logicalAttributes, historicalAttributes, freeMessage, originalSender, finalReceiver } =
      this.#attributes ?? {};
    const text = (given: string | undefined) => given && readable(given);
    return {
      ...{ pesitTransferId: this.#transferId || undefined, syncPoint: this.#staged?.stablePoint?.number },
      ...{ label: text(logicalAttributes?.fileLabel), freeMessage: freeMessage && keptBytes(freeMessage) },
      ...{ originalSender: text(originalSender), finalReceiver: text(finalReceiver) },
      ...{ creationDate: text(historicalAttributes?.creationDate), nameConfirmed: this.#nameConfirmed },
    };
  }

  async run(session: PesitRequester, signal: AbortSignal): Promise<Completed> {
    const { settings, receivedTree, rates, events } = this.#deps;
    const transfer = this.#transfer;
    const { settings: wanted, server } = this.#job;
    this.#totals = () => session.totals;
    const { dataBytes, articles } = await session
      .receiveFile({
        request: {
          fileIdentifier: { fileType: 0, fileName: fileToSelect(this.#job) },
          // 0: the server allocates it (pesit-e.md §5).
          transferId: this.#begun.transferId ?? 0,
          restarted: this.#begun.transferId !== undefined,
          maxEntitySize: wanted.maxEntitySize ?? server.max_entity_size ?? settings.maxEntitySize,
          ...extrasOf(this.#job),
        },
        open: (answer) => this.#open(answer),
        pace: paceOf(this.#job, rates),
        stored: () => this.#prepare(session.totals),
        acknowledged: (point, waitedMs) => events.publish(TRANSFER_POINT, { transfer, point, waitedMs }),
        signal,
      })
      .catch((error: unknown) => {
        throw withAskedFile(error, this.#job);
      })
      .finally(() => {
        // The session may serve another transfer from now on.
        const { totals } = session;
        this.#totals = () => totals;
      });
    await this.#restart.requireLease();
    const { size, checksum, path } = await receivedTree.deliver(
      this.#staged as ReceivedFile,
      this.#names(),
      wanted.overwrite ?? false,
    );
    events.publish(TRANSFER_DELIVERED, { transfer, path, size, checksum });
    return {
      ...{ status: 'COMPLETED', size, checksum, bytesTransferred: dataBytes, articles, ...storedAs(path) },
      ...this.facts,
    };
  }

  async startOver(error: PesitError): Promise<boolean> {
    const { transferId, resumed } = this.#begun;
    if (transferId === undefined || !refusesRestart(error, 'RECEIVE')) return false;
    // The point is not known there, the transfer may be: it may be complete there, and not be served to a new one.
    const isPointAlone = outcomeOf(error.diagnostic).unknownPoint && (resumed?.point.number ?? 0) > 0;
    if (!isPointAlone) await this.#restart.startOver();
    await this.#staged?.discard();
    this.#staged = undefined;
    this.#attributes = undefined;
    this.#begun = isPointAlone ? { resumed: undefined, transferId } : NOTHING;
    return true;
  }

  async close(keep: Keep): Promise<void> {
    // Without a point there is nothing to continue from.
    if (keep === 'nothing' || (keep === 'what is of use' && (await this.#staged?.lastPoint()) === undefined)) {
      await this.#staged?.discard();
    } else {
      await this.#staged?.release();
    }
  }

  async cleanUp(): Promise<void> {
    // The record has what mark and note were for; the note shows at the next start that a mark may be left.
    await this.#staged?.recorded();
    if (this.#hasNote) await new DeliveryNotes(this.#deps.receivedTree.root).remove(this.#job.id);
  }

  get #transferId(): number {
    return this.#begun.transferId ?? this.#attributes?.transferId ?? 0;
  }

  get #firstAnswer(): FirstAnswer {
    const { settings, server } = this.#job;
    const text = settings.text ?? server.text ?? undefined;
    return firstAnswerOf({ ...this.#attributes, transferId: this.#transferId }, text, codePageOf(settings, server));
  }

  async #open(answer: Parameters): Promise<{ from: SyncPoint; sink: ReceivedFile }> {
    this.#requireName(answer);
    this.#attributes = answer;
    const { settings, receivedTree, events } = this.#deps;
    const { root } = receivedTree;
    const { id, fence } = this.#job;
    const first = this.#firstAnswer;
    const { resumed } = this.#begun;
    if (resumed?.first.file === first.file) {
      this.startPoint = resumed.point;
      await requireSpace(receivedTree, answer, resumed.point.fileOffset);
      return { from: resumed.point, sink: resumed.file };
    }
    if (resumed !== undefined) {
      events.publish(TRANSFER_ASIDE, asideOf(this.#job, 'another file offered'));
      await resumed.file.discard();
      this.#staged = undefined;
    }
    await requireSpace(receivedTree, answer, 0);
    if (fence > 1 && !(await removeLeftover(root, id, { claim: fence }))) throw new Interruption('lost');
    const { checksum, durability, writeBufferSize: writeSize } = settings;
    this.#staged = await receivedTree.store.receive({
      ...{ key: id, fence, format: formatIn(first), checksum, durability, writeSize },
      memo: JSON.stringify(first),
      growth: { watch: receivedTree.reserve.watch(root) },
      flushed: (ms) => events.publish(FILE_FLUSHED, { ms }),
    });
    return { from: START, sink: this.#staged };
  }

  /** Before the file is opened: what is not read is there for the next one. */
  #requireName({ logicalAttributes }: Parameters): void {
    const { virtual_file: virtualFile, remote_filename: remoteFilename } = this.#job;
    try {
      this.#nameConfirmed = confirmName(this.#job, logicalAttributes?.fileLabel);
    } catch (error) {
      // The transfer that the partner has begun is of that file.
      this.#begun = NOTHING;
      throw error;
    }
    if (this.#nameConfirmed !== false) return;
    const facts = { virtualFile, remoteFilename };
    this.#deps.events.publish(TRANSFER_ASIDE, asideOf(this.#job, 'name not confirmed', facts));
  }

  /** All data came. The note before TRANS.END: from then on the partner may count the file as received. */
  async #prepare({ dataBytes, articles }: TransferTotals): Promise<void> {
    const staged = this.#staged as ReceivedFile;
    const { size, checksum } = await staged.prepareDelivery();
    const { settings, receivedTree } = this.#deps;
    const paths = await receivedTree.pathsOf(this.#names());
    const note = { first: this.#firstAnswer, paths, size, checksum, bytesTransferred: dataBytes, articles };
    const durable = settings.durability !== 'none' && (size > SMALL_FILE || staged.stablePoint !== undefined);
    this.#hasNote = true;
    await writeNote(receivedTree.root, this.#job.id, note, durable);
  }

  #names(): readonly string[] {
    const { id, settings, remote_filename: remoteFilename, virtual_file: virtualFile } = this.#job;
    const { logicalAttributes, fileIdentifier } = this.#attributes ?? {};
    const given = [remoteFilename ?? undefined, logicalAttributes?.fileLabel, fileIdentifier?.fileName];
    return namesFor(settings.localName ?? receivedName([...given, virtualFile ?? undefined]), id);
  }
}
