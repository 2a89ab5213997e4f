import { expect, test } from '@jest/globals';
import { captureLog } from '@pesit-node/service/testing';
import type { Knex } from 'knex';

import { Completions } from '../src/transfers/completions.js';
import { Outbox } from '../src/transfers/outbox.js';

test('a database that is away while a transfer ends is said once, however often it is tried again', async () => {
  let attempts = 0;
  const options = (): Promise<{ readonly rows: readonly object[] }> => {
    attempts += 1;
    if (attempts === 4) return Promise.resolve({ rows: [{ id: 7 }] });
    return Promise.reject(Object.assign(new Error('the database system is starting up'), { code: '57P03' }));
  };
  const raw = () => ({ options });
  const log = captureLog();
  const outbox = new Outbox({ database: { ready: true, whenReady: () => Promise.resolve() }, logger: log.logger });
  const completions = new Completions({ knex: { raw } as unknown as Knex, logger: log.logger, outbox });
  const totals = { dataBytes: 1, articles: 1, syncPoint: 0 };
  const file = { size: 1, checksum: undefined, path: '/f', filename: 'f', compression: 'none' } as const;
  await completions.complete({ id: 7, fence: 1 }, { ...totals, ...file }, completions.deadline());
  expect(log.entries().map(({ level, transfer, reason }) => [level, transfer, reason])).toEqual([
    ['warn', 7, 'the database system is starting up'],
    ['debug', 7, 'the database system is starting up'],
    ['debug', 7, 'the database system is starting up'],
  ]);
});
