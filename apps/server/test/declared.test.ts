import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { captureLog, emptyTables, freePort, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { MIGRATIONS } from '../src/migrations/index.js';
import { PASSWORD, TestNode, until } from './support/node.js';
import type { UseNodeOptions } from './support/node.js';
import { passwords } from './support/passwords.js';

const OTHER = 'wY4!mM7q';
const FILE = '/etc/pesit/config/pesit.yaml';

type Item = Readonly<Record<string, unknown>>;

withDatabase((harness) => {
  const log = captureLog();
  let database: TestDatabase;
  let data: string;
  let port: number;
  const nodes: TestNode[] = [];
  const audited: string[] = [];
  /** What the file holds: `again` reads it once more. */
  const file: Record<'partners' | 'files' | 'servers', Item[]> = { partners: [], files: [], servers: [] };

  const write = (lists: Partial<Record<keyof typeof file, readonly Item[]>>): void => {
    for (const name of ['partners', 'files', 'servers'] as const)
      file[name].splice(0, Infinity, ...(lists[name] ?? []));
  };
  const node = async (options: UseNodeOptions = {}): Promise<TestNode> => {
    const one = new TestNode(database, data, log, { settings: file, configFile: FILE, ...options });
    nodes.push(one);
    await one.start();
    return one;
  };
  const results = () =>
    log
      .entries()
      .filter(({ msg }) => String(msg).startsWith('configuration file applied')) as unknown as readonly Item[];
  const result = () => results().at(-1)?.['msg'];
  const again = async (one: TestNode): Promise<void> => {
    const before = results().length;
    one.node.reloaded();
    await until(() => (results().length > before ? true : undefined));
  };
  const entries = (): Promise<readonly Item[]> =>
    database
      .knex('audit_entries')
      .where('actor', 'configuration file')
      .orderBy('id')
      .select<Item[]>('address', 'action', 'object_type', 'object');
  const listener = (more: Item = {}): Item => ({ serverId: 'NODE1', port, ...more });

  beforeAll(async () => {
    database = await harness.open({ migrations: [MIGRATIONS] });
  });
  beforeEach(async () => {
    await emptyTables(database, 'pesit_server');
    data = join(await mkdtemp(join(tmpdir(), 'pesit-declared-')), 'data');
    await mkdir(data);
    port = await freePort();
  });
  afterEach(async () => {
    for (const one of nodes.splice(0).reverse()) await one.stop();
    audited.push(...(await database.knex('audit_entries').pluck('details')));
    await rm(dirname(data), { recursive: true, force: true });
  });
  afterAll(() => {
    const said = [...log.lines, ...audited].join('\n');
    for (const secret of [PASSWORD, OTHER, '$scrypt$']) expect(said).not.toContain(secret);
  });

  const partner = (id: string) => database.knex('partners').where('partner_id', id).first<Item | undefined>();

  describe('the lists of the configuration file', () => {
    test('partners, files, servers: a node is ready when it has what they declare, and a file crosses', async () => {
      write({
        partners: [
          { id: 'ACME', password: PASSWORD, accessType: 'WRITE' },
          { partnerId: 'BETA', password: OTHER },
        ],
        files: [{ id: 'INBOX', direction: 'RECEIVE', receiveDirectory: 'INBOX/in' }],
        servers: [listener(), { name: 'bank', host: 'bank.example', serverId: 'BANK', clientId: 'NODE1' }],
      });
      const one = await node();
      expect(result()).toBe('configuration file applied: 4 created, 0 changed, 0 unchanged, 0 refused');
      const made = await entries();
      expect(made.map(({ object_type }) => object_type)).toEqual(['virtual file', 'partner', 'partner', 'listener']);
      expect(made.map(({ object }) => object).sort()).toEqual(['ACME', 'BETA', 'INBOX', 'NODE1']);
      expect(made.every(({ address, action }) => address === FILE && action === 'created')).toBe(true);
      const { code, components } = await one.readiness();
      const details = { applied: 4, refused: 0 };
      expect([code, components['configurationFile']]).toEqual([200, { status: 'UP', details }]);
      one.port = port;
      await one.send(await one.connect(), 'INBOX', Buffer.from('declared'));
      expect((await one.received('INBOX')).map(String)).toEqual(['declared']);
    });

    test('applied twice change nothing: no entry, no revision, no other hash, no session ends', async () => {
      write({
        partners: [{ id: 'ACME', password: PASSWORD, preconnectId: 'PRE', preconnectPassword: OTHER }],
        files: [{ id: 'INBOX', receiveDirectory: 'INBOX/in' }],
        servers: [listener()],
      });
      const one = await node();
      await one.call('put', '/api/v1/config/partners/ACME', { preconnectId: null });
      await again(one);
      const state = async () => ({
        partners: await database.knex('partners').select('password_hash', 'credentials', 'updated_at', 'preconnect_id'),
        listeners: await database.knex('listeners').select('revision', 'generation', 'updated_at'),
        files: await database.knex('virtual_files').select('updated_at'),
        entries: (await entries()).length,
      });
      const before = await state();
      expect(before.partners).toMatchObject([{ preconnect_id: 'PRE' }]);
      const [read] = await database.knex('partners').select('preconnect_password_hash as hash');
      expect(await passwords.verify(OTHER, (read as { hash: string }).hash)).toBe(true);
      await again(one);
      await one.restart();
      expect(result()).toBe('configuration file applied: 0 created, 0 changed, 3 unchanged, 0 refused');
      expect(await state()).toEqual(before);
    });

    test('win over what REST has set, where they say or leave out a field; a password only when it is another one', async () => {
      write({ partners: [{ id: 'ACME', name: 'Acme', password: PASSWORD }], servers: [listener()] });
      const one = await node();
      one.port = port;
      await one.call('put', '/api/v1/config/partners/ACME', {
        ...{ name: 'other', description: 'd', enabled: false, maxConnections: 3, password: OTHER },
      });
      await again(one);
      expect(result()).toBe('configuration file applied: 0 created, 1 changed, 1 unchanged, 0 refused');
      expect(await one.call('get', '/api/v1/config/partners/ACME')).toMatchObject({
        ...{ name: 'Acme', description: null, enabled: true, maxConnections: null },
      });
      // The password that was set since is not taken back by a file that says nothing new.
      const session = await one.connect({ password: OTHER });
      write({ partners: [{ id: 'ACME', name: 'Acme', password: 'n3w~Pass' }], servers: [listener()] });
      await again(one);
      await expect(one.send(session, 'INBOX', Buffer.from('x'))).rejects.toMatchObject({ diagnostic: '3-304' });
      await expect(one.connect({ password: OTHER })).rejects.toMatchObject({ diagnostic: '3-304' });
      await one.connect({ password: 'n3w~Pass' });
      // One that REST has made is known by its password, and its sessions stay.
      await one.call('post', '/api/v1/config/partners', { id: 'BETA', password: PASSWORD });
      const credentials = (await partner('BETA'))?.['credentials'];
      write({ partners: [{ id: 'BETA', password: PASSWORD, name: 'Beta' }], servers: [listener()] });
      await again(one);
      expect(await partner('BETA')).toMatchObject({ credentials, name: 'Beta' });
    });

    test('leave alone what they do not name; one that was deleted is created again', async () => {
      write({ partners: [{ id: 'ACME', password: PASSWORD }], files: [{ id: 'INBOX' }] });
      const one = await node();
      await one.call('post', '/api/v1/config/partners', { id: 'BETA', password: PASSWORD });
      await one.call('delete', '/api/v1/config/partners/ACME');
      await again(one);
      expect(result()).toBe('configuration file applied: 1 created, 0 changed, 1 unchanged, 0 refused');
      write({ files: [{ id: 'INBOX', overwrite: true }] });
      await again(one);
      const ids = await database.knex('partners').orderBy('partner_id').pluck('partner_id');
      expect(ids).toEqual(['ACME', 'BETA']);
      expect(await one.call('get', '/api/v1/config/files/INBOX')).toMatchObject({ overwrite: true });
    });
  });

  describe('an item that is refused', () => {
    test('keeps no other from being applied; it is said, counted, shown, and applied when it is possible', async () => {
      const secret = join(data, 'beta');
      write({
        partners: [
          { id: 'ALPHA' },
          { id: 'ACME', password: PASSWORD },
          { id: 'BETA', passwordFile: secret },
          { id: 'SHORT', password: 'ab1' },
        ],
        files: [{ id: 'OUTSIDE', receiveDirectory: '/nowhere/in' }, { id: 'INBOX' }],
        servers: [listener({ sslEnabled: true, keystoreName: 'front' }), listener({ serverId: 'NODE2' })],
      });
      const one = await node({ settings: { ...file, 'password.min-length': 4 }, declaredRetryMs: 5 });
      expect(result()).toBe('configuration file applied: 3 created, 0 changed, 0 unchanged, 5 refused');
      const reasons = log
        .entries()
        .filter(({ msg }) => String(msg).endsWith('is refused, the others are applied'))
        .map(({ object, reasons: all }) => [object, ...(all as string[])].join(' '));
      expect(reasons.sort()).toEqual([
        'ALPHA partners[0].password: required: expected 1 to 8 printable ASCII characters (PI 5): a partner cannot connect without',
        `BETA partners[2].passwordFile: ${secret} cannot be read (ENOENT): mount it, or put password in its place`,
        expect.stringMatching(/^NODE1 servers\[0\].*keystore "front"/),
        expect.stringMatching(/^OUTSIDE files\[0\]\.receiveDirectory: .*storage\.roots/),
        'SHORT partners[3].password: expected at least 4 characters: password.min-length of the configuration',
      ]);
      const { code } = await one.readiness();
      expect(code).toBe(200);
      expect(await one.call('get', '/actuator/health')).toMatchObject({
        components: { configurationFile: { status: 'UP', details: { applied: 3, refused: 5 } } },
      });
      expect(await one.text('get', '/metrics')).toMatch(/^pesit_declared_objects\{outcome="refused"\} 5$/m);
      await writeFile(secret, `${OTHER}\n`);
      await until(async () => ((await partner('BETA')) === undefined ? undefined : true));
      expect(await passwords.verify(OTHER, (await partner('BETA'))?.['password_hash'] as string)).toBe(true);
    });
  });

  describe('pods that start together', () => {
    test('apply the same file once', async () => {
      write({
        partners: Array.from({ length: 20 }, (_, index) => ({ id: `P${index}`, password: PASSWORD })),
        files: [{ id: 'INBOX' }],
        servers: [listener()],
      });
      const pods = ['127.0.0.2', '127.0.0.3'].map(async (host, index) => {
        const own = await harness.another(database);
        const settings = { ...file, 'listener.host': host };
        const one = new TestNode(own, data, log, { settings, configFile: FILE, node: `pod-${index}`, answerMs: 0 });
        nodes.push(one);
        await one.start();
      });
      const before = results().length;
      await Promise.all(pods);
      expect(
        results()
          .slice(before)
          .map(({ msg }) => msg)
          .sort(),
      ).toEqual([
        'configuration file applied: 0 created, 0 changed, 22 unchanged, 0 refused',
        'configuration file applied: 22 created, 0 changed, 0 unchanged, 0 refused',
      ]);
      expect(await entries()).toHaveLength(22);
    });
  });
});
