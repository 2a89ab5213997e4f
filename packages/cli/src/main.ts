#!/usr/bin/env node
/** The program `pesit`. */
import { Terminal } from './frame/terminal.js';
import { run } from './run.js';

const abort = new AbortController();
const interrupt = (signal: NodeJS.Signals): void => {
  // The second one does not wait for the partner.
  if (abort.signal.aborted) process.exit(130);
  abort.abort(signal);
};
process.on('SIGINT', interrupt);
process.on('SIGTERM', interrupt);
// A reader that has seen enough, such as `head`, is no failure.
process.stdout.on('error', () => process.exit(0));

process.exitCode = await run(process.argv.slice(2), {
  terminal: new Terminal(process.stdout, process.stderr),
  variables: process.env,
  directory: process.cwd(),
  input: process.stdin,
  signal: abort.signal,
});
