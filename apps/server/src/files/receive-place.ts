import { readable } from '@pesit-node/protocol';
import type { Parameters, PesitError } from '@pesit-node/protocol';
import {
  DEFAULT_RECEIVE_PATTERN,
  ensureReceiveDirectory,
  expandPattern,
  nodeFiles,
  receivedFormat,
  StagedFile,
} from '@pesit-node/storage';
import type { Durability, RecordFormat } from '@pesit-node/storage';

import type { Directories } from './directories.js';
import { recordSettings } from '../virtual-files/record-settings.js';
import type { VirtualFileRow } from '../virtual-files/fields.js';
import { finalPath } from './final-name.js';
import { matchesName } from './names.js';
import type { Files } from '../exchange/parts.js';
import type { ProvenPartner } from '../exchange/proven-partner.js';
import { refusal } from '../exchange/refusal.js';

/** The limit, and the virtual file that sets it, for texts. */
interface MaxSize {
  readonly bytes: number;
  readonly file: string;
}

/** Where a received file goes, and how. */
export interface ReceivePlace {
  /** Absolute. */
  readonly directory: string;
  /** Relative to the directory. */
  readonly path: string;
  /** Names the staged file. */
  readonly key: string;
  readonly overwrite: boolean;
  readonly format: RecordFormat;
  readonly durability: Durability;
  /** Bytes that the file may have, as it lies on the disk; undefined: any. */
  readonly maxSize: MaxSize | undefined;
}

/** The place of a new file. @throws PesitError when the virtual file does not take what CREATE announces */
export const newPlace = (
  { partner, listener }: Pick<ProvenPartner, 'partner' | 'listener'>,
  { directories, config }: Pick<Files, 'directories' | 'config'>,
  file: VirtualFileRow,
  parameters: Parameters,
  uuid: string,
): ReceivePlace => {
  const path = expandPattern(
    file.receive_filename_pattern ?? DEFAULT_RECEIVE_PATTERN,
    {
      partner: partner.partner_id,
      virtualFile: file.file_id,
      transferId: parameters.transferId ?? 0,
      uuid,
    },
    new Date(),
  );
  const configured = file.receive_directory ?? listener.receive_directory;
  const directory = configured === null ? directories.received : directories.resolve(configured);
  const place = { ...howToReceive(config, file, parameters), directory, path, key: uuid };
  checkName(file, parameters, path);
  return place;
};

/** The place of a restarted file: where its first attempt has begun. */
export const samePlace = (
  { config }: Pick<Files, 'config'>,
  file: VirtualFileRow,
  parameters: Parameters,
  began: Pick<ReceivePlace, 'directory' | 'path' | 'key'>,
): ReceivePlace => ({ ...howToReceive(config, file, parameters), ...began });

const howToReceive = (config: Files['config'], file: VirtualFileRow, parameters: Parameters) => {
  const { recordFormat, recordLength = 0 } = parameters.logicalAttributes ?? {};
  const format = receivedFormat({ recordFormat, recordLength }, recordSettings(file, parameters.dataCode));
  const { file_id, max_file_size: bytes } = file;
  return {
    overwrite: file.overwrite,
    format,
    durability: file.durability ?? config['transfer.durability'],
    maxSize: bytes === null ? undefined : { bytes, file: file_id },
  };
};

/** The label (PI 37) is the name that the sender knows; without one the rule is about the name that the file will have. */
const checkName = (file: VirtualFileRow, { logicalAttributes }: Parameters, path: string): void => {
  const pattern = file.filename_pattern;
  if (pattern === null) return;
  const name = logicalAttributes?.fileLabel ?? path;
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

/**
 * The least that a file can have on the disk that is announced so: kilobytes are rounded up, and of records only fixed ones
 * have a length that is known before.
 */
export const leastBytes = (
  { physicalAttributes }: Parameters,
  { format: { name, recordLength } }: Pick<ReceivePlace, 'format'>,
): number => {
  const { reservationUnit = 0, maxReservation = 0 } = physicalAttributes ?? {};
  if (reservationUnit === 1) return name === 'BF' ? maxReservation * recordLength : 0;
  return Math.max(0, maxReservation - 1) * 1024;
};

/** The data have come, and are more than the virtual file takes: for good, unlike what only announces so much. */
export const largerThan = ({ bytes, file }: MaxSize): PesitError =>
  refusal(
    '2-224',
    `the file is larger than the ${bytes} bytes that the virtual file ${file} takes (maxFileSize): raise it, or have the partner send less`,
    `the file is larger than the ${bytes} bytes that this virtual file takes`,
  );

const checkSize = (place: ReceivePlace, parameters: Parameters): void => {
  const { maxSize } = place;
  if (maxSize === undefined) return;
  const least = leastBytes(parameters, place);
  if (least <= maxSize.bytes) return;
  throw refusal(
    '2-206',
    `the partner announces ${least} bytes or more (PI 42), the virtual file ${maxSize.file} takes ${maxSize.bytes} (maxFileSize): raise it, or have the partner send less`,
    `the announced size is beyond the ${maxSize.bytes} bytes that this virtual file takes`,
  );
};

/** @throws PesitError 2-211 when no partner may write there, with the name that the file will have: at CREATE and once more at its delivery */
export const requireReachable = async (directories: Directories, directory: string, final: string): Promise<void> => {
  const fault = await directories.faultOf(directory, final);
  if (fault !== undefined) throw refusal('2-211', fault, 'the receive directory cannot be used');
};

/** Whether the file can be received there now. @throws PesitError 2-211, 2-204, 2-206, 2-201 while there is too little space */
export const checkPlace = async (
  { directories, reserve }: Pick<Files, 'directories' | 'reserve'>,
  place: ReceivePlace,
  parameters: Parameters,
): Promise<void> => {
  const { directory, key, overwrite } = place;
  checkSize(place, parameters);
  await ensureReceiveDirectory(directory);
  const final = await finalPath(place);
  await requireReachable(directories, directory, final);
  if (!overwrite && (await exists(final))) {
    throw refusal(
      '2-204',
      `${final} exists already: remove it, let the receiveFilenamePattern give other names, or set overwrite`,
      'a file of this name exists already',
    );
  }
  const announced = announcedBytes(parameters);
  const { usable, free } = await reserve.admit(directory);
  if (announced > usable && announced > usable + ((await StagedFile.peek(directory, key))?.size ?? 0)) {
    throw refusal(
      '2-206',
      `the partner announces ${announced} bytes (PI 42), ${free} are free in ${directory}, and ${free - usable} of them must stay (storage.reserve): free space, or enlarge the volume`,
      'the announced size is beyond the free space',
    );
  }
};

const exists = (path: string): Promise<boolean> =>
  nodeFiles.lstat(path).then(
    () => true,
    () => false,
  );
