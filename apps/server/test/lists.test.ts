/** Lists of what is configured: all in one list, or page by page; by words, and by values of fields. */
import { beforeEach, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { faultyFields, useRest } from './support/rest.js';

interface Page {
  readonly content: readonly Readonly<Record<string, unknown>>[];
}

withDatabase((harness) => {
  const rest = useRest(harness);

  beforeEach(async () => {
    const partner = (partnerId: string, fields: object) =>
      rest.database
        .knex('partners')
        .insert({ partner_id: partnerId, password_hash: 'x', access_type: 'BOTH', ...fields });
    // Not in the order of their identifiers.
    await partner('P3', { enabled: true, name: 'Banque 50%' });
    await partner('P1', { enabled: true, name: 'Acme' });
    await partner('b', { enabled: false, description: 'of the BANK_1' });
    await partner('P2', { enabled: true, name: null });
    for (const [fileId, direction, enabled] of [
      ['OUT', 'SEND', true],
      ['IN', 'RECEIVE', true],
      ['OLD', 'RECEIVE', false],
    ] as const)
      await rest.post('/api/v1/config/files', { fileId, direction, enabled, description: `the ${direction}` });
    for (const [serverId, port] of [
      ['NODE2', 7001],
      ['NODE1', 7002],
    ] as const)
      await rest.post('/api/v1/servers?start=false', { serverId, port });
    await rest.database.knex('listeners').where('server_id', 'NODE2').update({ wanted: true });
  });

  const CASES: readonly (readonly [path: string, key: string, query: string, ids: string])[] = [
    ['config/partners', 'partnerId', '', 'P1 P2 P3 b'],
    ['config/partners', 'partnerId', '?q=BAN', 'P3 b'],
    // No pattern: what it looks for is there as it stands.
    ['config/partners', 'partnerId', '?q=%25', 'P3'],
    ['config/partners', 'partnerId', '?q=_', 'b'],
    ['config/partners', 'partnerId', '?enabled=false', 'b'],
    ['config/partners', 'partnerId', '?enabled=true&q=p', 'P1 P2 P3'],
    ['config/partners', 'partnerId', '?q=nobody', ''],
    ['config/files', 'fileId', '', 'IN OLD OUT'],
    ['config/files', 'fileId', '?direction=RECEIVE&enabled=true', 'IN'],
    ['config/files', 'fileId', '?q=receive', 'IN OLD'],
    ['servers', 'serverId', '', 'NODE1 NODE2'],
    ['servers', 'serverId', '?wanted=true', 'NODE2'],
    ['servers', 'serverId', '?q=e1', 'NODE1'],
  ];
  test('without a page: all that are asked for, as a list', async () => {
    for (const [path, key, query, ids] of CASES) {
      const { body } = await rest.get(`/api/v1/${path}${query}`);
      const found = (body as Page['content']).map((one) => one[key]).join(' ');
      expect([path, query, found]).toEqual([path, query, ids]);
    }
  });

  const PAGES: readonly (readonly [
    path: string,
    key: string,
    query: string,
    ids: string,
    envelope: readonly number[],
  ])[] = [
    ['config/partners', 'partnerId', '?size=3', 'P1 P2 P3', [4, 2, 0, 3]],
    ['config/partners', 'partnerId', '?page=1&size=3', 'b', [4, 2, 1, 3]],
    ['config/partners', 'partnerId', '?page=7', '', [4, 1, 7, 20]],
    ['config/partners', 'partnerId', '?q=ban&size=1&page=1', 'b', [2, 2, 1, 1]],
    ['config/partners', 'partnerId', '?q=nobody&page=0', '', [0, 0, 0, 20]],
    ['config/files', 'fileId', '?page=0&direction=RECEIVE', 'IN OLD', [2, 1, 0, 20]],
    ['servers', 'serverId', '?page=1&size=1', 'NODE2', [2, 2, 1, 1]],
  ];
  test('with page or size: the page envelope', async () => {
    for (const [path, key, query, ids, [totalElements, totalPages, number, size]] of PAGES) {
      const { body } = await rest.get(`/api/v1/${path}${query}`);
      const { content, ...envelope } = body as Page;
      const found = { path, query, ids: content.map((one) => one[key]).join(' '), envelope };
      expect(found).toEqual({ path, query, ids, envelope: { totalElements, totalPages, number, size } });
    }
  });

  test('what cannot be asked for is refused by its name', async () => {
    for (const [query, field] of [
      ['size=0', 'size'],
      ['size=501', 'size'],
      ['page=-1', 'page'],
      ['q=', 'q'],
      ['q=%00', 'q'],
      ['enabled=yes', 'enabled'],
      ['password=x', 'password'],
    ] as const) {
      const response = await rest.get(`/api/v1/config/partners?${query}`);
      expect([query, response.status, faultyFields(response)]).toEqual([query, 400, [field]]);
    }
  });
});
