/** The passphrase of a private key: never an argument, which every user of the machine can read in the list of processes. */
import { readFileSync } from 'node:fs';
import { Failure } from './process.mjs';

export const PASSPHRASE_VARIABLE = 'PESIT_LICENSE_PASSPHRASE';
const MIN_LENGTH = 12;

/** Reads a line from the terminal without showing it. */
function ask(question) {
  return new Promise((resolve, reject) => {
    const { stdin, stderr } = process;
    let line = '';
    stderr.write(question);
    stdin.setRawMode(true);
    stdin.setEncoding('utf8');
    const end = (finish) => {
      stdin.off('data', onData);
      stdin.setRawMode(false);
      stdin.pause();
      stderr.write('\n');
      finish();
    };
    const onData = (keys) => {
      for (const key of keys) {
        if (key === '\r' || key === '\n') return end(() => resolve(line));
        if (key === '\u0003' || key === '\u0004') return end(() => reject(new Failure('interrupted')));
        line = key === '\u007f' || key === '\b' ? line.slice(0, -1) : line + key;
      }
    };
    stdin.on('data', onData);
    stdin.resume();
  });
}

function given(file) {
  if (file !== undefined) {
    try {
      return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
    } catch (error) {
      throw new Failure(`--passphrase-file: ${error.message}`);
    }
  }
  return process.env[PASSPHRASE_VARIABLE] || undefined;
}

function missing() {
  return new Failure(
    `A passphrase is needed: type it on a terminal, set ${PASSPHRASE_VARIABLE}, or name a file with --passphrase-file`,
  );
}

/** For a new key: long enough, and typed twice. */
export async function newPassphrase(file) {
  let passphrase = given(file);
  if (passphrase === undefined) {
    if (!process.stdin.isTTY) throw missing();
    passphrase = await ask('Passphrase of the new private key: ');
    if ((await ask('Once more: ')) !== passphrase) throw new Failure('The two passphrases are not the same');
  }
  if (passphrase.length < MIN_LENGTH)
    throw new Failure(`The passphrase is too short: at least ${MIN_LENGTH} characters`);
  return passphrase;
}

/** For a key that there is. */
export async function passphraseOf(keyFile, file) {
  const passphrase = given(file);
  if (passphrase !== undefined) return passphrase;
  if (!process.stdin.isTTY) throw missing();
  return ask(`Passphrase of ${keyFile}: `);
}
