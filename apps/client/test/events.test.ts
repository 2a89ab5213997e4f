/** The events of the client app, as a watcher from outside hears them, and in their order. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { attributesOf, otlpReceiver, watchEvents, withDatabase } from '@pesit-node/service/testing';
import {
  SESSION_ENDED,
  SESSION_OPENED,
  SESSION_REFUSED,
  TRANSFER_BEGAN,
  TRANSFER_DELIVERED,
  TRANSFER_ENDED,
  TRANSFER_POINT,
} from '@pesit-node/transfers';

import {
  CONNECTION_TESTED,
  SERVER_NOT_REACHED,
  SERVER_REACHED,
  SERVER_SEEN,
  SESSION_GIVEN_BACK,
  SESSION_TAKEN,
} from '../src/exchange/events.js';
import { BIG, useRestarts } from './support/restarting.js';
import { useWorld } from './support/world.js';

const KINDS = [
  ...[SESSION_OPENED, SESSION_REFUSED, SESSION_TAKEN, SESSION_GIVEN_BACK, SESSION_ENDED],
  ...[TRANSFER_BEGAN, TRANSFER_POINT, TRANSFER_DELIVERED, TRANSFER_ENDED],
  ...[SERVER_REACHED, SERVER_NOT_REACHED, SERVER_SEEN, CONNECTION_TESTED],
];

withDatabase((harness) => {
  const world = useWorld(harness);
  const { start, sendBig } = useRestarts(world);
  let watch: ReturnType<typeof watchEvents>;

  beforeEach(() => {
    watch = watchEvents(KINDS);
  });
  afterEach(() => {
    watch.stop();
  });

  /** Each point on the way of 100,000 bytes, every 4 KB; those of the last window may not have been answered. */
  const expectPoints = (): void => {
    const points = watch.heard.filter(({ name }) => name === TRANSFER_POINT.name).map(({ event }) => event.point);
    expect(points.length).toBeGreaterThanOrEqual(20);
    expect(points.map(({ number }) => number)).toEqual(points.map((_, index) => index + 1));
    const before = points.map(({ dataBytes }) => dataBytes as number);
    expect(before).toEqual([...new Set(before)].sort((a, b) => a - b));
    expect(before.at(-1)).toBeLessThanOrEqual(BIG.length);
  };

  test('with otel.endpoint a collector gets the session and the transfer, and no secret', async () => {
    const collector = await otlpReceiver();
    const service = await world.service({ config: { 'otel.endpoint': collector.endpoint } });
    const partner = await world.partner();
    await world.remote(service, partner.port);
    const { id } = await world.send(service);
    await service.stop();
    await collector.close();
    const spans = new Map(collector.spans().map((span) => [span.name, attributesOf(span)]));
    expect([...spans.keys()].sort()).toEqual(['pesit send', 'pesit session']);
    expect(spans.get('pesit session')).toMatchObject({ 'pesit.server': 'bank' });
    expect(spans.get('pesit send')).toMatchObject({ 'pesit.transfer.id': id, 'pesit.status': 'COMPLETED' });
    expect(collector.text()).not.toContain('pz#8kQ!v');
  });

  test('a file is sent: session, points and end, all of one transfer', async () => {
    const { service } = await start([], {}, { idleTimeout: 0 });
    const { id } = await sendBig(service);
    await service.stop();
    const rest = watch.names().filter((name) => name !== TRANSFER_POINT.name);
    expect(rest).toEqual([
      'pesit:transfer:began',
      ...['pesit:session:opened', 'pesit:server:reached', 'pesit:session:taken'],
      ...['pesit:session:given-back', 'pesit:server:seen'],
      // Which of both is first depends on how long the release takes.
      ...[expect.stringMatching(/^pesit:(transfer|session):ended$/), expect.stringMatching(/ended$/)],
    ]);
    const transfers = watch.heard.flatMap(({ event }) => (event.transfer?.id === undefined ? [] : [event.transfer]));
    expect(new Set(transfers).size).toBe(1);
    expect(transfers[0]).toMatchObject({ id, direction: 'SEND', peer: 'bank' });
    const taken = watch.heard.find(({ name }) => name === SESSION_TAKEN.name)?.event;
    expect(taken).toMatchObject({ transfer: id, reused: false, session: { facts: { server: 'bank' } } });
    expect(watch.heard.find(({ name }) => name === SESSION_ENDED.name)?.event).toEqual({
      ...{ session: taken.session, opened: true, error: undefined },
    });
    expectPoints();
  });

  test('a file is received: points as it is stored here, and where it is delivered', async () => {
    const { service } = await start([]);
    const record = await world.receive(service);
    expect(record).toMatchObject({ status: 'COMPLETED', size: BIG.length });
    expectPoints();
    const names = watch.names();
    const { event } = watch.heard[names.indexOf(TRANSFER_DELIVERED.name)]!;
    expect(event).toMatchObject({ path: record.localPath, size: BIG.length, checksum: record.checksum });
    expect(event.transfer).toMatchObject({ id: record.id, direction: 'RECEIVE' });
    expect(names.indexOf(TRANSFER_DELIVERED.name)).toBeGreaterThan(names.lastIndexOf(TRANSFER_POINT.name));
    expect(names.indexOf(TRANSFER_DELIVERED.name)).toBeLessThan(names.indexOf(TRANSFER_ENDED.name));
  });

  test('a connection is tested: no session of a transfer', async () => {
    const partner = await world.partner();
    const service = await world.service();
    const id = await world.remote(service, partner.port);
    await service.api.post(`/servers/${id}/test`);
    await partner.close();
    await service.api.post(`/servers/${id}/test`);
    expect(watch.names()).toEqual([
      ...['pesit:server:reached', 'pesit:connection:tested'],
      ...['pesit:server:not-reached', 'pesit:connection:tested'],
    ]);
    expect(watch.heard.map(({ event }) => event.error?.diagnostic)).toEqual([undefined, undefined, '3-310', '3-310']);
    expect(service.log.entries().map(({ msg }) => msg)).toEqual(
      expect.arrayContaining(['connection test succeeded', 'connection test failed']),
    );
  });
});
