import { basename } from 'node:path';

import { CRC_LENGTH, FPDU_HEADER_LENGTH, PesitError, START } from '@pesit-node/protocol';
import type { ArticleSource, CompressionMode, Parameters, SelectAnswer } from '@pesit-node/protocol';
import { FileSource, formatOf } from '@pesit-node/storage';
import type { FileStore, Pacing, RecordFormat, StoredPoint } from '@pesit-node/storage';
import {
  CompressedSource,
  compressionMode,
  compressionName,
  dataCodeOf,
  goToPoint,
  hasCompressed,
  pacingsWith,
  pesitDate,
  TRANSFER_ASIDE,
} from '@pesit-node/transfers';
import type { AttemptTerms } from '@pesit-node/transfers';

import type { ContextRow } from '../transfers/contexts.js';
import type { RecordHandle, TransferFailure, TransferProgress, TransferStart } from '../transfers/record.js';
import { recordSettings } from '../virtual-files/record-settings.js';
import { virtualFileFor } from '../admission/access.js';
import type { Beginning, OutgoingTransfer } from './file-transfer.js';
import { findAgain, findToSend, isOfName } from '../files/file-to-send.js';
import { askedFile, asLabel } from '../files/names.js';
import type { FileParts, Files, Records } from './parts.js';
import { isRestart, startOf, termsOf } from './proven-partner.js';
import type { ProvenPartner } from './proven-partner.js';
import { asking, failureOf, refusal } from './refusal.js';
import { readRequestOf } from '../recovery/unanswered.js';

interface Offer {
  readonly source: FileSource;
  readonly name: string;
  /** Its place among the files that are being read, when it has one. */
  readonly reserved: string | undefined;
  /** How earlier attempts have placed their points, and how this one does. */
  readonly earlier: readonly Pacing[];
  readonly pacing: Omit<Pacing, 'from'>;
  readonly answer: Omit<SelectAnswer, 'transferId'>;
  /** PI 25 as it was asked for. */
  readonly askedEntity: number | undefined;
}

/** Answers a SELECT. @throws PesitError with the diagnostic of the refusal; nothing is left then. */
export const acceptOutgoing = async (
  proven: ProvenPartner,
  parts: FileParts,
  parameters: Parameters,
): Promise<OutgoingTransfer> => {
  const { files, records } = parts;
  const { fileName = '', fileType = 0 } = parameters.fileIdentifier ?? {};
  const asked = askedFile(fileName);
  const { file: virtualFile } = await virtualFileFor(proven, files, 'READ', asked.virtualFile, fileType);
  const start = startOf(proven, 'SEND', parameters);
  const known = isRestart(parameters) ? await asking('2-201', () => records.restarts.find(start)) : undefined;
  const before = known !== undefined && isOfName(known, asked) ? known : undefined;
  const { file, store, reserved } =
    before === undefined ? await findToSend(proven, parts, virtualFile, asked) : await findAgain(proven, files, before);
  try {
    const format = formatOf(recordSettings(virtualFile));
    const compression = compressionMode(virtualFile.compression);
    const source = await openSource(parts, store, file.path, format, before);
    const request = readRequestOf(start, file.path);
    try {
      const pacing = pacingOf(proven, files.config, parameters, compression);
      // A link has the name by which it was asked for.
      const name = asked.name ?? basename(file.path);
      const answer = { ...answerOf(proven, files.config, { fileName, name }, source, format), compression };
      const offer = {
        source,
        name,
        reserved,
        earlier: before?.pacings ?? [],
        pacing,
        answer,
        askedEntity: parameters.maxEntitySize,
      };
      if (before !== undefined) {
        const record =
          before.status === 'COMPLETED' ? before : await asking('2-201', () => records.restarts.take(before, start));
        return new OutgoingFile(proven, parts, record, offer, { transferId: before.transfer_id, request, before });
      }
      const again = await asking('2-201', () => unanswered(records, request, start, source));
      if (again !== undefined) {
        const record = await asking('2-201', () => records.restarts.take(again, start));
        return new OutgoingFile(proven, parts, record, offer, {
          transferId: again.transfer_id,
          request,
          before: again,
        });
      }
      const record = await records.journal.begin({
        ...start,
        filename: name,
        label: answer.fileLabel,
        creationDate: answer.creationDate,
        source: { path: file.path, version: source.version, pacings: [{ from: 0, ...pacing }] },
      });
      return new OutgoingFile(proven, parts, record, offer, { transferId: record.transferId, request, before });
    } catch (error) {
      await source.close();
      throw error;
    }
  } catch (error) {
    if (reserved !== undefined) files.outgoing.delete(reserved);
    throw error;
  }
};

interface Attempt {
  /** PI 13. */
  readonly transferId: number;
  /** See `UnansweredRequests`. */
  readonly request: string;
  /** The record when an attempt went before this one. */
  readonly before: ContextRow | undefined;
}

/** The record of the same request for the same version of the file, when nothing came of it. */
const unanswered = async (
  { unanswered: requests, contexts }: Records,
  request: string,
  { transferId }: TransferStart,
  { version }: FileSource,
): Promise<ContextRow | undefined> => {
  const id = requests.take(request);
  const row = id === undefined ? undefined : await contexts.untouched(id);
  if (row?.source_size !== version.size || row.source_mtime_ns !== String(version.mtimeNs)) return undefined;
  return transferId === 0 || transferId === row.transfer_id ? row : undefined;
};

/**
 * A file that a partner reads. At its end: record COMPLETED and "this partner has this file" committed in one, and only then
 * ACK(TRANS.END). A file that is being read is not offered to the same partner again meanwhile. A restart sends the same
 * version of the same file or nothing, and one of a completed transfer changes no record.
 */
export class OutgoingFile implements OutgoingTransfer {
  readonly direction = 'SEND';
  readonly type = 'FILE';
  readonly id: number;
  readonly peer: string;
  readonly record: RecordHandle;
  readonly name: string;
  readonly answer: SelectAnswer;
  readonly #proven: ProvenPartner;
  readonly #files: Files;
  readonly #records: Records;
  readonly #offer: Offer;
  readonly #request: string;
  readonly #before: ContextRow | undefined;
  #began = false;
  /** Where it continues. */
  #fromPoint = 0;

  constructor(
    proven: ProvenPartner,
    { files, records }: FileParts,
    record: RecordHandle,
    offer: Offer,
    { transferId, request, before }: Attempt,
  ) {
    this.id = record.id;
    this.peer = proven.partner.partner_id;
    this.record = { id: record.id, fence: record.fence };
    this.name = offer.name;
    this.answer = { ...offer.answer, transferId };
    this.#proven = proven;
    this.#files = files;
    this.#records = records;
    this.#offer = offer;
    this.#request = request;
    this.#before = before;
  }

  readonly progress = (): TransferProgress => {
    if (this.#began) return { ...this.#proven.session.totals, syncPoint: this.#offer.source.points.last };
    const { bytes_transferred: dataBytes = 0, articles = 0, sync_point: syncPoint = 0 } = this.#before ?? {};
    return { dataBytes, articles, syncPoint };
  };

  /** READ. @throws PesitError 2-214 for a point that no attempt has placed */
  async read(point: number): Promise<Beginning & { readonly source: ArticleSource }> {
    const { source, earlier, pacing } = this.#offer;
    const written = (sent: number) => asking('2-201', () => this.#records.sentPoints.find(this.record, sent));
    const found = point === 0 ? START : await goToPoint(source, point, earlier, written);
    if (found === undefined) {
      throw refusal('2-214', `the point ${point} (PI 18) is not known here: read from the start (0)`);
    }
    const { number, dataBytes, articles } = found;
    // Said with the record already, unless less was agreed than is allowed.
    const compression = this.#proven.session.fileTerms?.compression ?? 0;
    if (this.#before !== undefined || compression !== pacing.compression) {
      const pacings = pacingsWith(earlier, { ...pacing, from: number, compression });
      if (pacings !== earlier) await asking('2-201', () => this.#records.contexts.paced(this.record, pacings));
    }
    this.#began = true;
    this.#fromPoint = number;
    const from = { number, dataBytes, articles };
    const beginning: Beginning =
      this.#before === undefined
        ? { from, attempt: 'first', facts: {} }
        : { from, attempt: 'next', facts: { attempt: this.#before.attempts + 1 } };
    if (compression !== 0 || hasCompressed(earlier)) {
      await asking('2-201', () => this.#records.sentPoints.forgetAfter(this.record, number));
    }
    if (compression === 0) return { ...beginning, source };
    const write = (sent: StoredPoint) => asking('2-201', () => this.#records.sentPoints.add(this.record, sent));
    return { ...beginning, source: new CompressedSource(source, this.#proven.session, write, number) };
  }

  async end(): Promise<void> {
    const { source } = this.#offer;
    await source.hashed();
    await source.close();
    if (this.#before?.status !== 'COMPLETED') {
      const { completions } = this.#records.journal;
      const completion = {
        ...this.progress(),
        size: source.size,
        checksum: source.checksum,
        path: source.path,
        filename: this.name,
        compression: compressionName(this.#proven.session.fileTerms?.compression ?? 0),
        terms: this.#terms,
        sentMtimeNs: source.version.mtimeNs,
      };
      await completions.complete(this.record, completion, completions.deadline());
    }
    this.#giveBack();
  }

  async fail(error: PesitError, endCode: number | undefined): Promise<TransferFailure> {
    const failure = failureOf(error, endCode);
    const progress = this.progress();
    this.#giveBack();
    await this.#offer.source.close().catch((problem: unknown) => {
      const about = { session: this.#proven.observed, id: this.record.id, facts: {} };
      this.#proven.events.publish(TRANSFER_ASIDE, { ...about, aside: 'file not closed', error: problem });
    });
    if (this.#before?.status === 'COMPLETED') return failure;
    const { restartable } = await this.#records.journal.failed(this.record, failure, progress, this.#terms);
    if (restartable && progress.dataBytes === 0) this.#records.unanswered.add(this.#request, this.record.id);
    return failure;
  }

  get #terms(): AttemptTerms | undefined {
    return termsOf(this.#proven, { maxEntitySize: this.#offer.askedEntity, fromPoint: this.#fromPoint });
  }

  #giveBack(): void {
    const { reserved } = this.#offer;
    if (reserved !== undefined) this.#files.outgoing.delete(reserved);
  }
}

/** @throws StorageError 2-215 when it is not the version of the first attempt: the transfer is no longer restartable */
const openSource = async (
  { files: { config }, records: { contexts } }: FileParts,
  store: FileStore,
  path: string,
  format: RecordFormat,
  before: ContextRow | undefined,
): Promise<FileSource> => {
  const options = { store, checksum: config['transfer.checksum'], readSize: config['transfer.read-buffer-size'] };
  if (before === undefined) return FileSource.open(path, format, options);
  const expected = { size: before.source_size ?? 0, mtimeNs: BigInt(before.source_mtime_ns ?? 0) };
  try {
    return await FileSource.open(path, format, { ...options, expected });
  } catch (error) {
    if (error instanceof PesitError && error.condition === 'source changed') {
      await asking('2-201', () => contexts.giveUp(before, error.message));
    }
    throw error;
  }
};

/**
 * Points are placed by what was negotiated: that alone finds them again.
 * @param compression as allowed; what is agreed is known at READ
 */
const pacingOf = (
  { session, listener }: ProvenPartner,
  config: Files['config'],
  { maxEntitySize = 0 }: Parameters,
  compression: CompressionMode | 0,
): Omit<Pacing, 'from'> => {
  const ours = listener.max_entity_size ?? config['transfer.max-entity-size'];
  const trailer = session.terms?.crc === true ? CRC_LENGTH : 0;
  return {
    interval: session.terms?.syncInterval ?? 0,
    maxUnsegmentedArticle: Math.min(maxEntitySize, ours) - FPDU_HEADER_LENGTH - trailer,
    compression,
  };
};

const answerOf = (
  { listener }: ProvenPartner,
  config: Files['config'],
  { fileName, name }: { readonly fileName: string; readonly name: string },
  source: FileSource,
  format: RecordFormat,
): Omit<SelectAnswer, 'transferId'> => ({
  fileName,
  maxEntitySize: listener.max_entity_size ?? config['transfer.max-entity-size'],
  // Always there: without PI 16 a partner takes the articles for ASCII and may translate them (§4.7.3).
  dataCode: dataCodeOf(format),
  recordFormat: format.recordFormat,
  recordLength: format.recordLength,
  fileLabel: asLabel(name),
  maxReservationKb: Math.ceil(source.size / 1024),
  creationDate: pesitDate(source.modified),
});
