/** Uploads on their way lie in the temp tree: whole, they become contents of the spool, from whatever volume. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';
import { ProcessDirectory } from '@pesit-node/storage';

import { AUTHORIZATION, expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

const sandbox = async (parent = tmpdir()): Promise<string> => {
  const path = await mkdtemp(join(parent, 'pesit-uploads-'));
  cleanups.push(() => rm(path, { recursive: true, force: true }));
  return path;
};

const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);

withDatabase((harness) => {
  const world = useWorld(harness);

  /** An upload whose first piece has come in. */
  const begin = async (service: Service, temp: string) => {
    const request = httpRequest({
      ...{ port: service.http.port, host: '127.0.0.1', method: 'POST', agent: false },
      path: '/api/v1/transfers/send?server=bank&virtualFile=V&wait=90',
      headers: { Authorization: AUTHORIZATION, 'Content-Type': 'application/octet-stream' },
    });
    request.on('error', () => undefined);
    request.write('abc');
    await until(async () => (await readdir(temp, { recursive: true })).some((name) => name.endsWith('.part')));
    return request;
  };

  test('what comes in is in the temp tree, for this account alone, and whole it is in the spool', async () => {
    const partner = await world.partner();
    const service = await world.service({ config: { 'spool.retention': 1 } });
    await world.remote(service, partner.port);
    const temp = join(service.data, 'temp');
    const upload = await begin(service, temp);
    expect(await world.filesIn(service, 'send')).toEqual([]);
    const [own] = await readdir(temp);
    expect([await modeOf(temp), await modeOf(join(temp, own!))]).toEqual(['700', '700']);
    upload.end('def');
    const [response] = (await once(upload, 'response')) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(200);
    expect(partner.written.map(({ content }) => String(content))).toEqual(['abcdef']);
    expect([await world.filesIn(service, 'temp'), await world.filesIn(service, 'send')]).toEqual([
      [],
      [expect.stringMatching(/^[0-9a-f-]{36}$/)],
    ]);
    await service.stop();
    // The directory of the process goes with it; `stop` has removed the rest of the data.
    expect(existsSync(join(temp, own!))).toBe(false);
  });

  test('an upload that is cut off leaves nothing behind', async () => {
    const service = await world.service();
    await world.remote(service, 9);
    const upload = await begin(service, join(service.data, 'temp'));
    upload.destroy();
    await until(async () => (await world.filesIn(service, 'temp')).length === 0);
    expect(await world.filesIn(service, 'send')).toEqual([]);
  });

  test('a temp tree that was cleaned away while the service runs is made again', async () => {
    const partner = await world.partner();
    const service = await world.service();
    await world.remote(service, partner.port);
    const temp = join(service.data, 'temp');
    for (const name of await readdir(temp)) await rm(join(temp, name), { recursive: true });
    expect(await world.send(service)).toMatchObject({ status: 'COMPLETED' });
  });

  test('from another volume an upload is copied, flushed and named; nothing of it stays there', async () => {
    const elsewhere = await sandbox('/dev/shm');
    if ((await stat(elsewhere)).dev === (await stat(tmpdir())).dev) {
      console.log('left out: /dev/shm is on the volume of the temporary directory');
      return;
    }
    const partner = await world.partner();
    const config = { 'data.temp-directory': join(elsewhere, 'temp'), 'spool.retention': 1 };
    const service = await world.service({ config });
    await world.remote(service, partner.port);
    const content = Buffer.alloc(300_000, 'content ');
    const record = await world.send(service, { fileContent: content.toString('base64') });
    expect(record).toMatchObject({ status: 'COMPLETED', size: 300_000 });
    expect(partner.written[0]!.content.equals(content)).toBe(true);
    expect(await world.filesIn(service, 'send')).toEqual([record.id]);
    const [own] = await readdir(join(elsewhere, 'temp'));
    const left = await readdir(join(elsewhere, 'temp', own!), { recursive: true });
    expect(left.filter((name) => name !== '.pesit')).toEqual([]);
    expect((await readdir(join(service.data, 'send'))).sort()).toEqual(['.pesit', 'spool']);
  });

  test('a temp tree that cannot be made ends the start, in words', async () => {
    const directory = await sandbox();
    await writeFile(join(directory, 'file'), '');
    const path = join(directory, 'file/temp');
    await expect(world.service({ config: { 'data.temp-directory': path } })).rejects.toThrow(
      `data.temp-directory ${path} cannot be used`,
    );
  });
});

describe('what dead processes left', () => {
  /** A process that has ended: its id is free, or another's with another start. */
  const dead = spawnSync(process.execPath, ['-e', '']).pid;
  const nameOf = ({ pid, machine }: { readonly pid: number; readonly machine: string }): string =>
    `upload-${pid}-1-${machine}-00000000`;

  test('is removed at the start of the next one, and nothing else', async () => {
    const root = await sandbox();
    const living = new ProcessDirectory(root);
    await living.prepare(0);
    const [own] = await readdir(root);
    const machine = own!.split('-')[3]!;
    const ofTheDead = nameOf({ pid: dead, machine });
    const [old, fresh] = ['aaaaaaaaaaaa', 'bbbbbbbbbbbb'].map((other) => nameOf({ pid: 1, machine: other }));
    for (const name of [ofTheDead, old!, fresh!, 'reports']) {
      await mkdir(join(root, name));
      await writeFile(join(root, name, 'x.part'), 'abc');
    }
    const past = new Date(Date.now() - 3_600_000);
    await utimes(join(root, old!), past, past);
    await mkdir(join(root, 'target'));
    await symlink('target', join(root, nameOf({ pid: dead, machine }).replace('00000000', '00000001')));
    const next = new ProcessDirectory(root);
    expect([...(await next.prepare(60_000))].sort()).toEqual([ofTheDead, old].sort());
    const left = await readdir(root);
    expect(left).toEqual(expect.arrayContaining([own, fresh, 'reports', 'target']));
    expect(left).toHaveLength(6);
    await next.remove();
    await living.remove();
  });
});
