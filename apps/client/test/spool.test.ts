import { readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { ProcessDirectory, SpaceReserve } from '@pesit-node/storage';

import { Spool } from '../src/transfers/spool.js';
import { refusal } from './support/partner.js';
import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { CONTENT, deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const DAY_MS = 86_400_000;
const NEVER = { completed: 1000 * DAY_MS, failed: 1000 * DAY_MS };

/** The contents that came with requests stay no longer than somebody may need them. */
withDatabase((harness) => {
  const world = useWorld(harness);

  const spoolOf = ({ data }: Service): Spool =>
    new Spool(join(data, 'send'), new ProcessDirectory(join(data, 'temp')), new SpaceReserve({ bytes: () => 0 }));
  const spooled = (service: Service): Promise<string[]> => readdir(join(service.data, 'send/spool'));
  const shown = async (service: Service, id: string) => (await service.api.get(`/transfers/${id}`)).body;
  /** As if the transfer had ended so many days ago. */
  const age = (id: string, days: number): Promise<unknown> => {
    const { knex } = world.database();
    return knex('transfers')
      .where({ id })
      .update({ end_time: knex.raw(`now() - interval '${days} days'`) });
  };
  const failing = () => {
    const state = { fails: true };
    const create = (): void => {
      if (state.fails) throw refusal('2-226', 'not today');
    };
    return { state, before: { create } };
  };

  describe('a transfer that is COMPLETED', () => {
    test('its content is removed at once, and a replay is a 409 that says so', async () => {
      const partner = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port);
      const record = await world.send(service);
      expect(record.status).toBe('COMPLETED');
      await until(async () => (await spooled(service)).length === 0);
      expect((await shown(service, record.id)).contentKept).toBe(false);
      const replay = await service.api.post(`/transfers/${record.id}/replay`);
      expect([replay.status, replay.body.error]).toEqual([409, 'CONFLICT']);
      expect(replay.body.message).toMatch(/content .* was removed .*spool\.retention/);
    });

    test('with spool.retention its content is kept so long, for replays; each has a content of its own', async () => {
      const partner = await world.partner();
      const service = await world.service({ config: { 'spool.retention': 2 } });
      await world.remote(service, partner.port);
      const first = await world.send(service);
      const replay = async () => (await service.api.post(`/transfers/${first.id}/replay?wait=90`)).body;
      const second = await replay();
      expect([first.contentKept, second.contentKept, second.status]).toEqual([true, true, 'COMPLETED']);
      expect((await spooled(service)).sort()).toEqual([first.id, second.id].sort());
      await age(first.id, 3);
      await service.exchange.leftovers.sweep();
      expect(await spooled(service)).toEqual([second.id]);
      expect((await service.api.post(`/transfers/${first.id}/replay`)).status).toBe(409);
      const third = await service.api.post(`/transfers/${second.id}/replay?wait=90`);
      expect(third.body.status).toBe('COMPLETED');
      expect(partner.written.map(({ content }) => content.toString())).toEqual(Array(3).fill('hello world'));
    });

    test("a file of the send tree is the operator's: it stays, and is replayed", async () => {
      const partner = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port);
      await writeFile(join(service.data, 'send/own.txt'), 'mine');
      const record = await world.send(service, { fileContent: undefined, filename: 'own.txt' });
      expect([record.status, record.contentKept]).toEqual(['COMPLETED', null]);
      await service.exchange.leftovers.sweep();
      expect((await service.api.post(`/transfers/${record.id}/replay?wait=90`)).body.status).toBe('COMPLETED');
    });
  });

  describe('a transfer that is FAILED or CANCELLED', () => {
    test('keeps its content for a retry; when that succeeds it goes', async () => {
      const { state, before } = failing();
      const partner = await world.partner({ before });
      const service = await world.service();
      await world.remote(service, partner.port);
      const record = await world.send(service);
      expect([record.status, record.contentKept]).toEqual(['FAILED', true]);
      await age(record.id, 6);
      await service.exchange.leftovers.sweep();
      state.fails = false;
      const again = await service.api.post(`/transfers/${record.id}/retry?wait=90`);
      expect(again.body.status).toBe('COMPLETED');
      await until(async () => (await spooled(service)).length === 0);
    });

    test('after spool.retention-failed it is removed; retry and replay are a 409 then', async () => {
      const { before } = failing();
      const partner = await world.partner({ before });
      const service = await world.service();
      await world.remote(service, partner.port);
      const failed = await world.send(service);
      await service.exchange.queue.stop(0);
      const waiting = (
        await service.api.post('/transfers/send', { server: 'bank', virtualFile: 'V', fileContent: CONTENT })
      ).body;
      const { body: cancelled } = await service.api.post(`/transfers/${waiting.id}/cancel`);
      expect(cancelled).toMatchObject({ status: 'CANCELLED', contentKept: true });
      for (const id of [failed.id, waiting.id]) await age(id, 8);
      await service.exchange.leftovers.sweep();
      expect(await spooled(service)).toEqual([]);
      for (const [id, verb] of [
        [failed.id, 'retry'],
        [failed.id, 'replay'],
        [waiting.id, 'replay'],
      ]) {
        const { status, body } = await service.api.post(`/transfers/${id}/${verb}`);
        expect([verb, status, body.message]).toEqual([verb, 409, expect.stringContaining('was removed')]);
      }
      expect(await shown(service, failed.id)).toMatchObject({ status: 'FAILED', contentKept: false });
    });

    test('with a retention of 0 it is removed at once', async () => {
      const { before } = failing();
      const partner = await world.partner({ before });
      const service = await world.service({ config: { 'spool.retention-failed': 0 } });
      await world.remote(service, partner.port);
      const record = await world.send(service);
      expect([record.status, record.contentKept]).toEqual(['FAILED', false]);
      await until(async () => (await spooled(service)).length === 0);
    });

    test('the replay of one sends its content although the first is removed meanwhile', async () => {
      const { state, before } = failing();
      const held = deferred();
      const partner = await world.partner({ before: { ...before, write: () => held.promise } });
      const service = await world.service();
      await world.remote(service, partner.port);
      const first = await world.send(service);
      state.fails = false;
      const { body: second } = await service.api.post(`/transfers/${first.id}/replay`);
      await until(() => Promise.resolve(partner.creates.length === 2));
      await age(first.id, 8);
      await service.exchange.leftovers.sweep();
      expect(await spooled(service)).toEqual([second.id]);
      const ended = service.exchange.queue.whenEnded(second.id, 20_000, new AbortController().signal);
      held.resolve();
      expect((await ended)?.status).toBe('COMPLETED');
      expect(partner.written[0]?.content.toString()).toBe('hello world');
    });
  });

  describe('whatever else happens', () => {
    test('a transfer that waits or runs keeps its content, however old', async () => {
      const service = await world.service({ settings: { stagingRetention: 0 } });
      await world.remote(service, 1);
      await service.exchange.queue.stop(0);
      const { body } = await service.api.post('/transfers/send', {
        server: 'bank',
        virtualFile: 'V',
        fileContent: CONTENT,
      });
      await service.exchange.leftovers.sweep();
      expect(await spooled(service)).toEqual([body.id]);
    });

    test('a process that was killed between the record and the removal: the next sweep removes the content', async () => {
      const partner = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port);
      const record = await world.send(service);
      await until(async () => (await spooled(service)).length === 0);
      await writeFile(join(service.data, 'send/spool', record.id), 'hello world');
      await service.exchange.leftovers.sweep();
      expect(await spooled(service)).toEqual([]);
    });

    test('a process that was killed before it marked the content: the sweep of any pod does both', async () => {
      const partner = await world.partner();
      const service = await world.service({ settings: { spoolRetention: NEVER } });
      await world.remote(service, partner.port);
      const record = await world.send(service);
      const other = await world.service({ node: 'other', data: service.data });
      await other.exchange.leftovers.sweep();
      expect(await spooled(service)).toEqual([]);
      expect((await shown(service, record.id)).contentKept).toBe(false);
    });

    test('a retry and a removal at the same time: the content is there, or the retry is refused', async () => {
      const { before } = failing();
      const partner = await world.partner({ before });
      const service = await world.service();
      await world.remote(service, partner.port);
      const ids: string[] = [];
      for (let n = 0; n < 5; n++) ids.push((await world.send(service)).id as string);
      await service.exchange.queue.stop(0);
      for (const id of ids) await age(id, 8);
      const [, ...retried] = await Promise.all([
        service.exchange.leftovers.sweep(),
        ...ids.map((id) => service.api.post(`/transfers/${id}/retry`)),
      ]);
      const left = await spooled(service);
      expect(retried.map(({ status }) => status)).toEqual(ids.map((id) => (left.includes(id) ? 202 : 409)));
    });

    test('a content that is shared for a replay just now is no leftover, however old it is', async () => {
      const service = await world.service();
      const path = join(service.data, 'send/spool');
      const id = '00000000-0000-4000-8000-000000000001';
      const { path: stored } = await spoolOf(service).store(id, [Buffer.from('x')]);
      const old = new Date(Date.now() - 8 * DAY_MS);
      await utimes(stored, old, old);
      await spoolOf(service).share(id, id.replace(/1$/, '2'));
      await rm(join(path, id));
      expect((await stat(join(path, id.replace(/1$/, '2')))).mtime.getTime()).toBe(old.getTime());
      await service.exchange.leftovers.sweep();
      expect(await spooled(service)).toEqual([id.replace(/1$/, '2')]);
    });

    test('an upload that was never queued is removed after transfer.staging-retention', async () => {
      const service = await world.service({ settings: { stagingRetention: 0 } });
      await spoolOf(service).store('00000000-0000-4000-8000-000000000001', [Buffer.from('x')]);
      await service.exchange.leftovers.sweep();
      expect(await spooled(service)).toEqual([]);
    });

    test('contents of the spool cannot be sent by their file name', async () => {
      const service = await world.service();
      await world.remote(service, 1);
      const id = '00000000-0000-4000-8000-000000000001';
      await spoolOf(service).store(id, [Buffer.from('x')]);
      for (const filename of [`spool/${id}`, `./spool/${id}`, join(service.data, 'send/spool', id), 'spool/other']) {
        const { status, body } = await service.api.post('/transfers/send', {
          server: 'bank',
          virtualFile: 'V',
          filename,
        });
        expect([status, body.details?.[0]]).toEqual([
          400,
          { field: 'filename', message: expect.stringContaining('spool holds what came') },
        ]);
      }
    });
  });
});
