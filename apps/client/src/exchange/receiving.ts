import { freeSpace, receivedFormat, StagedFile, StorageError } from '@pesit-node/storage';
import type { Parameters, SyncPoint } from '@pesit-node/protocol';

import type { Job } from '../transfers/store.js';
import { receivedName } from './received-tree.js';
import type { TransferDeps, Work } from './run-transfer.js';

const START: SyncPoint = { number: 0, dataBytes: 0, articles: 0 };
/** PI 32 when the partner leaves it out: no limit but that of the wire. */
const ANY_LENGTH = 65_535;
const KILOBYTES = 0;

/** The size that the partner announces, in bytes; PI 42 counts kilobytes when PI 41 says so, and is no help otherwise. */
const announcedSize = ({ physicalAttributes }: Parameters): number =>
  physicalAttributes?.reservationUnit === KILOBYTES ? (physicalAttributes.maxReservation ?? 0) * 1024 : 0;

const requireSpace = async (directory: string, attributes: Parameters): Promise<void> => {
  const announced = announcedSize(attributes);
  // An announcement is rounded up to the next kilobyte.
  if (announced <= 1024 || announced - 1024 <= (await freeSpace(directory))) return;
  throw new StorageError(`the partner announces ${announced} bytes, more than the volume of ${directory} has free`, {
    fault: 'local',
    diagnostic: '2-219',
    peerText: 'not enough space for the announced size',
  });
};

/** A file on its way in: staged under the transfer's id, delivered when both sides have ended well. */
export const receiving = (
  job: Job,
  { settings, receivedTree }: Pick<TransferDeps, 'settings' | 'receivedTree'>,
): Work => {
  const { remote_filename: remoteFilename, virtual_file: virtualFile } = job;
  const { root } = receivedTree;
  let attributes: Parameters | undefined;
  let staged: StagedFile | undefined;

  const open = async (answer: Parameters): Promise<{ from: SyncPoint; sink: StagedFile }> => {
    attributes = answer;
    const { recordFormat, recordLength = ANY_LENGTH } = answer.logicalAttributes ?? {};
    const text = job.settings.text ?? job.server.text ?? undefined;
    const format = receivedFormat({ recordFormat, recordLength }, { text });
    await requireSpace(root, answer);
    staged = await StagedFile.create({ receiveDirectory: root, key: job.id, format, checksum: settings.checksum });
    return { from: START, sink: staged };
  };

  const nameOf = (answer: Parameters): string =>
    job.settings.localName ??
    receivedName([
      remoteFilename ?? undefined,
      answer.logicalAttributes?.fileLabel,
      answer.fileIdentifier?.fileName,
      virtualFile ?? undefined,
    ]);

  return {
    run: async (session, signal) => {
      const { dataBytes, articles } = await session.receiveFile({
        request: {
          fileIdentifier: { fileType: 0, fileName: virtualFile ?? remoteFilename ?? '' },
          // 0: the server allocates it (pesit-e.md §5).
          transferId: 0,
          maxEntitySize: job.settings.maxEntitySize ?? job.server.max_entity_size ?? settings.maxEntitySize,
        },
        open,
        stored: async () => {
          await staged?.prepareDelivery();
        },
        signal,
      });
      const { overwrite = false } = job.settings;
      const delivery = await receivedTree.deliver(staged as StagedFile, nameOf(attributes ?? {}), job.id, overwrite);
      return {
        status: 'COMPLETED',
        size: delivery.size,
        bytesTransferred: dataBytes,
        articles,
        checksum: delivery.checksum,
        localPath: delivery.path,
        pesitTransferId: attributes?.transferId,
      };
    },
    get accepted() {
      return attributes !== undefined;
    },
    get totals() {
      return { dataBytes: staged?.dataBytes ?? 0, articles: staged?.articles ?? 0 };
    },
    close: async () => staged?.discard(),
  };
};
