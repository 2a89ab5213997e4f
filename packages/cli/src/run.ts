/** Finds the command that was asked for, runs it, and turns its end into words and an exit code. */
import { COMMANDS } from './commands.js';
import type { Command, Environment } from './frame/command.js';
import { causeOf, CliError, exitCode } from './frame/exit-codes.js';
import { helpOf, helpOfAll } from './frame/help.js';
import { parse, quoted } from './frame/parse.js';

/** The command of the longest words that `args` begins with. */
const commandIn = (args: readonly string[]): Command | undefined =>
  COMMANDS.filter(({ words }) => words.every((word, i) => args[i] === word))
    .toSorted((a, b) => b.words.length - a.words.length)
    .at(0);

/** Words at the beginning of `args` with which some command begins. */
const knownWords = (args: readonly string[]): readonly string[] => {
  const known: string[] = [];
  for (const word of args) {
    const next = [...known, word];
    if (!COMMANDS.some(({ words }) => next.every((one, i) => words[i] === one))) break;
    known.push(word);
  }
  return known;
};

const isHelp = (word: string | undefined): boolean => word === undefined || ['help', '--help', '-h'].includes(word);

/** @returns the exit code */
export const run = async (args: readonly string[], environment: Environment): Promise<number> => {
  const { terminal } = environment;
  const command = commandIn(args);
  if (command === undefined) {
    const known = knownWords(args);
    const unknown = args[known.length];
    for (const line of helpOfAll(COMMANDS, known)) {
      if (isHelp(unknown)) terminal.say(line);
      else terminal.note(line);
    }
    if (isHelp(unknown)) return exitCode(args.length === 0 ? 'usage' : 'done');
    terminal.note(`\npesit: there is no command ${quoted([...known, unknown ?? ''].join(' '))}`);
    return exitCode('usage');
  }
  try {
    const given = parse(command, args.slice(command.words.length), environment.variables);
    if (given.has('help')) {
      for (const line of helpOf(command)) terminal.say(line);
      return exitCode('done');
    }
    return await command.run(given, environment);
  } catch (error) {
    const cause = environment.signal.aborted ? 'interrupted' : await causeOf(error, false);
    const text = cause === 'unexpected' ? (error as Error).stack : (error as Error).message;
    terminal.note(`pesit: ${text ?? String(error)}`);
    if (error instanceof CliError && error.body !== undefined && args.includes('--json')) terminal.json(error.body);
    return exitCode(cause);
  }
};
