import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

import { STAGING_DIRECTORY, StagedFile, storageError } from '@pesit-node/storage';
import { z } from 'zod';

import { receivedContext } from './received-context.js';

/**
 * What is about to be delivered: written before the partner hears that the file is here, removed when the record is
 * COMPLETED. Whoever takes the transfer over finds out by it what a dead process had done.
 */
const note = z.strictObject({
  context: receivedContext,
  /** Where the file may have gone, in the order of trial; absolute. */
  paths: z.array(z.string()),
  size: z.int(),
  /** `sha256:` and hex; undefined when none is computed. */
  checksum: z.string().optional(),
  bytesTransferred: z.int(),
  articles: z.int(),
});

export type DeliveryNote = z.output<typeof note>;

const SUFFIX = '.delivery';

const placeOf = (root: string, id: string) => {
  const staging = join(root, STAGING_DIRECTORY);
  return { staging, path: join(staging, `${id}${SUFFIX}`) };
};

/**
 * @param durable on stable storage when this resolves; otherwise it survives the process alone
 * @throws StorageError
 */
export const writeNote = async (root: string, id: string, content: DeliveryNote, durable: boolean): Promise<void> => {
  const place = placeOf(root, id);
  await write(place, content, durable).catch((error: unknown) => {
    throw storageError(error, 'write', place.path, 'the note of the delivery');
  });
};

const write = async (
  { path, staging }: ReturnType<typeof placeOf>,
  content: DeliveryNote,
  durable: boolean,
): Promise<void> => {
  const file = await open(path, 'w', 0o600);
  try {
    await file.writeFile(JSON.stringify(content));
    if (durable) await file.datasync();
  } finally {
    await file.close();
  }
  if (!durable) return;
  const directory = await open(staging, 'r');
  await directory.sync().finally(() => directory.close());
};

/** Undefined as well when a power cut left half of it: then it was never acted upon. */
export const readNote = async (root: string, id: string): Promise<DeliveryNote | undefined> => {
  try {
    const { path } = placeOf(root, id);
    return note.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    return undefined;
  }
};

export const removeNote = async (root: string, id: string): Promise<void> => {
  await rm(placeOf(root, id).path, { force: true });
};

/** The notes that are there, whatever they say. */
export const listNotes = async (root: string): Promise<readonly { readonly id: string; readonly modified: Date }[]> => {
  const { staging } = placeOf(root, '');
  const found = [];
  for (const name of await readdir(staging).catch(() => [])) {
    const facts = name.endsWith(SUFFIX) ? await lstat(join(staging, name)).catch(() => undefined) : undefined;
    if (facts !== undefined) found.push({ id: name.slice(0, -SUFFIX.length), modified: facts.mtime });
  }
  return found;
};

/** @throws the reason of `signal` */
const hashOf = async (path: string, signal: AbortSignal): Promise<string> => {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash, { signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw error;
  });
  return `sha256:${hash.digest('hex')}`;
};

/**
 * Where the file of a note was delivered; the first of its paths when it was fetched from wherever it was.
 * @returns undefined when it was not: it is staged still, or gone
 */
export const deliveredPath = async (
  root: string,
  id: string,
  noted: DeliveryNote,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const staged = await StagedFile.peek(root, id);
  if (staged?.path !== undefined && !staged.delivered) return undefined;
  const ours = staged?.path === undefined ? undefined : await lstat(staged.path).catch(() => undefined);
  for (const path of noted.paths) {
    const found = await lstat(path).catch(() => undefined);
    if (!found?.isFile() || found.size !== noted.size) continue;
    if (ours !== undefined && (ours.ino !== found.ino || ours.dev !== found.dev)) continue;
    if (ours === undefined && noted.checksum !== undefined && (await hashOf(path, signal)) !== noted.checksum) continue;
    return path;
  }
  return staged?.delivered === true ? noted.paths[0] : undefined;
};
