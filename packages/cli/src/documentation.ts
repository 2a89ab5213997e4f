/** The tables of docs/cli.md, from what the commands declare. */
import { COMMANDS } from './commands.js';
import { DIRECT_COMMANDS } from './direct/direct-commands.js';
import { FILE_FLAGS, SESSION_FLAGS } from './direct/flags.js';
import type { Command, Flag } from './frame/command.js';
import { EXIT_CODES } from './frame/exit-codes.js';
import { besides, usageOf, valueOf } from './frame/help.js';
import { REST_FLAGS } from './rest/profiles.js';

const inCell = (text: string): string => text.replaceAll('|', '\\|');

const flagTable = (flags: readonly Flag[]): readonly string[] => [
  '| Flag | Meaning |',
  '| --- | --- |',
  ...flags.map((flag) => `| \`--${flag.name}${inCell(valueOf(flag))}\` | ${inCell(flag.help + besides(flag))} |`),
  '',
];

const shared = new Set([...FILE_FLAGS, ...SESSION_FLAGS, ...REST_FLAGS].map(({ name }) => name));

const own = ({ flags }: Command): readonly Flag[] => flags.filter(({ name }) => !shared.has(name));

const direct = (command: Command): readonly string[] => [
  ...[`### pesit ${command.words.join(' ')}`, '', `\`${usageOf(command)}\``, ''],
  ...[`${command.summary}. ${command.about ?? ''}`.trimEnd(), ''],
  ...(own(command).length === 0 ? [] : flagTable(own(command))),
];

const overRest = (): readonly string[] => [
  '| Command | What it does |',
  '| --- | --- |',
  ...COMMANDS.filter((command) => !DIRECT_COMMANDS.includes(command)).map((command) => {
    const flags = own(command).map((flag) => `\`--${flag.name}${inCell(valueOf(flag))}\``);
    const more = flags.length === 0 ? '' : `; ${flags.join(', ')}`;
    return `| \`${inCell(usageOf(command).replace(' [flags]', ''))}\` | ${inCell(command.summary)}${more} |`;
  }),
  '',
];

/** Markdown: headings of the third level, tables. */
export const cliMarkdown = (): string =>
  [
    ...DIRECT_COMMANDS.flatMap(direct),
    ...['### Flags of a file (send, receive)', '', ...flagTable(FILE_FLAGS)],
    ...['### Flags of a session (send, receive, message, test)', '', ...flagTable(SESSION_FLAGS)],
    ...['### Commands for the REST interface', '', ...overRest()],
    ...['### Flags of the commands for the REST interface', '', ...flagTable(REST_FLAGS)],
    ...['### Exit codes', '', '| Code | Cause |', '| --- | --- |'],
    ...EXIT_CODES.map(({ code, help }) => `| ${code} | ${help} |`),
  ].join('\n');
