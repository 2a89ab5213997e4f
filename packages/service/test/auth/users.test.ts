import { spawnSync } from 'node:child_process';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHttpApp, endpoint, hashPassword, HealthRegistry, ROLES } from '@pesit-node/service';
import type { CommonConfig } from '@pesit-node/service';
import { captureLog, testConfig, testMetrics } from '@pesit-node/service/testing';
import request from 'supertest';

import { readUsers, UserFile } from '../../src/auth/user-file.js';
import { checkPassword } from '../../src/secrets/password.js';

const KEY = 'k'.repeat(32);
const PASSWORDS = { viewer: 'pass:word v', operator: 'päss-word o', admin: 'password a' } as const;
/** As cheap as a stored hash may be. */
const COST = { logN: 10, r: 8, p: 1 };

let directory: string;
let file: string;
const hashes = new Map<string, string>();
const hashOf = (role: string): string => hashes.get(role) ?? '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pesit-users-'));
  file = join(directory, 'users');
  for (const role of ROLES) hashes.set(role, await hashPassword(PASSWORDS[role], COST));
  await writeFile(file, `# users\n\n${ROLES.map((role) => `the-${role} ${role} ${hashOf(role)}`).join('\n')}\n`);
});
afterAll(() => rm(directory, { recursive: true }));

const build = (overrides: Partial<CommonConfig> = {}) => {
  const log = captureLog();
  const config = testConfig('server', {
    'data.directory': '/nowhere',
    'admin.username': 'root',
    'admin.password': 'root-password',
    'admin.users': file,
    ...overrides,
  });
  const app = createHttpApp({
    ...{ config, info: { name: 'test', version: '1' }, logger: log.logger, health: new HealthRegistry() },
    metrics: testMetrics('server'),
    routes: (routes) => {
      const answer = endpoint({ summary: 'Answers', answers: { 200: 'ok' } }, ({ res }) => res.json({ ok: true }));
      routes.resource('/plain', { get: answer, post: answer });
    },
  });
  const as = async (user: string, password: string, method: 'get' | 'post' = 'get'): Promise<number> =>
    (await request(app)[method]('/plain').auth(user, password)).status;
  return { app, log, as };
};

describe('users of the file', () => {
  test('each has the role of its line; admin.username is an admin still', async () => {
    const { as, log } = build();
    const statuses = async (user: string, password: string) => [
      await as(user, password),
      await as(user, password, 'post'),
    ];
    expect(await statuses('the-viewer', PASSWORDS.viewer)).toEqual([200, 403]);
    expect(await statuses('the-operator', PASSWORDS.operator.normalize('NFD'))).toEqual([200, 403]);
    expect(await statuses('the-admin', PASSWORDS.admin)).toEqual([200, 200]);
    expect(await statuses('root', 'root-password')).toEqual([200, 200]);
    for (const text of log.lines) for (const secret of Object.values(PASSWORDS)) expect(text).not.toContain(secret);
  });

  test('wrong passwords, and names of nobody', async () => {
    const { as } = build();
    expect(await as('the-viewer', PASSWORDS.admin)).toBe(401);
    expect(await as('nobody', PASSWORDS.admin)).toBe(401);
    expect(await as('root', PASSWORDS.admin)).toBe(401);
    expect(await as('The-Viewer', PASSWORDS.viewer)).toBe(401);
  });

  test('a line for admin.username opens no second door', async () => {
    const path = join(directory, 'second');
    await writeFile(path, `root viewer ${hashOf('viewer')}`);
    const { as } = build({ 'admin.users': path });
    expect(await as('root', PASSWORDS.viewer)).toBe(401);
    expect(await as('root', 'root-password', 'post')).toBe(200);
  });
});

describe('the file', () => {
  test('is read again when it changes; a broken one leaves the users as they were, and is told of once', async () => {
    const path = join(directory, 'changing');
    const put = async (text: string): Promise<void> => {
      await writeFile(`${path}.new`, text);
      await rename(`${path}.new`, path);
    };
    const { as, log } = build({ 'admin.users': path });
    expect(await as('ann', PASSWORDS.admin)).toBe(401);
    await put(`ann viewer ${hashOf('admin')}`);
    expect(await as('ann', PASSWORDS.admin)).toBe(200);
    await put(`ann viewer ${hashOf('viewer')}`);
    expect([await as('ann', PASSWORDS.admin), await as('ann', PASSWORDS.viewer)]).toEqual([401, 200]);
    await put(`ann viewer ${hashOf('admin')}`);
    expect(await as('ann', PASSWORDS.admin)).toBe(200);
    await put('ann boss x');
    expect(await as('ann', PASSWORDS.admin)).toBe(200);
    expect(await as('ann', PASSWORDS.admin)).toBe(200);
    await put(`bob viewer ${hashOf('admin')}`);
    expect(await as('ann', PASSWORDS.admin)).toBe(401);
    expect(await as('bob', PASSWORDS.admin)).toBe(200);
    const reasons = log.entries().filter(({ level, file: where }) => level === 'error' && where === path);
    expect(reasons.map(({ reason, users }) => [reason, users])).toEqual([
      [expect.stringContaining('ENOENT'), 0],
      ['line 1: expected a role of: viewer, operator, admin', 1],
    ]);
  });

  test('two versions of one size within one tick of the clock: none is missed', async () => {
    const path = join(directory, 'quick');
    const log = captureLog();
    let changes = 0;
    const users = new UserFile({ path: () => path, logger: log.logger, changed: () => (changes += 1) });
    for (const name of ['ann', 'bob', 'eve', 'kim']) {
      await writeFile(path, `${name} viewer ${hashOf('viewer')}`);
      expect([...(await users.users()).keys()]).toEqual([name]);
      await users.users();
    }
    expect(changes).toBe(4);
  });

  test('that nobody names any longer has no users', async () => {
    let path = file;
    const users = new UserFile({ path: () => path, logger: captureLog().logger, changed: () => undefined });
    expect((await users.users()).size).toBe(3);
    path = '';
    expect((await users.users()).size).toBe(0);
    path = file;
    expect((await users.users()).size).toBe(3);
  });

  test.each([
    ['a', 'line 1: expected three words: name, role and hash'],
    ['\na viewer h more', 'line 2: expected three words: name, role and hash'],
    ['a:b viewer h', 'line 1: expected a name of at most 64 characters, without colons'],
    [`${'a'.repeat(65)} viewer h`, 'line 1: expected a name of at most 64 characters, without colons'],
    ['a viewer secret-hash', 'line 1: the stored hash has an unknown form: make one with npm run hash-password'],
    [
      `a viewer $scrypt$ln=10,r=8,p=1,keyid=01234567$${'A'.repeat(22)}$${'A'.repeat(43)}`,
      'line 1: the hash is the one of a partner: make one with npm run hash-password',
    ],
    [
      `a viewer $scrypt$ln=30,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`,
      'line 1: the stored hash is not computed: it asks for N = 2^30, and 2^10 to 2^20 is allowed: make one with npm run hash-password',
    ],
  ])('%j is refused, and nothing of a hash shown', (text, message) => {
    expect(() => readUsers(text)).toThrow(new Error(message));
  });

  test('a name twice, also in other bytes; the name of callers with a key', () => {
    const line = (name: string): string => `${name} viewer ${hashOf('viewer')}\n`;
    expect(() => readUsers(line('jürgen') + line('jürgen'.normalize('NFD')))).toThrow(
      'line 2: this name is there twice',
    );
    expect(() => readUsers(line('api-key'))).toThrow('line 1: api-key is the name of callers with X-API-Key');
    const many = Array.from({ length: 1001 }, (_, index) => line(`u${index}`)).join('');
    expect(() => readUsers(many)).toThrow('line 1001: expected at most 1000 users');
  });
});

test('a hash as npm run hash-password makes it: of RFC 7914, with a salt of its own', async () => {
  const [one, other] = await Promise.all([hashPassword('jürgen-pw', COST), hashPassword('jürgen-pw', COST)]);
  expect(one).toMatch(/^\$scrypt\$ln=10,r=8,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
  expect(one).not.toBe(other);
  expect(await checkPassword('jürgen-pw'.normalize('NFD'), one)).toBe(true);
  expect(await checkPassword('jürgen-pW', one)).toBe(false);
});

test('the program reads a password from a pipe, and prints its hash alone', async () => {
  const program = fileURLToPath(new URL('../../dist/secrets/hash-program.js', import.meta.url));
  const run = (input: string) => spawnSync(process.execPath, [program], { encoding: 'utf8', input });
  const { status, stdout } = run('a password\nmore');
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^\$scrypt\$ln=15,r=8,p=3\$[^$\n]+\$[^$\n]+\n$/)]);
  expect(await checkPassword('a password', stdout.trim())).toBe(true);
  expect(run('short\n')).toMatchObject({ status: 1, stderr: 'expected a password of 8 characters or more\n' });
  expect(run('')).toMatchObject({ status: 1, stderr: 'expected a password on standard input, got nothing\n' });
}, 60_000);

describe('X-API-Key', () => {
  const call = async (app: ReturnType<typeof build>['app'], key: string, method: 'get' | 'post' = 'get') =>
    (await request(app)[method]('/plain').set('X-API-Key', key)).status;

  test('the right one has its role, and is the actor of its requests', async () => {
    const { app, log } = build({ 'admin.api-key': KEY });
    const line = log.next('request');
    expect(await call(app, KEY, 'post')).toBe(200);
    expect(await line).toMatchObject({ actor: 'api-key' });
    const viewer = build({ 'admin.api-key': KEY, 'admin.api-key-role': 'viewer' });
    expect([await call(viewer.app, KEY), await call(viewer.app, KEY, 'post')]).toEqual([200, 403]);
    expect(log.lines.some((text) => text.includes(KEY))).toBe(false);
  });

  test('a wrong one, an empty one, and any while none is configured: 401', async () => {
    const { app } = build({ 'admin.api-key': KEY });
    expect(await call(app, `${KEY}k`)).toBe(401);
    expect(await call(build().app, KEY)).toBe(401);
    expect(await call(build().app, '')).toBe(401);
  });

  test('counts only where there is no Authorization', async () => {
    const { app } = build({ 'admin.api-key': KEY });
    const both = (password: string) => request(app).get('/plain').set('X-API-Key', KEY).auth('root', password);
    await both('root-password').expect(200);
    await both('wrong').expect(401);
  });

  test('too many wrong ones from an address are no longer looked at', async () => {
    const { app } = build({ 'admin.api-key': KEY });
    for (let time = 0; time < 10; time++) expect(await call(app, 'wrong')).toBe(401);
    expect(await call(app, KEY)).toBe(429);
  });

  test('shows who is known at the probes', async () => {
    const { app } = build({ 'admin.api-key': KEY });
    await request(app).get('/actuator/health').set('X-API-Key', KEY).expect(200);
    await request(app).get('/actuator/health').set('X-API-Key', 'wrong').expect(401);
  });
});
