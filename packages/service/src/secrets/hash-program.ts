/**
 * `node hash-program.js`: asks for a password on a terminal, twice and without showing it, or reads a line from a pipe, and prints its
 * hash for a line of `admin.users`. Exit code 1 when there is none, or a short one.
 */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

import { PASSWORD_LENGTH } from '../config/login-keys.js';
import { hashPassword } from './password.js';

/** The next line; undefined when the input ends, or Ctrl+C is pressed. */
const readLine = (question: string): Promise<string | undefined> => {
  const { stdin, stderr } = process;
  const isTerminal = stdin.isTTY;
  if (isTerminal) stderr.write(question);
  // The echo of readline goes nowhere.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output, terminal: isTerminal });
  return new Promise((resolve) => {
    const end = (line?: string): void => {
      resolve(line);
      lines.close();
      if (isTerminal) stderr.write('\n');
    };
    lines.once('line', end);
    lines.once('SIGINT', end);
    lines.once('close', () => {
      resolve(undefined);
    });
  });
};

const fail = (text: string): void => {
  process.stderr.write(`${text}\n`);
  process.exitCode = 1;
};

const password = await readLine('Password: ');
if (password === undefined) fail('expected a password on standard input, got nothing');
else if (password.length < PASSWORD_LENGTH) fail(`expected a password of ${PASSWORD_LENGTH} characters or more`);
else if (process.stdin.isTTY && (await readLine('Once more: ')) !== password)
  fail('the two passwords are not the same');
else process.stdout.write(`${await hashPassword(password)}\n`);
