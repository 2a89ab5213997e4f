import { randomUUID } from 'node:crypto';
import { lstat, open, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import type { ArticleSink, CreateAnswer, Parameters, SyncPoint } from '@pesit-node/protocol';
import {
  DEFAULT_RECEIVE_PATTERN,
  ensureReceiveDirectory,
  expandPattern,
  freeSpace,
  receivedFormat,
  resolveInside,
  StagedFile,
} from '@pesit-node/storage';
import type { Delivery, RecordFormat } from '@pesit-node/storage';

import type { TransferProgress } from '../transfers/record.js';
import type { VirtualFileRow } from '../virtual-files/store.js';
import { virtualFileFor } from './access.js';
import { startOf } from './context.js';
import type { FileTransfer, PartnerContext } from './context.js';
import { matchesName, readable } from './names.js';
import { refusal } from './refusal.js';

const START: SyncPoint = { number: 0, dataBytes: 0, articles: 0 };

/** PI 16. */
const EBCDIC = 1;

interface Place {
  readonly directory: string;
  /** Relative to the directory. */
  readonly path: string;
  readonly overwrite: boolean;
  readonly format: RecordFormat;
}

/**
 * A file that a partner writes.
 *
 * The order at its end, whatever is lost and whenever: data on stable storage → final name on stable storage → record
 * COMPLETED committed → ACK(TRANS.END). If this process dies before the commit, the partner has no acknowledgement and
 * sends again; if the database is away, the commit is tried again while the partner waits, and when it finally fails the
 * delivered file is taken back before the partner is told no: what it then sends again is not there twice.
 */
export class IncomingFile implements FileTransfer {
  readonly id: number;
  readonly name: string;
  readonly #context: PartnerContext;
  readonly #place: Place;
  #staged: StagedFile | undefined;

  /** Answers a CREATE. @throws PesitError with the diagnostic of the refusal; nothing is left then. */
  static async accept(context: PartnerContext, parameters: Parameters): Promise<IncomingFile> {
    const { fileName = '', fileType = 0 } = parameters.fileIdentifier ?? {};
    const file = await virtualFileFor(context, 'WRITE', fileName, fileType);
    if (file.text && parameters.dataCode === EBCDIC) {
      throw refusal(
        '2-226',
        `the partner sends EBCDIC (PI 16), and the virtual file ${file.file_id} is text: EBCDIC is not translated in this version; let the partner send ASCII, or set text to false`,
        'EBCDIC text is not accepted for this virtual file',
      );
    }
    const { recordFormat, recordLength = 0 } = parameters.logicalAttributes ?? {};
    const format = receivedFormat(
      { recordFormat, recordLength },
      { recordFormat: file.record_format ?? undefined, recordLength: file.record_length ?? undefined, text: file.text },
    );
    const place: Place = {
      directory: directoryOf(context, file),
      path: expandPattern(
        file.receive_filename_pattern ?? DEFAULT_RECEIVE_PATTERN,
        {
          partner: context.partner.partner_id,
          virtualFile: fileName,
          transferId: parameters.transferId ?? 0,
          uuid: randomUUID(),
        },
        new Date(),
      ),
      overwrite: file.overwrite,
      format,
    };
    checkName(file, parameters, place);
    await checkPlace(place, announcedBytes(parameters));
    const record = await context.journal.begin({ ...startOf(context, 'RECEIVE', parameters), filename: place.path });
    return new IncomingFile(context, record.id, place);
  }

  private constructor(context: PartnerContext, id: number, place: Place) {
    this.#context = context;
    this.id = id;
    this.name = place.path;
    this.#place = place;
  }

  get answer(): CreateAnswer {
    const { listener, config } = this.#context;
    return { maxEntitySize: listener.max_entity_size ?? config['transfer.max-entity-size'] };
  }

  readonly progress = (): TransferProgress => ({
    dataBytes: this.#staged?.dataBytes ?? 0,
    articles: this.#staged?.articles ?? 0,
    syncPoint: this.#staged?.stablePoint?.number ?? 0,
  });

  /** WRITE: always from the start; a staged file of before is of no use. */
  async write(): Promise<{ readonly from: SyncPoint; readonly sink: ArticleSink }> {
    await this.#staged?.discard();
    this.#staged = await StagedFile.create({
      receiveDirectory: this.#place.directory,
      key: `${this.id}-${randomUUID()}`,
      format: this.#place.format,
      checksum: this.#context.config['transfer.checksum'],
    });
    return { from: START, sink: this.#staged };
  }

  async end(): Promise<void> {
    if (this.#staged === undefined) throw refusal('3-311', 'TRANS.END without WRITE');
    const { overwrite, path } = this.#place;
    const delivery = await this.#staged.deliver({ path, overwrite });
    try {
      await this.#context.journal.complete(this.id, {
        ...this.progress(),
        size: delivery.size,
        checksum: delivery.checksum,
        path: delivery.path,
        filename: path,
      });
    } catch (error) {
      await this.#takeBack(delivery);
      throw error;
    }
  }

  async giveUp(): Promise<void> {
    try {
      await this.#staged?.discard();
    } catch (error) {
      this.#context.logger.error({ transfer: this.id, err: error }, 'staged file cannot be removed');
    }
  }

  /** A file that overwrites stays: the next attempt overwrites it again, and what it replaced is gone anyway. */
  async #takeBack({ path }: Delivery): Promise<void> {
    const { logger } = this.#context;
    if (this.#place.overwrite) {
      logger.error({ transfer: this.id, path }, 'delivered file is not recorded; the next attempt will overwrite it');
      return;
    }
    try {
      await unlink(path);
      const directory = await open(dirname(path));
      await directory.sync().finally(() => directory.close());
      logger.error({ transfer: this.id, path }, 'delivered file taken back: its transfer could not be recorded');
    } catch (error) {
      logger.error({ transfer: this.id, path, err: error }, 'delivered file cannot be taken back: it may come twice');
    }
  }
}

const directoryOf = ({ directories, listener }: PartnerContext, file: VirtualFileRow): string => {
  const configured = file.receive_directory ?? listener.receive_directory;
  return configured === null ? directories.received : directories.resolve(configured);
};

/** The label (PI 37) is the name that the sender knows; without one the rule is about the name that the file will have. */
const checkName = (file: VirtualFileRow, { logicalAttributes }: Parameters, place: Place): void => {
  const pattern = file.filename_pattern;
  if (pattern === null) return;
  const name = logicalAttributes?.fileLabel ?? place.path;
  if (matchesName(pattern, name)) return;
  const shown = JSON.stringify(readable(name, 255));
  throw refusal(
    '2-226',
    `${shown} does not match the filenamePattern ${JSON.stringify(pattern)} of the virtual file ${file.file_id}`,
    `the name ${shown} is not accepted for this virtual file`,
  );
};

/** PI 42 in the unit of PI 41: 0 kilobytes, 1 records. */
const announcedBytes = ({ physicalAttributes, logicalAttributes }: Parameters): number => {
  const { reservationUnit = 0, maxReservation = 0 } = physicalAttributes ?? {};
  return maxReservation * (reservationUnit === 1 ? (logicalAttributes?.recordLength ?? 1) : 1024);
};

const checkPlace = async ({ directory, path, overwrite }: Place, announced: number): Promise<void> => {
  await ensureReceiveDirectory(directory);
  const final = join(await resolveInside(directory, dirname(path)), path.slice(path.lastIndexOf('/') + 1));
  if (!overwrite && (await exists(final))) {
    throw refusal(
      '2-204',
      `${final} exists already: remove it, let the receiveFilenamePattern give other names, or set overwrite`,
      'a file of this name exists already',
    );
  }
  const free = await freeSpace(directory);
  if (announced > free) {
    throw refusal(
      '2-206',
      `the partner announces ${announced} bytes (PI 42), ${free} are free in ${directory}: free space, or enlarge the volume`,
      'the announced size is beyond the free space',
    );
  }
};

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );
