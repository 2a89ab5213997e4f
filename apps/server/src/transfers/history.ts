import { containing, equal, givenConditions } from '@pesit-node/service';
import type { HistoryTable, SummedTable } from '@pesit-node/service';

import type { HistoryFilter } from './schema.js';

/** The inbound history as it is listed: filters, and the indexes of migration 0024. */
export const HISTORY: HistoryTable<HistoryFilter> = {
  table: 'transfers',
  time: { field: 'startTime', column: 'start_time' },
  id: { column: 'id', type: 'bigint' },
  conditions: (filter) =>
    givenConditions({
      partnerId: equal('partner_id', filter.partnerId),
      virtualFileId: equal('virtual_file_id', filter.virtualFileId),
      listener: equal('listener', filter.listener),
      direction: equal('direction', filter.direction),
      type: equal('type', filter.type),
      status: equal('status', filter.status),
      restartable: equal('restartable', filter.restartable),
      diagnostic: equal('diagnostic', filter.diagnostic),
      node: equal('node', filter.node),
      q: containing(['filename', 'label'], filter.q),
    }),
  ways: [
    { serves: ['status'], when: ({ status }) => status === 'PENDING' || status === 'IN_PROGRESS' },
    { serves: ['restartable'], when: ({ restartable }) => restartable === true, arms: ['restartable'] },
    { serves: ['type'], when: ({ type }) => type === 'MESSAGE', arms: [`type = 'MESSAGE'`] },
    { serves: ['diagnostic'], when: ({ diagnostic }) => diagnostic !== '0-000' },
    { serves: ['status'], when: ({ status }) => status === 'FAILED' || status === 'CANCELLED' },
    { serves: ['partnerId'] },
    { serves: ['virtualFileId'] },
    { serves: ['direction'] },
    { serves: [], arms: [`direction = 'SEND'`, `direction = 'RECEIVE'`] },
  ],
};

/** The same, as it is added up. */
export const SUMMED: SummedTable<HistoryFilter> = {
  history: HISTORY,
  dimensions: {
    partner: { column: 'partner_id', filter: 'partnerId' },
    server: { column: 'listener', filter: 'listener' },
    virtualFile: { column: 'virtual_file_id', filter: 'virtualFileId' },
    node: { column: 'node', filter: 'node' },
    type: { column: 'type', filter: 'type' },
  },
  began: 'start_time',
  unfinished: [`status in ('PENDING', 'IN_PROGRESS')`],
};
