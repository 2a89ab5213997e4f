import { readable } from '@pesit-node/protocol';
import { realpath } from 'node:fs/promises';
import { dirname } from 'node:path';

import { byAge } from '@pesit-node/storage';
import type { FileStore, SendableFile } from '@pesit-node/storage';

import type { ContextRow } from '../transfers/contexts.js';
import type { VirtualFileRow } from '../virtual-files/fields.js';
import type { AskedFile } from './names.js';
import type { FileParts, Files, Records } from '../exchange/parts.js';
import type { ProvenPartner } from '../exchange/proven-partner.js';
import { asking, refusal } from '../exchange/refusal.js';

export interface Found {
  readonly file: Pick<SendableFile, 'path'>;
  /** Where it lies. */
  readonly store: FileStore;
  /** Its place among the files that are being read, when it was chosen for being new. */
  readonly reserved: string | undefined;
}

/** Who asks, and where. */
interface Selecting {
  readonly partner: Pick<ProvenPartner['partner'], 'partner_id'>;
  readonly listener: Pick<ProvenPartner['listener'], 'send_directory'>;
}

type SentFiles = Pick<Records['journal'], 'sentAmong'>;

/** A file that a partner reads, among `Files.outgoing`. */
const placeOf = (partnerId: string, path: string): string => `${partnerId}\0${path}`;

interface Wanted {
  readonly store: FileStore;
  readonly directory: string;
  readonly pattern: string;
  /** PI 12. */
  readonly fileName: string;
}

/**
 * The file that is asked for by its name; else the one named exactly PI 12, else the oldest that this partner has not read
 * yet as it is now: that one counts as being read from here on.
 * @throws PesitError 2-205 when there is none, 2-211 when a link leads to where none may be sent from
 */
export const findToSend = async (
  proven: ProvenPartner,
  { files, records }: FileParts,
  virtualFile: VirtualFileRow,
  { virtualFile: fileName, name }: AskedFile,
): Promise<Found> => {
  const directory = directoryOf(proven, files, virtualFile);
  const pattern = virtualFile.filename_pattern ?? '*';
  const store = files.stores.at(directory);
  const found =
    name === undefined
      ? await findNew(proven, { files, records }, { store, directory, pattern, fileName })
      : { file: await findNamed(proven, store, directory, pattern, name), store, reserved: undefined };
  await requireReachable(files, directory, found);
  return found;
};

/** @throws PesitError 2-211 when no partner may read there; the file counts as being read no longer */
const requireReachable = async (
  { directories, outgoing }: Files,
  directory: string,
  { file, reserved }: Found,
): Promise<void> => {
  const fault = await directories.faultOf(directory, file.path);
  if (fault === undefined) return;
  if (reserved !== undefined) outgoing.delete(reserved);
  throw refusal('2-211', fault, 'the send directory cannot be used');
};

/** Never another one: who asks by name stores what comes under that name. */
const findNamed = async (
  { partner }: ProvenPartner,
  store: FileStore,
  directory: string,
  pattern: string,
  name: string,
): Promise<SendableFile> => {
  const file = await store.findNamed(name, pattern);
  if (file !== undefined) return file;
  const shown = JSON.stringify(readable(name, 76));
  throw refusal(
    '2-205',
    `no file for ${partner.partner_id} in ${directory}: none is named ${shown} and matches ${pattern}`,
    `there is no file ${shown} to read`,
  );
};

/**
 * The files that SELECTs of a partner would be answered with, one after the other: the one named exactly as the virtual file, each time
 * again; else those that are new to the partner and that none of its sessions reads, the oldest first.
 * @param most no more of them are looked for
 * @throws as `store.find`
 */
export const listToSend = async (
  { partner: { partner_id: partnerId }, listener }: Selecting,
  {
    files,
    journal,
  }: { readonly files: Pick<Files, 'directories' | 'stores' | 'outgoing'>; readonly journal: SentFiles },
  virtualFile: VirtualFileRow,
  most: number,
): Promise<{ readonly directory: string; readonly found: readonly SendableFile[] }> => {
  const directory = directoryOf({ listener }, files, virtualFile);
  // By path: the store may look a second time, when its first look was not fresh.
  const found = new Map<string, SendableFile>();
  const only = await files.stores.at(directory).find({
    exactName: virtualFile.file_id,
    pattern: virtualFile.filename_pattern ?? '*',
    wanted: (batch) => asking('2-201', () => newAmong(partnerId, journal, batch)),
    take: (file) => {
      if (!files.outgoing.has(placeOf(partnerId, file.path))) found.set(file.path, file);
      return found.size >= most;
    },
  });
  if (only !== undefined) found.set(only.path, only);
  const inOrder = [...found.values()].sort(byAge);
  return { directory, found: inOrder };
};

/** One look at a time for a partner, however many sessions it has: the others of the node do not wait behind it. */
const findNew = (
  { partner: { partner_id: partnerId } }: ProvenPartner,
  { files: { looks, outgoing }, records: { journal } }: FileParts,
  { store, directory, pattern, fileName }: Wanted,
): Promise<Found> =>
  looks.run(partnerId, async () => {
    let reserved: string | undefined;
    const take = (file: SendableFile): boolean => {
      const place = placeOf(partnerId, file.path);
      if (outgoing.has(place)) return false;
      outgoing.add(place);
      reserved = place;
      return true;
    };
    const wanted = (files: readonly SendableFile[]) => asking('2-201', () => newAmong(partnerId, journal, files));
    const file = await store.find({ exactName: fileName, pattern, wanted, take });
    if (file === undefined) {
      throw refusal(
        '2-205',
        `no file for ${partnerId} in ${directory}: none is named ${JSON.stringify(readable(fileName, 76))}, and none that matches ${pattern} is new to it`,
        'there is no file to read',
      );
    }
    return { file, store, reserved };
  });

/** Whether the transfer of an earlier attempt is of the file that is asked for now: PI 12 with a name tells them apart. */
export const isOfName = ({ filename }: ContextRow, { name }: AskedFile): boolean =>
  name === undefined || filename === name;

/**
 * The file of the first attempt.
 * @throws PesitError 2-207 while another session of the partner reads it, 2-211 when none may be sent from there now
 */
export const findAgain = async ({ partner }: ProvenPartner, files: Files, before: ContextRow): Promise<Found> => {
  const { outgoing, stores } = files;
  const path = before.path ?? '';
  const reserved = placeOf(partner.partner_id, path);
  if (outgoing.has(reserved)) {
    throw refusal(
      '2-207',
      `${partner.partner_id} reads ${path} in another session: let that one end`,
      'this file is being read in another session',
    );
  }
  outgoing.add(reserved);
  const file = { path: await realpath(path).catch(() => path) };
  const found = { file, store: stores.at(dirname(file.path)), reserved };
  await requireReachable(files, dirname(path), found);
  return found;
};

/** Those that this partner has not read as they are now. Asked for files that are there: those that are gone do not matter. */
const newAmong = async (
  partnerId: string,
  journal: SentFiles,
  files: readonly SendableFile[],
): Promise<ReadonlySet<SendableFile>> => {
  const sent = await journal.sentAmong(
    partnerId,
    files.map(({ path }) => path),
  );
  return new Set(files.filter(({ path, size, mtimeNs }) => sent.get(path) !== `${size}/${mtimeNs}`));
};

const directoryOf = (
  { listener }: Pick<Selecting, 'listener'>,
  { directories }: Pick<Files, 'directories'>,
  file: VirtualFileRow,
): string => {
  const configured = file.send_directory ?? listener.send_directory;
  return configured === null ? directories.send : directories.resolve(configured);
};
