import { codeOf } from '@pesit-node/ground';
import { PesitError } from '@pesit-node/protocol';
import type { PesitErrorDetails } from '@pesit-node/protocol';

/**
 * A failure of the file side. `message` is for the operator and may hold full paths;
 * `peerText` says the same without a path of this machine, fit for PI 29.
 */
export class StorageError extends PesitError {
  declare readonly peerText: string;

  constructor(message: string, details: StorageErrorDetails) {
    super(message, { peerText: message, ...details });
  }
}

/** A peer is told its own mistakes as they are; for those of this side, which name paths of this machine, it gets other words. */
type StorageErrorDetails = Omit<PesitErrorDetails, 'fault' | 'peerText'> &
  ({ readonly fault: 'local'; readonly peerText: string } | { readonly fault: 'remote'; readonly peerText?: string });

/** The operation that the operating system refused: it decides the diagnostic and the sentence. */
export type Action = 'create' | 'write' | 'flush' | 'deliver' | 'open' | 'read';

const DIAGNOSTIC = {
  create: '2-211',
  deliver: '2-211',
  open: '2-211',
  write: '2-213',
  flush: '2-213',
  read: '2-213',
} as const;

interface Remedy {
  readonly what: string;
  readonly remedy: string;
  /** Where the error says more than the action does. */
  readonly diagnostic?: '2-201' | '2-213' | '2-219';
  readonly condition?: 'disk full';
}

const CHECK_DISK = 'check the disk and the log of the operating system';

const REMEDIES: Readonly<Record<string, Remedy>> = {
  ENOSPC: {
    what: 'the disk is full',
    remedy: 'free space or enlarge the volume',
    diagnostic: '2-219',
    condition: 'disk full',
  },
  EDQUOT: {
    what: 'the disk quota is used up',
    remedy: 'free space or raise the quota',
    diagnostic: '2-219',
    condition: 'disk full',
  },
  EROFS: { what: 'the file system is read-only', remedy: 'mount it read-write' },
  EACCES: { what: 'permission denied', remedy: 'give the account of this service access to it' },
  EPERM: { what: 'operation not permitted', remedy: 'give the account of this service access to it' },
  ENOENT: { what: 'no such file or directory', remedy: 'create it, or correct the configured directory' },
  ENOTDIR: { what: 'a part of the path is not a directory', remedy: 'correct the configured directory' },
  EXDEV: {
    what: 'it is on another file system than the receive directory',
    remedy: 'keep the receive directory and its sub-directories on one volume',
  },
  ENAMETOOLONG: { what: 'the name is too long for the file system', remedy: 'shorten the naming pattern' },
  EISDIR: { what: 'a directory has that name', remedy: 'choose another name' },
  EMFILE: { what: 'too many open files', remedy: 'raise the limit of open files', diagnostic: '2-201' },
  ENFILE: { what: 'too many open files on this machine', remedy: 'raise the limit of open files', diagnostic: '2-201' },
  EIO: { what: 'input/output error', remedy: CHECK_DISK, diagnostic: '2-213' },
  ESTALE: { what: 'the network volume has lost it', remedy: 'mount the volume again' },
  ETIMEDOUT: { what: 'the network volume does not answer', remedy: 'check the file server and the way to it' },
  EFBIG: { what: 'it is larger than the file system takes', remedy: 'choose another volume', diagnostic: '2-219' },
  ELOOP: { what: 'a link stands where none may', remedy: 'remove the link' },
  EBUSY: { what: 'it is in use', remedy: 'look which program has it open' },
  ENOMEM: { what: 'not enough memory', remedy: 'give the machine more memory', diagnostic: '2-201' },
};

/**
 * Turns an operating system error into the `StorageError` of the action that met it; a `PesitError` passes unchanged.
 * @param path full path, for the operator alone
 * @param object the same thing in a word, for the peer (`the receive directory`)
 */
export const storageError = (error: unknown, action: Action, path: string, object: string): PesitError => {
  if (error instanceof PesitError) return error;
  const code = codeOf(error);
  const known = code === undefined ? undefined : REMEDIES[code];
  const what = known?.what ?? String(error);
  // The text of an error that is not in the table may hold a path; its code does not.
  const told = known?.what ?? code ?? 'unexpected error';
  const remedy = known?.remedy ?? CHECK_DISK;
  const missing = action === 'open' && code === 'ENOENT';
  return new StorageError(`cannot ${action} ${path}: ${what}; ${remedy}`, {
    fault: 'local',
    diagnostic: known?.diagnostic ?? (missing ? '2-205' : DIAGNOSTIC[action]),
    condition: known?.condition,
    peerText: `cannot ${action} ${object}: ${told}`,
    got: code ?? what,
    cause: error,
  });
};
