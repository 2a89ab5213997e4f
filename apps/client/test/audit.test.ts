import { afterAll, expect, test } from '@jest/globals';
import { verifyAudit } from '@pesit-node/service';
import { usersOfRoles, withDatabase } from '@pesit-node/service/testing';
import request from 'supertest';

import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { CONTENT, useWorld } from './support/world.js';

const users = await usersOfRoles();
afterAll(() => {
  users.remove();
  expectNoSecrets();
});

interface Entry {
  readonly actor: string;
  readonly action: string;
  readonly objectType: string;
  readonly object: string;
  readonly details: string | null;
}

const entries = async (at: Service, query = ''): Promise<readonly Entry[]> =>
  ((await at.api.get(`/audit?sort=time,asc${query}`)).body as { content: readonly Entry[] }).content;

withDatabase((harness) => {
  const world = useWorld(harness);

  test('remote servers: before and after, and of a password that it changed; deleted ones, too', async () => {
    const at = await world.service();
    const id = await world.remote(at, 6502);
    await at.api.put(`/servers/${id}`, { port: 6503, password: 'xy#8kQ!v' });
    await at.api.put(`/servers/${id}`, { port: 6503 });
    await at.api.delete(`/servers/${id}`);
    const said = await entries(at, '&objectType=remote%20server');
    expect(said.map(({ actor, action, object }) => [actor, action, object])).toEqual([
      ['admin', 'created', String(id)],
      ['admin', 'changed', String(id)],
      ['admin', 'deleted', String(id)],
    ]);
    expect(JSON.parse(said[1]?.details ?? '')).toEqual({
      changes: { port: { before: 6502, after: 6503 }, password: { before: 'set', after: 'changed' } },
    });
    expect(JSON.stringify(said)).not.toContain('8kQ!v');
    expect((await verifyAudit(world.database().knex)).problems).toEqual([]);
  });

  test('who asked for a transfer is in its record; who cancels it is in the audit log, and how it ended', async () => {
    const at = await world.service({ config: { 'admin.users': users.path } });
    // Nobody answers there, and the first attempt is not the last.
    const id = await world.remote(at, 1);
    const as = (path: string) => request(at.app).post(`/api/v1/transfers/${path}`).auth('the-operator', 'of-each-role');
    const asked = { serverId: id, virtualFile: 'FILE', remoteFilename: 'hello', fileContent: CONTENT };
    const { body } = await as('send?wait=90').send(asked).expect(200);
    const first = body as { id: string; createdBy: string; status: string };
    expect(first).toMatchObject({ createdBy: 'the-operator', status: 'FAILED' });
    const replayed = await at.api.post(`/transfers/${first.id}/replay?wait=90`);
    expect(replayed.body).toMatchObject({ createdBy: 'admin', status: 'FAILED' });
    await as(`${first.id}/cancel`).expect(409);
    const said = await entries(at, `&objectType=transfer&object=${first.id}`);
    expect(said.map(({ actor, action }) => [actor, action])).toEqual([
      ['system', 'failed'],
      ['admin', 'replayed'],
      ['the-operator', 'cancelled'],
    ]);
    expect(JSON.parse(said[0]?.details ?? '')).toMatchObject({ direction: 'SEND', peer: 'bank' });
    expect(JSON.parse(said[2]?.details ?? '')).toMatchObject({ failed: expect.stringContaining('FAILED') as unknown });
  });
});
