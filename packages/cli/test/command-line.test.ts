/** What is common to all commands: words, flags, help, completion. */
import { execFileSync } from 'node:child_process';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { COMMANDS, completionScript } from '@pesit-node/cli';

import { useConsole } from './support/console.js';
import type { Console } from './support/console.js';

let user: Console;
beforeEach(async () => {
  user = await useConsole();
});
afterEach(() => user.close());

const TARGET = ['--host', 'h', '--server-id', 's', '--partner', 'p'];

describe('a command line that is wrong', () => {
  test.each<[readonly string[], string]>([
    [['sned'], 'there is no command "sned"'],
    [['partners', 'lst'], 'there is no command "partners lst"'],
    [['send'], 'FILE is missing'],
    [['send', 'a', 'b', ...TARGET], '"b" is too much'],
    [['send', 'a'], '--host is missing: Host name or address'],
    [['test', ...TARGET, '--port', '0'], '--port: expected a number from 1 to 65535, got "0"'],
    [['test', ...TARGET, '--port', '1e3'], '--port: expected a number from 1 to 65535, got "1e3"'],
    [['test', ...TARGET, '--port', '65536'], '--port: expected a number'],
    [['test', ...TARGET, '--dialect', 'x25'], '--dialect: expected length-prefixed, raw; got "x25"'],
    [['test', ...TARGET, '--prot', '1'], "Unknown option '--prot'"],
    [['test', ...TARGET, '--host', ''], '--host: expected a value, got nothing'],
    [['test', ...TARGET, '--crc=yes'], "Option '--crc' does not take an argument"],
    [['trace', 'on', 'nobody', 'x'], 'OWNER: expected partner, server; got "nobody"'],
    [['\u001b[2J'], 'there is no command "\\u001b[2J"'],
  ])('%j is 2, with its cause', async (args, text) => {
    const ran = await user.pesit(args);
    expect(ran.code).toBe(2);
    expect(ran.error).toContain(text);
    expect(ran.error).not.toContain('\u001b');
  });
});

describe('help', () => {
  test('lists the commands, those of a word, and the flags of one', async () => {
    expect((await user.pesit([])).code).toBe(2);
    expect((await user.pesit(['--help'])).out).toContain('pesit COMMAND');
    const some = await user.pesit(['partners', '--help']);
    expect(some).toMatchObject({ code: 0 });
    expect(some.out).toContain('partners create');
    expect(some.out).not.toContain('listeners');
    const one = await user.pesit(['send', '--help']);
    expect(one.code).toBe(0);
    expect(one.out).toContain('--remote NAME');
  });

  test('each command says what it does, in a line', () => {
    for (const { words, summary, flags } of COMMANDS) {
      expect([words.join(' '), summary]).toEqual([words.join(' '), expect.stringMatching(/^[A-Z].{5,90}[^.]$/)]);
      expect(new Set(flags.map(({ name }) => name)).size).toBe(flags.length);
    }
  });
});

describe('completion', () => {
  const complete = (words: readonly string[]): string[] => {
    const script = `${completionScript('bash', COMMANDS)}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _pesit; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return execFileSync('bash', ['-c', script], { encoding: 'utf8', cwd: user.directory }).trim().split('\n');
  };

  test.each<[readonly string[], readonly string[]]>([
    [
      ['pesit', 'se'],
      ['send', 'servers', 'sessions'],
    ],
    [
      ['pesit', 'license', ''],
      ['show', 'install', 'extend'],
    ],
    [['pesit', 'send', 'x', '--dia'], ['--dialect']],
    [
      ['pesit', 'send', 'x', '--dialect', ''],
      ['length-prefixed', 'raw'],
    ],
    [['pesit', 'transfers', 'list', '--app', 'c'], ['client']],
  ])('bash completes %j', (words, expected) => {
    expect(complete(words)).toEqual(expected);
  });

  test('zsh uses the same, fish has a line for each word and flag', async () => {
    expect((await user.pesit(['completion', 'zsh'])).out).toMatch(/^#compdef pesit\n/);
    const { out } = await user.pesit(['completion', 'fish']);
    expect(out).toContain("complete -c pesit -n '__fish_use_subcommand' -a send -d 'Sends a file to a PeSIT server'");
    expect(out).toContain("-l dialect -r -a 'length-prefixed raw'");
    expect((await user.pesit(['completion', 'tcsh'])).code).toBe(2);
  });
});
