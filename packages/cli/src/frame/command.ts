/** A command as data. Parsing, help, completion and documents are made from it. */
import type { Terminal } from './terminal.js';

export type FlagType = 'text' | 'number' | 'switch' | 'path' | 'list';

export interface Flag {
  /** Without the dashes. */
  readonly name: string;
  readonly type: FlagType;
  /** Words for the help: what it does. */
  readonly help: string;
  /** Placeholder of the value in the help. Default: the type in capitals. */
  readonly value?: string;
  /** In words, for the help; the code that uses the flag applies it. */
  readonly fallback?: string;
  /** The only values; completed by the shell. */
  readonly choices?: readonly string[];
  /** Bounds of a number, both included. */
  readonly from?: number;
  readonly to?: number;
  /** Environment variable that counts where the flag is absent. */
  readonly variable?: string;
  readonly required?: true;
}

export interface Argument {
  /** In capitals, as the help shows it. */
  readonly name: string;
  readonly help: string;
  readonly required: boolean;
  /** It takes all that follows. */
  readonly rest?: true;
  readonly type?: 'path';
  readonly choices?: readonly string[];
}

export interface Environment {
  readonly terminal: Terminal;
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Absolute: what relative paths are relative to. */
  readonly directory: string;
  /** Standard input. */
  readonly input: AsyncIterable<Buffer | string>;
  /** Aborted when the program shall end. */
  readonly signal: AbortSignal;
}

/** Values from a command line, by name of flag or argument. */
export class Given {
  readonly #values: ReadonlyMap<string, string | boolean | readonly string[]>;

  constructor(values: ReadonlyMap<string, string | boolean | readonly string[]>) {
    this.#values = values;
  }

  text(name: string): string | undefined {
    const value = this.#values.get(name);
    return typeof value === 'string' ? value : undefined;
  }

  /** For a flag or an argument that is required: the parser has made sure that it is there. */
  required(name: string): string {
    return this.text(name) ?? '';
  }

  number(name: string): number | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : Number(text);
  }

  has(name: string): boolean {
    return this.#values.get(name) === true;
  }

  list(name: string): readonly string[] {
    const value = this.#values.get(name);
    return Array.isArray(value) ? (value as readonly string[]) : [];
  }
}

export interface Command {
  /** Words that choose it: `['send']`, `['partners', 'list']`. */
  readonly words: readonly string[];
  readonly summary: string;
  /** More for its help, in whole sentences. */
  readonly about?: string;
  readonly arguments: readonly Argument[];
  readonly flags: readonly Flag[];
  /** Resolves with the exit code; what it throws is said on standard error. */
  readonly run: (given: Given, environment: Environment) => Promise<number>;
}
