/** All commands of `pesit`. Code that talks PeSIT is loaded when it is asked for, so that the others start at once. */
import { DIRECT_COMMANDS } from './direct/direct-commands.js';
import type { Command } from './frame/command.js';
import { completionScript, SHELLS } from './frame/completion.js';
import type { Shell } from './frame/completion.js';
import { exitCode } from './frame/exit-codes.js';
import { PROFILE_COMMANDS } from './rest/profile-commands.js';
import { REST_COMMANDS } from './rest/rest-commands.js';

const completion: Command = {
  words: ['completion'],
  summary: 'Writes the completion for a shell',
  about: 'bash: eval "$(pesit completion bash)"; zsh: the same; fish: pesit completion fish | source',
  arguments: [{ name: 'SHELL', help: 'The shell.', required: true, choices: SHELLS }],
  flags: [],
  run: (given, { terminal }) => {
    terminal.raw(completionScript(given.required('SHELL') as Shell, COMMANDS));
    return Promise.resolve(exitCode('done'));
  },
};

export const COMMANDS: readonly Command[] = [...DIRECT_COMMANDS, ...REST_COMMANDS, ...PROFILE_COMMANDS, completion];
