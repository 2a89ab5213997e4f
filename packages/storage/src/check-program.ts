/**
 * `node check-program.js DIR`: tries the file system of a directory with two processes, this one and a copy of itself, and prints a line or
 * three a promise. Exit code 1 when something fails.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { answerQuestion } from './check-other.js';
import type { StorageAnswer, StorageQuestion } from './check-other.js';
import { nodeFiles } from './node-files.js';
import { checkStorage } from './storage-check.js';
import type { StorageFinding, StorageState } from './storage-check.js';

interface Asked {
  readonly id: number;
  readonly question: StorageQuestion;
}
interface Answered {
  readonly id: number;
  readonly answer?: StorageAnswer;
  readonly error?: string;
}
type Ask = (question: StorageQuestion) => Promise<StorageAnswer>;

const OTHER = '--other';
const SHOWN: Readonly<Record<StorageState, string>> = { holds: 'holds ', weaker: 'WEAKER', fails: 'FAILS ' };

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The other process: does what it is asked until the one that started it is gone. */
const answerAll = (): void => {
  process.on('message', ({ id, question }: Asked) => {
    answerQuestion(nodeFiles, question).then(
      (answer) => process.send?.({ id, answer }),
      (error: unknown) => process.send?.({ id, error: reasonOf(error) }),
    );
  });
  process.send?.({ id: 0 });
};

const startOther = async (): Promise<{ readonly ask: Ask; readonly stop: () => Promise<void> }> => {
  // Numbers of files are larger than JSON holds.
  const child = fork(fileURLToPath(import.meta.url), [OTHER], { serialization: 'advanced' });
  const waiting = new Map<number, (answered: Answered) => void>();
  child.on('message', (answered: Answered) => {
    waiting.get(answered.id)?.(answered);
    waiting.delete(answered.id);
  });
  const ended = once(child, 'exit').then(() => {
    for (const [id, done] of waiting) done({ id, error: 'the other process is gone' });
  });
  await Promise.race([once(child, 'message'), ended]);
  let last = 0;
  const ask: Ask = async (question) => {
    const id = ++last;
    const { answer, error } = await new Promise<Answered>((done) => {
      waiting.set(id, done);
      child.send({ id, question }, (fault) => {
        if (fault !== null) done({ id, error: fault.message });
      });
    });
    if (answer === undefined) throw new Error(error);
    return answer;
  };
  const stop = async (): Promise<void> => {
    if (child.connected) child.disconnect();
    await ended;
  };
  return { ask, stop };
};

const show = ({ promise, state, seen, meaning }: StorageFinding): void => {
  say(`${SHOWN[state]}  ${promise}\n        ${seen}`);
  if (state !== 'holds') say(`        ${meaning}`);
};

/** @returns the exit code */
const check = async (given: string): Promise<number> => {
  const target = resolve(given);
  const directory = await mkdtemp(join(target, '.pesit-check-')).catch((error: unknown) => {
    say(`${target} cannot be tried: ${reasonOf(error)}`);
    return undefined;
  });
  if (directory === undefined) return 1;
  const { ask, stop } = await startOther();
  try {
    const findings = await checkStorage({ directory, ask, onFinding: show });
    const count = (state: StorageState): number => findings.filter((one) => one.state === state).length;
    say(`${target}: ${count('holds')} hold, ${count('weaker')} weaker, ${count('fails')} fail`);
    if (count('fails') === 0) return 0;
    say('This directory is not safe for a node, least of all for several pods.');
    return 1;
  } finally {
    await stop();
    await rm(directory, { recursive: true, force: true });
  }
};

const [given, ...more] = process.argv.slice(2);
if (given === OTHER) answerAll();
else if (given === undefined || given.startsWith('-') || more.length > 0) {
  say('expected one directory: a folder is made in it, and removed');
  process.exitCode = 1;
} else process.exitCode = await check(given);
