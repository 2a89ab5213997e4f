/** Help texts, from what the commands declare. */
import type { Argument, Command, Flag } from './command.js';
import { COMMON } from './parse.js';

const shownArgument = ({ name, required, rest }: Argument): string => {
  const many = rest === true ? `${name} …` : name;
  return required ? many : `[${many}]`;
};

export const valueOf = ({ type, value, choices }: Flag): string => {
  if (type === 'switch') return '';
  return ` ${choices?.join('|') ?? value ?? { text: 'TEXT', number: 'N', path: 'FILE', list: 'TEXT' }[type]}`;
};

export const besides = ({ fallback, required, variable, type }: Flag): string => {
  const parts = [
    ...(required === true ? ['required'] : []),
    ...(fallback === undefined ? [] : [`default: ${fallback}`]),
    ...(type === 'list' ? ['may be repeated'] : []),
    ...(variable === undefined ? [] : [`variable: ${variable}`]),
  ];
  return parts.length === 0 ? '' : ` (${parts.join('; ')})`;
};

export const usageOf = ({ words, arguments: args, flags }: Command): string =>
  ['pesit', ...words, ...args.map(shownArgument), ...(flags.length > 0 ? ['[flags]'] : [])].join(' ');

const columns = (rows: readonly (readonly [string, string])[]): string[] => {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
};

export const helpOf = (command: Command): string[] => {
  const { summary, about, arguments: args, flags } = command;
  const flagRows = [...flags, ...COMMON].map(
    (flag) => [`--${flag.name}${valueOf(flag)}`, `${flag.help}${besides(flag)}`] as const,
  );
  return [
    `${usageOf(command)}    ${summary}`,
    ...(about === undefined ? [] : ['', about]),
    ...(args.length === 0 ? [] : ['', ...columns(args.map(({ name, help }) => [name, help]))]),
    ...['', ...columns(flagRows)],
  ];
};

/** @param words that were given; commands that begin with them are listed */
export const helpOfAll = (commands: readonly Command[], words: readonly string[] = []): string[] => {
  const chosen = commands.filter((command) => words.every((word, i) => command.words[i] === word));
  return [
    `pesit ${[...words, 'COMMAND'].join(' ')}`,
    '',
    ...columns(chosen.map((command) => [command.words.join(' '), command.summary])),
    '',
    'pesit COMMAND --help shows its arguments and flags.',
  ];
};
