import type { TransferTotals } from '@pesit-node/net';
import { PesitError } from '@pesit-node/protocol';
import type { CreateRequest, SyncPoint } from '@pesit-node/protocol';
import { FileSource, formatOf } from '@pesit-node/storage';
import type { FileVersion, RecordFormat } from '@pesit-node/storage';
import {
  asPesitDate,
  dataCodeOf,
  outcomeOf,
  pesitDate,
  refusesRestart,
  RestartableSource,
  SentPoints,
  TRANSFER_POINT,
} from '@pesit-node/transfers';
import type { ObservedTransfer } from '@pesit-node/transfers';

import type { Job, StoredVersion } from '../transfers/row.js';
import { ebcdicOf, extrasOf } from './file-extras.js';
import type { RestartKeeper } from './restart-keeper.js';
import type { TransferDeps, Work } from './work.js';
import { paceOf } from './pace.js';

const formatFor = ({ settings, server }: Job): RecordFormat =>
  formatOf({
    recordFormat: settings.recordFormat ?? server.record_format ?? undefined,
    recordLength: settings.recordLength ?? server.record_length ?? undefined,
    text: settings.text ?? server.text ?? undefined,
    ...ebcdicOf(settings, server),
  });

const createRequest = (
  job: Job,
  source: FileSource,
  format: RecordFormat,
  terms: { readonly transferId: number; readonly restarted: boolean; readonly maxEntitySize: number },
): CreateRequest => {
  const { settings, virtual_file: virtualFile, remote_filename: remoteFilename } = job;
  return {
    fileIdentifier: { fileType: 0, fileName: virtualFile ?? remoteFilename ?? '' },
    transferId: terms.transferId,
    restarted: terms.restarted,
    maxEntitySize: settings.maxEntitySize ?? job.server.max_entity_size ?? terms.maxEntitySize,
    dataCode: dataCodeOf(format),
    recordFormat: format.recordFormat,
    recordLength: format.recordLength,
    fileLabel: settings.label ?? remoteFilename ?? undefined,
    maxReservationKb: Math.ceil(source.size / 1024),
    creationDate: settings.creationDate === undefined ? pesitDate(source.modified) : asPesitDate(settings.creationDate),
    ...extrasOf(job),
  };
};

const versionOf = ({ size, mtimeNs }: StoredVersion): FileVersion => ({ size, mtimeNs: BigInt(mtimeNs) });

/** From the first restart on only the file that the first attempt sent; until then the file as it is now. */
const openSource = async (
  job: Job,
  format: RecordFormat,
  { settings, sendTree }: Pick<TransferDeps, 'settings' | 'sendTree'>,
  keeper: RestartKeeper,
): Promise<FileSource> => {
  const stored = job.source_version === null ? undefined : versionOf(job.source_version);
  const expected = job.restartable ? stored : undefined;
  const { checksum, readBufferSize: readSize } = settings;
  const options = { store: sendTree.store, checksum, readSize, ...(expected === undefined ? {} : { expected }) };
  const source = await FileSource.open(job.source_path ?? '', format, options);
  const { size, mtimeNs } = source.version;
  if (stored?.size !== size || stored.mtimeNs !== mtimeNs) {
    try {
      await keeper.keepSourceVersion(source.version);
    } catch (error) {
      await source.close();
      throw error;
    }
  }
  return source;
};

/**
 * A file of the send tree on its way out.
 * @throws StorageError when the file cannot be opened, does not fit its record format, or changed since the first attempt
 */
export const sending = async (
  job: Job,
  { settings, sendTree, rates, events }: Pick<TransferDeps, 'settings' | 'sendTree' | 'rates' | 'events'>,
  transfer: ObservedTransfer,
  keeper: RestartKeeper,
): Promise<Work> => {
  const format = formatFor(job);
  const file = await openSource(job, format, { settings, sendTree }, keeper);
  const sent = new SentPoints(sendTree.sentPointsPath(job.id, job.fence), () =>
    sendTree.earlierSentPoints(job.id, job.fence),
  );
  const source = new RestartableSource(file, job.pacings ?? [], keeper, sent);
  let transferId = job.pesit_transfer_id ?? 0;
  let restarted = job.restartable;
  let sentDate: string | undefined;
  let startPoint: SyncPoint | undefined;
  let totals = (): TransferTotals => ({ dataBytes: 0, articles: 0 });
  return {
    run: async (session, signal) => {
      totals = () => session.totals;
      startPoint = undefined;
      await source.begin(session);
      const { maxEntitySize } = settings;
      const request = createRequest(job, file, format, { transferId, restarted, maxEntitySize });
      sentDate = request.creationDate;
      const done = { status: 'COMPLETED', size: file.size, localPath: file.path, creationDate: sentDate } as const;
      try {
        const acknowledged = (point: SyncPoint): void => events.publish(TRANSFER_POINT, { transfer, point });
        const pointOf = async (number: number) => (startPoint = await source.goTo(number, signal));
        const pace = paceOf(job, rates);
        const asked = { request, source, pointOf, acknowledged, pace, signal };
        const { dataBytes, articles } = await session.sendFile(asked);
        // The partner has acknowledged the file: nobody waits for us.
        await file.hashed(60_000);
        const figures = { bytesTransferred: dataBytes, articles, checksum: file.checksum };
        return { ...done, ...figures, syncPoint: source.lastPoint || undefined };
      } catch (error) {
        const last = session.totals;
        // The session may serve another transfer from now on.
        totals = () => last;
        if (restarted && error instanceof PesitError && error.fault === 'refused') {
          if (outcomeOf(error.diagnostic).delivered) return done;
        }
        throw error;
      }
    },
    startOver: async (error) => {
      if (!restarted || source.started || !refusesRestart(error, 'SEND')) return false;
      transferId = await keeper.startOver();
      restarted = false;
      await source.forget();
      return true;
    },
    get accepted() {
      return source.started;
    },
    get restartable() {
      return restarted || source.started;
    },
    repeatable: true,
    get totals() {
      return totals();
    },
    get syncPoint() {
      return source.lastPoint;
    },
    get startPoint() {
      return startPoint;
    },
    get facts() {
      return { creationDate: sentDate, syncPoint: source.lastPoint || undefined };
    },
    close: () => file.close(),
    cleanUp: (restartable) => (restartable ? Promise.resolve() : sent.remove()),
  };
};
