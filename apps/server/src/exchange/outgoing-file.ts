import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import type { ArticleSource, Parameters, SelectAnswer, SyncPoint } from '@pesit-node/protocol';
import { FileSource, findFileToSend, formatOf, matchesGlob } from '@pesit-node/storage';
import type { RecordFormat, SendableFile } from '@pesit-node/storage';

import type { TransferProgress } from '../transfers/record.js';
import type { VirtualFileRow } from '../virtual-files/store.js';
import { virtualFileFor } from './access.js';
import { startOf } from './context.js';
import type { FileTransfer, PartnerContext } from './context.js';
import { asCreationDate, asLabel, readable } from './names.js';
import { asking, refusal } from './refusal.js';

const START: SyncPoint = { number: 0, dataBytes: 0, articles: 0 };

/** Data bytes and articles sent so far: the session counts them. */
export type SentTotals = () => { readonly dataBytes: number; readonly articles: number };

interface Selected extends Found {
  readonly format: RecordFormat;
  /** PI 12. */
  readonly fileName: string;
  readonly totals: SentTotals;
}

/**
 * A file that a partner reads. At its end: record COMPLETED and "this partner has this file" committed in one, and only then
 * ACK(TRANS.END). A file that is being read is not offered to the same partner again meanwhile.
 */
export class OutgoingFile implements FileTransfer {
  readonly id: number;
  readonly name: string;
  readonly #context: PartnerContext;
  readonly #selected: Selected;
  readonly #transferId: number;
  /** Opened at SELECT, so that what cannot be read is refused there. */
  #source: FileSource;
  #isFresh = true;

  /** Answers a SELECT. @throws PesitError with the diagnostic of the refusal; nothing is left then. */
  static async accept(context: PartnerContext, parameters: Parameters, totals: SentTotals): Promise<OutgoingFile> {
    const { fileName = '', fileType = 0 } = parameters.fileIdentifier ?? {};
    const virtualFile = await virtualFileFor(context, 'READ', fileName, fileType);
    const { file, reserved } = await find(context, virtualFile, fileName);
    try {
      const format = formatOf({
        recordFormat: virtualFile.record_format ?? undefined,
        recordLength: virtualFile.record_length ?? undefined,
        text: virtualFile.text,
      });
      const source = await openSource(context, file, format);
      try {
        const record = await context.journal.begin({ ...startOf(context, 'SEND', parameters), filename: file.name });
        return new OutgoingFile(context, record, { file, reserved, format, fileName, totals }, source);
      } catch (error) {
        await source.close();
        throw error;
      }
    } catch (error) {
      if (reserved !== undefined) context.outgoing.delete(reserved);
      throw error;
    }
  }

  private constructor(
    context: PartnerContext,
    record: { readonly id: number; readonly transferId: number },
    selected: Selected,
    source: FileSource,
  ) {
    this.#context = context;
    this.#selected = selected;
    this.#source = source;
    this.id = record.id;
    this.#transferId = record.transferId;
    this.name = selected.file.name;
  }

  get answer(): SelectAnswer {
    const { listener, config } = this.#context;
    const { file, format, fileName } = this.#selected;
    return {
      fileName,
      transferId: this.#transferId,
      maxEntitySize: listener.max_entity_size ?? config['transfer.max-entity-size'],
      recordFormat: format.recordFormat,
      recordLength: format.recordLength,
      fileLabel: asLabel(file.name),
      maxReservationKb: Math.ceil(this.#source.size / 1024),
      creationDate: asCreationDate(file.modified),
    };
  }

  readonly progress = (): TransferProgress => ({
    ...this.#selected.totals(),
    syncPoint: this.#source.points.last,
  });

  /** READ. @throws PesitError 2-214 for any point but the start */
  async read(point: number): Promise<{ readonly from: SyncPoint; readonly source: ArticleSource }> {
    if (point !== 0) throw refusal('2-214', `the point ${point} (PI 18) is not known here: read from the start (0)`);
    if (!this.#isFresh) {
      await this.#source.close();
      this.#source = await openSource(this.#context, this.#selected.file, this.#selected.format);
    }
    this.#isFresh = false;
    return { from: START, source: this.#source };
  }

  async end(): Promise<void> {
    const { file } = this.#selected;
    await this.#source.close();
    await this.#context.journal.complete(this.id, {
      ...this.progress(),
      size: this.#source.size,
      checksum: this.#source.checksum,
      path: file.path,
      filename: file.name,
      sentMtimeNs: file.mtimeNs,
    });
    this.#giveBack();
  }

  async giveUp(): Promise<void> {
    this.#giveBack();
    await this.#source.close().catch((error: unknown) => {
      this.#context.logger.warn({ transfer: this.id, err: error }, 'file to send cannot be closed');
    });
  }

  #giveBack(): void {
    const { reserved } = this.#selected;
    if (reserved !== undefined) this.#context.outgoing.delete(reserved);
  }
}

const openSource = ({ config }: PartnerContext, file: SendableFile, format: RecordFormat): Promise<FileSource> =>
  FileSource.open(file.path, format, { checksum: config['transfer.checksum'] });

interface Found {
  readonly file: SendableFile;
  /** Its place among the files that are being read, when it was chosen for being new. */
  readonly reserved: string | undefined;
}

/**
 * The file named exactly PI 12, else the oldest that this partner has not read yet as it is now; that one counts as being
 * read from here on.
 * @throws PesitError 2-205 when there is none
 */
const find = async (context: PartnerContext, virtualFile: VirtualFileRow, fileName: string): Promise<Found> => {
  const directory = directoryOf(context, virtualFile);
  const pattern = virtualFile.filename_pattern ?? '*';
  const { partner_id: partnerId } = context.partner;
  let sent: ReadonlyMap<string, string> | undefined;
  let reserved: string | undefined;
  const accept = async (file: SendableFile): Promise<boolean> => {
    sent ??= await asking('2-201', async () => sentIn(context, dirname(file.path), pattern));
    const place = `${partnerId}\0${file.path}`;
    if (sent.get(file.path) === `${file.size}/${file.mtimeNs}` || context.outgoing.has(place)) return false;
    context.outgoing.add(place);
    reserved = place;
    return true;
  };
  const file = await findFileToSend(directory, { exactName: fileName, pattern, accept });
  if (file === undefined) {
    throw refusal(
      '2-205',
      `no file for ${partnerId} in ${directory}: none is named ${JSON.stringify(readable(fileName, 76))}, and none that matches ${pattern} is new to it`,
      'there is no file to read',
    );
  }
  return { file, reserved };
};

/** Asked for the files that are there: those that are gone, however many, do not matter. */
const sentIn = async (
  { journal, partner }: PartnerContext,
  directory: string,
  pattern: string,
): Promise<ReadonlyMap<string, string>> => {
  const names = (await readdir(directory)).filter((name) => matchesGlob(pattern, name));
  return journal.sentAmong(
    partner.partner_id,
    names.map((name) => join(directory, name)),
  );
};

const directoryOf = ({ directories, listener }: PartnerContext, file: VirtualFileRow): string => {
  const configured = file.send_directory ?? listener.send_directory;
  return configured === null ? directories.send : directories.resolve(configured);
};
