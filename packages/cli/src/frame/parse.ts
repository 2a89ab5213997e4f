/** A command line as what a command declares of it. */
import { parseArgs } from 'node:util';

import { Given } from './command.js';
import type { Argument, Command, Flag } from './command.js';
import { usageError } from './exit-codes.js';

/** Flags that every command has. */
export const COMMON: readonly Flag[] = [
  { name: 'json', type: 'switch', help: 'Answer JSON, one document, on standard output; no progress.' },
  { name: 'help', type: 'switch', help: 'Show this.' },
];

type Values = ReadonlyMap<string, string | boolean | readonly string[]>;

/**
 * @param args behind the words of the command
 * @throws CliError usage
 */
export const parse = (command: Command, args: readonly string[], variables: Environment): Given => {
  const flags = [...command.flags, ...COMMON];
  const options = Object.fromEntries(
    flags.map(({ name, type }) => [
      name,
      { type: type === 'switch' ? ('boolean' as const) : ('string' as const), multiple: type === 'list' },
    ]),
  );
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw usageError(`${firstSentence((error as Error).message)} ${seeHelp(command)}`);
  }
  const values = new Map<string, string | boolean | readonly string[]>();
  for (const flag of flags) {
    const value = parsed.values[flag.name] ?? fromVariable(flag, variables);
    if (value !== undefined) values.set(flag.name, value as string | boolean | string[]);
  }
  if (values.get('help') === true) return new Given(values);
  takeArguments(command, parsed.positionals, values);
  for (const flag of flags) check(command, flag, values);
  return new Given(values);
};

type Environment = Readonly<Record<string, string | undefined>>;

const fromVariable = ({ variable }: Flag, variables: Environment): string | undefined =>
  variable === undefined || variables[variable] === '' ? undefined : variables[variable];

const firstSentence = (text: string): string => `${text.split(/\.(?:\s|$)/)[0] ?? text}.`;

const seeHelp = ({ words }: Command): string => `See: pesit ${words.join(' ')} --help`;

const takeArguments = (
  command: Command,
  given: readonly string[],
  values: Map<string, string | boolean | readonly string[]>,
): void => {
  const left = [...given];
  for (const argument of command.arguments) {
    if (argument.rest === true) {
      values.set(argument.name, left.splice(0));
      continue;
    }
    const value = left.shift();
    if (value === undefined) {
      if (argument.required) throw usageError(`${argument.name} is missing: ${argument.help} ${seeHelp(command)}`);
    } else {
      requireChoice(argument.name, argument, value);
      values.set(argument.name, value);
    }
  }
  if (left.length > 0) throw usageError(`${quoted(left[0] ?? '')} is too much. ${seeHelp(command)}`);
};

const check = (command: Command, flag: Flag, values: Values): void => {
  const { name, type, from = 0, to = Number.MAX_SAFE_INTEGER } = flag;
  const value = values.get(name);
  if (value === undefined) {
    if (flag.required === true) {
      const or = flag.variable === undefined ? '' : ` (or the variable ${flag.variable})`;
      throw usageError(`--${name} is missing${or}: ${flag.help} ${seeHelp(command)}`);
    }
    return;
  }
  if (typeof value === 'string') {
    if (value === '') throw usageError(`--${name}: expected a value, got nothing`);
    requireChoice(`--${name}`, flag, value);
    if (type === 'number' && !(/^\d{1,15}$/.test(value) && Number(value) >= from && Number(value) <= to))
      throw usageError(`--${name}: expected a number from ${from} to ${to}, got ${quoted(value)}`);
  }
};

const requireChoice = (name: string, { choices }: Pick<Flag | Argument, 'choices'>, value: string): void => {
  if (choices !== undefined && !choices.includes(value))
    throw usageError(`${name}: expected ${choices.join(', ')}; got ${quoted(value)}`);
};

/** A text from outside: no control character of it reaches the terminal. */
export const quoted = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
