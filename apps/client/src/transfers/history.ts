import { containing, equal, givenConditions } from '@pesit-node/service';
import type { HistoryTable, SummedTable } from '@pesit-node/service';

import { PENDING_PARTS } from './row.js';
import type { HistoryFilter } from './schema.js';

/** The outbound history as it is listed: filters, and the indexes of migration 0019 and of the queue. */
export const HISTORY: HistoryTable<HistoryFilter> = {
  table: 'transfers',
  time: { field: 'createdTime', column: 'created_time' },
  id: { column: 'id', type: 'uuid' },
  conditions: (filter) =>
    givenConditions({
      serverId: equal('server_id', filter.serverId),
      partnerId: equal('partner_id', filter.partnerId),
      virtualFileId: equal('virtual_file', filter.virtualFileId),
      direction: equal('direction', filter.direction),
      type: equal('type', filter.type),
      status: equal('status', filter.status),
      restartable: equal('restartable', filter.restartable),
      diagnostic: equal('diagnostic', filter.diagnostic),
      node: equal('node', filter.node),
      q: containing(['filename', 'remote_filename', 'label', `settings->>'label'`], filter.q, [
        ...['filename', 'remote_filename', 'label', 'settings'],
      ]),
    }),
  ways: [
    { serves: ['status'], when: ({ status }) => status === 'IN_PROGRESS', arms: [`status = 'IN_PROGRESS'`] },
    { serves: ['restartable'], when: ({ restartable }) => restartable === true, arms: ['restartable'] },
    { serves: ['type'], when: ({ type }) => type === 'MESSAGE', arms: [`type = 'MESSAGE'`] },
    {
      serves: ['status'],
      when: ({ status }) => status === 'PENDING',
      arms: PENDING_PARTS.map((part) => `status = 'PENDING' and ${part}`),
    },
    { serves: ['diagnostic'], when: ({ diagnostic }) => diagnostic !== '0-000' },
    { serves: ['status'], when: ({ status }) => status === 'FAILED' || status === 'CANCELLED' },
    { serves: ['serverId'] },
    { serves: ['direction'] },
    { serves: [], arms: [`direction = 'SEND'`, `direction = 'RECEIVE'`] },
  ],
};

/** The same, as it is added up. */
export const SUMMED: SummedTable<HistoryFilter> = {
  history: HISTORY,
  dimensions: {
    partner: { column: 'partner_id', filter: 'partnerId' },
    server: { column: 'server_id', filter: 'serverId' },
    virtualFile: { column: 'virtual_file', filter: 'virtualFileId' },
    node: { column: 'node', filter: 'node' },
    type: { column: 'type', filter: 'type' },
  },
  began: 'start_time',
  unfinished: [
    `status = 'IN_PROGRESS'`,
    `status = 'PENDING' and next_attempt_at is null`,
    `status = 'PENDING' and next_attempt_at is not null`,
  ],
};
