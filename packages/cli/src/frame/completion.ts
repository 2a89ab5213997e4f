/** Completion for shells, written from what the commands declare: words, flags, their choices, and files where a path is expected. */
import type { Command, Flag } from './command.js';
import { COMMON } from './parse.js';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

const flagsOf = ({ flags }: Command): readonly Flag[] => [...flags, ...COMMON];

/** In single quotes of a POSIX shell. */
const inShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Words that may follow others, e.g. `partners` → list, show … */
const wordTree = (commands: readonly Command[]): ReadonlyMap<string, ReadonlySet<string>> => {
  const tree = new Map<string, Set<string>>();
  for (const { words } of commands) {
    words.forEach((word, i) => {
      const before = words.slice(0, i).join(' ');
      tree.set(before, (tree.get(before) ?? new Set()).add(word));
    });
  }
  return tree;
};

const bash = (commands: readonly Command[]): string => {
  const words = [...wordTree(commands)].map(
    ([before, next]) => `    ${inShell(before)}) words=${inShell([...next].join(' '))} ;;`,
  );
  const flags = commands.map(
    (command) =>
      `    ${inShell(command.words.join(' '))}) flags=${inShell(
        flagsOf(command)
          .map(({ name }) => `--${name}`)
          .join(' '),
      )} ;;`,
  );
  const choices = commands.flatMap((command) =>
    flagsOf(command).flatMap(({ name, choices: given, type }) => {
      const key = inShell(`${command.words.join(' ')} --${name}`);
      if (given !== undefined) return [`    ${key}) values=${inShell(given.join(' '))} ;;`];
      return type === 'path' ? [`    ${key}) values=@files ;;`] : [];
    }),
  );
  return `_pesit() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local command='' words='' flags='' values='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${COMP_WORDS[i]}" in
      -*) break ;;
    esac
    words=''
    case "$command" in
${words.join('\n')}
    esac
    case " $words " in
      *" \${COMP_WORDS[i]} "*) command="\${command:+$command }\${COMP_WORDS[i]}" ;;
      *) break ;;
    esac
  done
  words=''
  case "$command" in
${words.join('\n')}
  esac
  case "$command" in
${flags.join('\n')}
  esac
  case "$command $previous" in
${choices.join('\n')}
  esac
  if [[ $values == @files ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
  elif [[ -n $values ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _pesit pesit
`;
};

/** zsh runs the function of bash. */
const zsh = (commands: readonly Command[]): string =>
  `#compdef pesit\nautoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`;

const fish = (commands: readonly Command[]): string => {
  const seen = (words: readonly string[]): string =>
    words.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ');
  const lines = ['complete -c pesit -f'];
  for (const [before, next] of wordTree(commands)) {
    for (const word of next) {
      const words = before === '' ? [] : before.split(' ');
      const others = [...next].join(' ');
      const condition =
        words.length === 0 ? '__fish_use_subcommand' : `${seen(words)}; and not __fish_seen_subcommand_from ${others}`;
      const command = commands.find((one) => one.words.join(' ') === [...words, word].join(' '));
      const summary = command === undefined ? '' : ` -d ${inShell(command.summary)}`;
      lines.push(`complete -c pesit -n ${inShell(condition)} -a ${word}${summary}`);
    }
  }
  for (const command of commands) {
    for (const { name, type, choices, help } of flagsOf(command)) {
      const takes = type === 'switch' ? '' : ' -r';
      const values = choices === undefined ? '' : ` -a ${inShell(choices.join(' '))}`;
      const files = type === 'path' ? ' -F' : '';
      lines.push(
        `complete -c pesit -n ${inShell(seen(command.words))} -l ${name}${takes}${values}${files} -d ${inShell(help)}`,
      );
    }
    if (command.arguments.some((argument) => argument.type === 'path'))
      lines.push(`complete -c pesit -n ${inShell(seen(command.words))} -F`);
  }
  return `${lines.join('\n')}\n`;
};

/** The script to source, or to put where the shell looks for completions. */
export const completionScript = (shell: Shell, commands: readonly Command[]): string =>
  ({ bash, zsh, fish })[shell](commands);
