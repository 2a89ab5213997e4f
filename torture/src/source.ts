/** The file of a round: contents that arrive as they are in the format of the round, the same for the same seed. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { Chance } from '@pesit-node/protocol/testing';
import type { FilePlan } from './plan.js';

const CHUNK = 1 << 20;
const LF = 0x0a;
const LETTER_A = 0x61;

/**
 * Turns random bytes into lines of 1 to `longest` + 1 letters, each with its LF, the last one too: LF is what the end of
 * each article becomes, and an empty line would become a blank (pesit-e.md §6). Expects two bytes or more.
 */
const makeLines = (target: Buffer, longest: number, chance: Chance): void => {
  const { length } = target;
  let lineEnd = chance.between(1, longest);
  for (let at = 0; at < length; at++) {
    if (at === lineEnd) {
      target[at] = LF;
      lineEnd = at + 1 + chance.between(1, longest);
    } else {
      target[at] = LETTER_A + ((target[at] as number) % 26);
    }
  }
  target[length - 1] = LF;
  // That made an empty line of what was the end of one.
  if (target[length - 2] === LF) target[length - 2] = LETTER_A;
};

/** Makes runs of 1 to 100 equal bytes of random ones. */
const makeRuns = (target: Buffer, chance: Chance): void => {
  for (let at = 0; at < target.length;) {
    const end = Math.min(target.length, at + chance.between(1, 100));
    target.fill(target[at] as number, at, end);
    at = end;
  }
};

/** Writes the file and flushes it. @returns its SHA-256 in hex */
export const writeSource = async (path: string, plan: FilePlan, seed: number): Promise<string> => {
  const chance = new Chance(seed ^ 0x5eed);
  const hash = createHash('sha256');
  const file = await open(path, 'w');
  try {
    for (let written = 0; written < plan.size; written += CHUNK) {
      const chunk = chance.fill(Buffer.allocUnsafe(Math.min(CHUNK, plan.size - written)));
      if (plan.runs) makeRuns(chunk, chance);
      if (plan.format.startsWith('T')) makeLines(chunk, plan.recordLength - 2, chance);
      hash.update(chunk);
      await file.write(chunk);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return hash.digest('hex');
};

/** SHA-256 of a file, in hex. */
export const sha256 = async (path: string): Promise<string> => {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: CHUNK }), hash);
  return hash.digest('hex');
};
