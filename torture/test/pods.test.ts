import { createHash } from 'node:crypto';
import { createServer, connect, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from '@jest/globals';
import { parseOptions } from '../src/options.js';
import { Gateway } from '../src/pods/gateway.js';
import { overlaps, type Sample } from '../src/pods/leader-round.js';
import { faultsOf, growthOf, type QueuedRecord } from '../src/pods/queue-round.js';

const said = (pod: string, from: number, leads: boolean): Sample => ({ pod, from, to: from + 5, leads });

test.each<[string, readonly Sample[], readonly string[]]>([
  ['one leads', [said('a', 0, true), said('b', 2, false), said('a', 10, true)], []],
  ['one leads after the other', [said('a', 0, true), said('b', 10, true), said('a', 20, false)], []],
  [
    'one said nothing in between: it led all the while',
    [said('a', 0, true), said('b', 10, true), said('a', 20, true)],
    ['a and b'],
  ],
  ['answers that cross prove nothing', [said('a', 0, true), said('b', 3, true), said('a', 10, false)], []],
  [
    'it stood still, and says no when it continues',
    [said('a', 0, true), said('b', 10, true), said('b', 30, true), said('a', 40, false), said('a', 50, false)],
    [],
  ],
  [
    'it led again later',
    [said('a', 0, true), said('a', 10, false), said('b', 20, true), said('b', 30, false), said('a', 40, true)],
    [],
  ],
])('two leaders: %s', (_, samples, found) => {
  expect(overlaps(samples)).toEqual(found);
});

test('rounds of processes have three pods of the server app', () => {
  expect(parseOptions(['--rolling', 'kill', '--seed', '1'])).toMatchObject({
    ...{ rolling: 'kill', listeners: 'all', pods: 3, rounds: 1, transfers: 300, leaderRounds: undefined },
  });
  expect(parseOptions(['--leader-rounds', '50', '--pods', '3'])).toMatchObject({ leaderRounds: 50, pods: 3 });
  expect(parseOptions(['--database-away', '60'])).toMatchObject({ databaseAway: 60, pods: 3, rounds: 1 });
  expect(parseOptions(['--queue', '1000'])).toMatchObject({ queue: 1000, badServers: undefined, pods: 3 });
  expect(parseOptions(['--bad-servers', '20'])).toMatchObject({ queue: undefined, badServers: 20, pods: 3 });
  expect(parseOptions([])).toMatchObject({ rolling: undefined, leaderRounds: undefined, pods: 1, rounds: 40 });
  for (const [flags, reason] of [
    [['--rolling', 'hup'], '--rolling: expected term, kill or database'],
    [['--rolling', 'term', '--listeners', 'none'], '--listeners: expected all or leader'],
    [['--rolling', 'term', '--pods', '2'], '--pods: expected 3 with --rolling'],
    [['--database-away', '0'], '--database-away: expected a whole number from 1'],
    [['--pods', '3'], '--pods: expected 1 or 2'],
    [['--verbs', '--pods', '1'], '--pods: expected 3'],
    [['--rolling', 'term', '--embedded'], 'exclude each other'],
  ] as const)
    expect(() => parseOptions(flags)).toThrow(reason);
});

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const target = async (answer: string) => {
  const server = createServer((socket) => socket.end(answer)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  };
  closers.push(close);
  return { address: { host: '127.0.0.1', port: (server.address() as AddressInfo).port }, close };
};

const heard = async (port: number): Promise<string> => {
  let text = '';
  for await (const chunk of connect({ host: '127.0.0.1', port })) text += String(chunk);
  return text;
};

test('the gateway goes to the next that takes the connection, and to nobody while it is cut', async () => {
  const [one, two] = [await target('one'), await target('two')];
  const gateway = new Gateway([one.address, two.address]);
  closers.push(() => gateway.cut());
  await gateway.open();
  expect([await heard(gateway.port), await heard(gateway.port)]).toEqual(['one', 'two']);
  await one.close();
  expect([await heard(gateway.port), await heard(gateway.port)]).toEqual(['two', 'two']);
  await two.close();
  expect(await heard(gateway.port)).toBe('');
  await gateway.cut();
  await expect(heard(gateway.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  const { port } = gateway;
  await gateway.open();
  expect(gateway.port).toBe(port);
});

describe('a long queue', () => {
  const names = ['ordered-0', 'free-1', 'ordered-2', 'free-3'];
  const deliver = (which: readonly string[]): readonly string[] =>
    which.map((name) =>
      createHash('sha256')
        .update(Buffer.alloc(4096, `${name};`))
        .digest('hex'),
    );
  const completed = (name: string, endTime: number): QueuedRecord => ({ name, status: 'COMPLETED', endTime });
  const records = names.map((name, k) => completed(name, k));
  const good = { client: records, server: [...records, { name: 'free-1', status: 'FAILED', endTime: 0 }] };

  test.each<[string, Parameters<typeof faultsOf>[1], readonly string[], readonly string[]]>([
    ['all is well, with an attempt more', good, deliver(names), []],
    [
      'one is not COMPLETED here, and was delivered',
      { ...good, client: records.slice(1) },
      deliver(names),
      ['client: 1 not COMPLETED, ordered-0'],
    ],
    [
      'one is delivered twice, and COMPLETED twice there',
      { ...good, server: [...records, completed('free-3', 9)] },
      deliver([...names, 'free-3']),
      ['server: 1 COMPLETED twice', '5 files delivered of 4'],
    ],
    [
      'one is another file',
      good,
      deliver(['ordered-0', 'free-1', 'ordered-2', 'free-9']),
      ['1 files were never delivered as they were sent'],
    ],
    [
      'the order is another one there',
      {
        ...good,
        server: [completed('ordered-0', 5), completed('ordered-2', 4), ...records.filter((_, k) => k % 2 === 1)],
      },
      deliver(names),
      ['server: ordered-2 ended before ordered-0'],
    ],
  ])('%s', (_, sides, delivered, found) => {
    expect(faultsOf(names, sides, delivered)).toEqual(found);
  });

  test('memory that grows with what went through is found', () => {
    const mib = 1024 * 1024;
    const flat = [10, 40, 80, 100].map((ended) => ({ pod: 'client-1', ended, bytes: 150 * mib }));
    expect(growthOf(flat, 100)).toEqual([]);
    const grows = [10, 40, 80, 99].map((ended) => ({ pod: 'client-2', ended, bytes: (100 + 2 * ended) * mib }));
    expect(growthOf([...flat, ...grows], 100)).toEqual(['client-2: 298 MiB in the last quarter, 120 MiB in the first']);
  });
});
