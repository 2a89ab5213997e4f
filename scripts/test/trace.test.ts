/** `npm run trace`, as a process. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('../..', import.meta.url));
const SCRIPT = join(root, 'scripts/trace.mjs');
const directory = mkdtempSync(join(tmpdir(), 'pesit-trace-'));
afterAll(() => rmSync(directory, { recursive: true }));

const trace = (...paths: string[]): string[] =>
  execFileSync(process.execPath, [SCRIPT, ...paths], { cwd: root, encoding: 'utf8' })
    .trimEnd()
    .split('\n');

/** A recording of these entities, in hex, each from `>` the requester or `<` the server. */
function recording(name: string, ...entities: readonly string[]): string {
  const records = entities.map((text) => {
    const entity = Buffer.from(text.slice(1), 'hex');
    const head = Buffer.from([text.startsWith('<') ? 1 : 0, entity.length >> 8, entity.length & 0xff]);
    return Buffer.concat([head, entity]);
  });
  const path = join(directory, name);
  writeFileSync(path, Buffer.concat(records));
  return path;
}

test('a refused password: one line an FPDU, with direction, names and values, the secret masked', () => {
  expect(trace('packages/protocol/test/recordings/pw-push-wrong-password.raw')).toEqual([
    '    1 --> CONNECT to 0 from 1: PI 3 (requester identification) "SECURED", PI 4 (server identification) "PESITSRV", ' +
      'PI 5 (access control) ********, PI 6 (version) 2 E, PI 7 (sync points) 100 KB, window 1, PI 22 (access type) 0 write, ' +
      'PI 23 (resynchronisation) 1 allowed',
    '    2 <-- RCONNECT to 1 from 224: PI 2 (diagnostic) 3-304 requester not authorised, ' +
      `PI 99 (free message) "Invalid password for partner 'SECURED'"`,
  ]);
});

test('a pre-connection, FPDUs that share an entity, and a CRC behind each', () => {
  const preconnection = 'd7c5e2c9e3404040' + 'c2c1d5d2f1404040' + 'e2c5c3d9c5e34040';
  // CONNECT with PI 1 = 1, its CRC not counted in its length; then a DTF with its CRC.
  const connect = '001840200005' + '010101' + '030141' + '040142' + '060102' + '160100' + '170100';
  const path = recording('all', `>${preconnection}`, '<c1c3d2f0', `>${connect}aaaa`, '>00080000090061' + '62bbbb');
  expect(trace(path)).toEqual([
    '    1 --> pre-connection of BANK1, password ********',
    '    2 <-- ACK0: pre-connection accepted',
    expect.stringMatching(
      /^ {4}3 --> CONNECT to 0 from 5: PI 1 \(CRC.*\) 1 yes, PI 3 .* "A", PI 4 .* "B", PI 6 .* 2 E/,
    ),
    '    4 --> DTF to 9: 1 article, 2 bytes',
  ]);
  // DTF, SYN 1, and four bytes that are no FPDU.
  const shared = recording('shared', '>' + '000700000900ff' + '0009c0030900140101' + '0102');
  expect(trace(shared)).toEqual([
    '    1 --> DTF to 9: 1 article, 1 bytes',
    '    1 --> SYN to 9: PI 20 (sync point number) 1',
    '    1 --> no FPDU: 2 bytes',
  ]);
});

test('what is not a recording is said to be none', () => {
  const complaint = (path: string): string => {
    const { status, stderr } = spawnSync(process.execPath, [SCRIPT, path], { cwd: root, encoding: 'utf8' });
    expect(status).toBe(1);
    return stderr;
  };
  expect(complaint('README.md')).toContain(
    'README.md: record 1, at byte 0: expected a direction, 0 or 1, got 35: this is not a recorded session',
  );
  const path = join(directory, 'short');
  writeFileSync(path, Buffer.from('0000070006', 'hex'));
  expect(complaint(path)).toContain('record 1, at byte 0: the file ends inside it');
  expect(complaint(join(directory, 'none'))).toContain('cannot be read: ENOENT');
});
