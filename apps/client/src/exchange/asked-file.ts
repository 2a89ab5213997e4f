import { PesitError } from '@pesit-node/protocol';
import { outcomeOf } from '@pesit-node/transfers';

import { nameInVirtualFile } from '../transfers/file-name.js';
import type { Job } from '../transfers/row.js';

type Asked = Pick<Job, 'virtual_file' | 'remote_filename'>;

/** PI 12 of the SELECT. */
export const fileToSelect = (job: Asked & Pick<Job, 'settings' | 'server'>): string => {
  const { virtual_file: virtualFile, remote_filename: name, settings, server } = job;
  if (virtualFile === null || name === null) return virtualFile ?? name ?? '';
  const isByName = settings.selectByName ?? server.select_by_name ?? false;
  return isByName ? nameInVirtualFile(virtualFile, name) : virtualFile;
};

/** Who knows no names in PI 12 takes it for a virtual file that does not exist: the operator reads what was asked for. */
export const withAskedFile = (error: unknown, job: Parameters<typeof fileToSelect>[0]): unknown => {
  const asked = fileToSelect(job);
  if (
    !(error instanceof PesitError) ||
    error.fault !== 'refused' ||
    outcomeOf(error.diagnostic).errorCode !== 'FILE_NOT_FOUND'
  )
    return error;
  if (asked === job.virtual_file || job.virtual_file === null) return error;
  const { message, fault, diagnostic, endCode } = error;
  const text = `${message}; PI 12 was ${JSON.stringify(asked)} (selectByName): only nodes of this product read a name in it`;
  return new PesitError(text, { fault, diagnostic, endCode, cause: error });
};

const lastSegment = (path: string): string | undefined => path.split(/[/\\]/).at(-1);

/**
 * SELECT names a virtual file, and no file of it (PI 37 is not among its parameters): whether the partner offers the one that
 * was asked for shows in its answer. Some partners put a whole path there.
 * @param label PI 37 of ACK(SELECT)
 * @returns undefined when no file was asked for by its name; false when the partner does not name the one that it offers
 * @throws PesitError 2-205 when it is another one
 */
export const confirmName = (
  { virtual_file: virtualFile, remote_filename: name }: Asked,
  label: string | undefined,
): boolean | undefined => {
  if (virtualFile === null || name === null) return undefined;
  const offered = label?.trim() ?? '';
  if (offered === '') return false;
  if (offered === name || lastSegment(offered) === name) return true;
  const shown = JSON.stringify(offered.slice(0, 80));
  throw new PesitError(
    `${JSON.stringify(name)} (remoteFilename) was asked for, and the partner offers ${shown} (PI 37) of ${virtualFile}: nothing was read. Leave remoteFilename out to take what it offers, or set selectByName when the partner is a node of this product`,
    { fault: 'local', diagnostic: '2-205', peerText: 'another file was asked for', expected: name, got: offered },
  );
};
