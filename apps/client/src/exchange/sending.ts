import type { TransferTotals } from '@pesit-node/net';
import type { ArticleSource, Burst, CreateRequest } from '@pesit-node/protocol';
import { FileSource, formatOf } from '@pesit-node/storage';
import type { RecordFormat } from '@pesit-node/storage';

import type { Job } from '../transfers/store.js';
import type { TransferDeps, Work } from './run-transfer.js';

/** PI 16: text is ASCII, anything else binary. */
const DATA_CODE = { text: 0, binary: 2 } as const;

const two = (value: number): string => String(value).padStart(2, '0');

/** PI 51, `YYMMDDhhmmss`, by the clock of this machine, as operators on both sides read it. */
export const pesitDate = (date: Date): string =>
  [date.getFullYear() % 100, date.getMonth() + 1, date.getDate(), date.getHours(), date.getMinutes(), date.getSeconds()]
    .map(two)
    .join('');

/** Knows when the first data were asked for: before, the partner holds nothing that a second CREATE would double. */
class WatchedSource implements ArticleSource {
  started = false;
  readonly #source: FileSource;

  constructor(source: FileSource) {
    this.#source = source;
  }

  fill(burst: Burst): Promise<boolean> {
    this.started = true;
    return this.#source.fill(burst);
  }
}

const formatFor = ({ settings, server }: Job): RecordFormat =>
  formatOf({
    recordFormat: settings.recordFormat ?? server.record_format ?? undefined,
    recordLength: settings.recordLength ?? server.record_length ?? undefined,
    text: settings.text ?? server.text ?? undefined,
  });

const createRequest = (job: Job, source: FileSource, format: RecordFormat, maxEntitySize: number): CreateRequest => {
  const { settings, virtual_file: virtualFile, remote_filename: remoteFilename } = job;
  const { freeMessage } = settings;
  return {
    fileIdentifier: { fileType: 0, fileName: virtualFile ?? remoteFilename ?? '' },
    transferId: job.pesit_transfer_id ?? 0,
    maxEntitySize: settings.maxEntitySize ?? job.server.max_entity_size ?? maxEntitySize,
    dataCode: format.text ? DATA_CODE.text : DATA_CODE.binary,
    recordFormat: format.recordFormat,
    recordLength: format.recordLength,
    fileLabel: settings.label ?? remoteFilename ?? undefined,
    maxReservationKb: Math.ceil(source.size / 1024),
    creationDate: pesitDate(source.modified),
    originalSender: settings.originalSender,
    finalReceiver: settings.finalReceiver,
    freeMessage: freeMessage === undefined ? undefined : Buffer.from(freeMessage),
  };
};

/**
 * A file of the send tree on its way out.
 * @throws StorageError when the file cannot be opened or does not fit its record format
 */
export const sending = async (job: Job, { settings }: Pick<TransferDeps, 'settings'>): Promise<Work> => {
  const format = formatFor(job);
  const source = await FileSource.open(job.source_path ?? '', format, { checksum: settings.checksum });
  const watched = new WatchedSource(source);
  let totals = (): TransferTotals => ({ dataBytes: 0, articles: 0 });
  return {
    run: async (session, signal) => {
      totals = () => session.totals;
      const request = createRequest(job, source, format, settings.maxEntitySize);
      const { dataBytes, articles } = await session.sendFile({ request, source: watched, signal });
      return {
        status: 'COMPLETED',
        size: source.size,
        bytesTransferred: dataBytes,
        articles,
        checksum: source.checksum,
        localPath: source.path,
      };
    },
    get accepted() {
      return watched.started;
    },
    get totals() {
      return totals();
    },
    close: () => source.close(),
  };
};
