/** A user at a terminal, as a test sees it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { run } from '@pesit-node/cli';

import { Terminal } from '../../src/frame/terminal.js';

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly error: string;
  /** Standard output as JSON. */
  readonly json: () => Record<string, unknown>;
}

export interface RunOptions {
  readonly variables?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly signal?: AbortSignal;
  readonly isTTY?: boolean;
  /** Told of what is written to standard error. */
  readonly heard?: (text: string) => void;
}

export const useConsole = async () => {
  const directory = await mkdtemp(join(tmpdir(), 'pesit-cli-'));
  const pesit = async (args: readonly (string | number)[], options: RunOptions = {}): Promise<Ran> => {
    let out = '';
    let error = '';
    const terminal = new Terminal(
      { isTTY: options.isTTY === true, write: (text) => (out += text) },
      {
        isTTY: options.isTTY === true,
        columns: 200,
        write: (text) => {
          error += text;
          options.heard?.(text);
        },
      },
    );
    const code = await run(args.map(String), {
      ...{ terminal, directory, signal: options.signal ?? new AbortController().signal },
      variables: { HOME: directory, ...options.variables },
      input: (async function* () {
        await Promise.resolve();
        yield options.input ?? '';
      })(),
    });
    return { code, out, error, json: () => JSON.parse(out) as Record<string, unknown> };
  };
  return { directory, pesit, close: () => rm(directory, { recursive: true, force: true }) };
};

export type Console = Awaited<ReturnType<typeof useConsole>>;
