import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventStream } from '@pesit-node/service';
import type { EventStream } from '@pesit-node/service';
import { captureLog } from '@pesit-node/service/testing';
import type { Knex } from 'knex';

import { logExchange } from '../src/observers/exchange-log.js';
import { Completions } from '../src/transfers/completions.js';
import { Outbox } from '../src/transfers/outbox.js';

const away = () => Object.assign(new Error('the database system is starting up'), { code: '57P03' });

let log: ReturnType<typeof captureLog>;
let events: EventStream;

beforeEach(() => {
  log = captureLog();
  events = eventStream({ app: 'server', node: 'node-a' }, log.logger);
  logExchange(events, log.logger);
});
afterEach(() => {
  events.close();
});

const outboxOver = (whenReady: Promise<void> = Promise.resolve(), ready = true): Outbox =>
  new Outbox({ database: { ready, whenReady: () => whenReady }, events });

test('a database that is away while a transfer ends is said once, however often it is tried again', async () => {
  let attempts = 0;
  const client = {
    acquireConnection: () => Promise.resolve({}),
    releaseConnection: () => Promise.resolve(),
    query: () => {
      attempts += 1;
      return attempts === 4 ? Promise.resolve({ response: { rows: [{ id: 7 }] } }) : Promise.reject(away());
    },
    emit: () => true,
  };
  const completions = new Completions({ knex: { client } as unknown as Knex, events, outbox: outboxOver() });
  const totals = { dataBytes: 1, articles: 1, syncPoint: 0 };
  const file = { size: 1, checksum: undefined, path: '/f', filename: 'f', compression: 'none' } as const;
  await completions.complete({ id: 7, fence: 1 }, { ...totals, ...file }, completions.deadline());
  expect(log.entries().map(({ level, transfer, reason }) => [level, transfer, reason])).toEqual([
    ['warn', 7, 'the database system is starting up'],
    ['debug', 7, 'the database system is starting up'],
    ['debug', 7, 'the database system is starting up'],
  ]);
});

test('a record that the database refuses is given up with its reason, and the next one is written', async () => {
  const outbox = outboxOver();
  const written: string[] = [];
  const write = (what: string) => () => Promise.resolve(void written.push(what));
  await Promise.all([
    outbox.add('refused transfer', () => Promise.reject(new Error('value too long'))),
    outbox.add('completed transfer', write('second')),
  ]);
  expect(written).toEqual(['second']);
  expect(log.entries()).toMatchObject([
    { level: 'error', what: 'refused transfer', err: { message: 'value too long' } },
  ]);
});

test('more than 10,000 records that wait for the database: one more is lost, and said to be', async () => {
  let back: () => void = () => undefined;
  const outbox = outboxOver(new Promise<void>((resolve) => (back = resolve)), false);
  let attempts = 0;
  const waiting = Array.from({ length: 10_000 }, () =>
    outbox.add('completed transfer', () => (attempts++ === 0 ? Promise.reject(away()) : Promise.resolve())),
  );
  await outbox.add('refused transfer', () => Promise.reject(new Error('is never called')));
  expect(log.entries()).toMatchObject([{ level: 'error', what: 'refused transfer', waiting: 10_000 }]);
  back();
  await Promise.all(waiting);
  expect(attempts).toBe(10_001);
});
