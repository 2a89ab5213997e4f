/**
 * The command line `pesit`.
 *
 * Theory of operation. A command is data (`frame/command.ts`): its words, arguments, flags and the function that runs it. Parsing,
 * help, completion and the tables of docs/cli.md come from that alone, so a flag is declared once. `commands.ts` lists the commands;
 * `run.ts` finds the one that was asked for, runs it, and turns whatever was thrown into words and an exit code
 * (`frame/exit-codes.ts`). `main.ts` is the program: the only file that reads the environment.
 *
 * `direct/` talks PeSIT by itself, without any service: `attempts.ts` repeats what was cut off, from where the partner has it,
 * and `unfinished.ts` keeps what the same command needs to continue after this process is gone. `rest/` talks to the REST
 * interface of the apps (`rest-client.ts`), with addresses and logins from a file (`profiles.ts`); the fields of a resource
 * come from the OpenAPI document of the service that is asked, so that none is named here.
 */
export { COMMANDS } from './commands.js';
export type { Command, Environment, Flag } from './frame/command.js';
export { completionScript } from './frame/completion.js';
export { EXIT_CODES } from './frame/exit-codes.js';
export { cliMarkdown } from './documentation.js';
export { run } from './run.js';
