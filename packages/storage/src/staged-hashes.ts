import type { RunningHash } from './running-hash.js';

/** Files whose hash is kept; the one that was kept longest goes first. A state takes some hundred bytes. */
const MAX_FILES = 256;

/**
 * Hashes of staged files that were released by this process, each at the newest stable point, by path. So an attempt that
 * follows at once need not read what is there, for which a partner would not wait (Tp): Node cannot write such a state to disk.
 * Whether a state belongs to the journal that is found is told by its digest.
 */
const kept = new Map<string, RunningHash>();

export const keepHash = (stagedPath: string, hash: RunningHash): void => {
  kept.delete(stagedPath);
  kept.set(stagedPath, hash);
  const [oldest] = kept.keys();
  if (kept.size > MAX_FILES && oldest !== undefined) kept.delete(oldest);
};

export const keptHash = (stagedPath: string): RunningHash | undefined => kept.get(stagedPath)?.copy();

export const forgetHash = (stagedPath: string): void => {
  kept.delete(stagedPath);
};
