/** Spans of sessions and transfers, as a collector gets them over OTLP/HTTP. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import { eventStream } from '@pesit-node/service';
import type { EventStream, LifecycleStep } from '@pesit-node/service';
import { attributesOf, otlpReceiver, silentLogger } from '@pesit-node/service/testing';
import {
  SESSION_ENDED,
  SESSION_OPENED,
  SESSION_REFUSED,
  spansStep,
  TRANSFER_BEGAN,
  TRANSFER_DELIVERED,
  TRANSFER_ENDED,
  TRANSFER_REFUSED,
  TRANSFER_WENT_ON,
} from '@pesit-node/transfers';

const ERROR = 2;
const SERVER = 2;

let collector: Awaited<ReturnType<typeof otlpReceiver>>;
let events: EventStream;
let step: LifecycleStep;

const begin = async (endpoint: string): Promise<void> => {
  events = eventStream({ app: 'server', node: 'pod-1' }, silentLogger);
  const config = { 'otel.endpoint': endpoint, 'otel.authorization': 'Bearer t0k3n' };
  step = spansStep({ config, app: 'server', version: '1.2.3', node: 'pod-1', events });
  await step.start?.(new AbortController().signal);
};

beforeEach(async () => {
  collector = await otlpReceiver();
});
afterEach(() => collector.close());

const SESSION = { id: 's-1', facts: { listener: 'NODE1', remoteAddress: '192.0.2.7', password: 'n0t-t0-be-seen' } };
const FILE = { type: 'FILE', direction: 'RECEIVE', peer: 'ACME' } as const;
const END = { dataBytes: 8192, syncPoint: 2 };
const refused = (): PesitError => new PesitError('the password is wrong', { fault: 'refused', diagnostic: '3-304' });

test('a session is a span, and each attempt of a transfer one below it', async () => {
  await begin(`${collector.endpoint}/`);
  const transfer = { ...FILE, id: 7, name: 'INVOICES', progress: () => END };
  events.publish(SESSION_OPENED, { session: SESSION, facts: { dialect: 'cft', freeMessage: 'n0t-t0-be-seen' } });
  events.publish(TRANSFER_BEGAN, { session: SESSION, transfer, facts: { label: 'n0t-t0-be-seen' } });
  const from = { dataBytes: 4096, syncPoint: 1 };
  events.publish(TRANSFER_WENT_ON, { session: SESSION, transfer, from, attempt: 'next', facts: {} });
  events.publish(TRANSFER_DELIVERED, { transfer, path: '/in/a', size: 8000, checksum: undefined });
  const ended = { session: SESSION, transfer, status: 'COMPLETED', diagnostic: undefined, facts: {} } as const;
  events.publish(TRANSFER_ENDED, ended);
  events.publish(SESSION_ENDED, { session: SESSION, opened: true, error: undefined });
  await step.stop?.();

  const [received, session] = collector.spans();
  expect(session).toMatchObject({ name: 'pesit session', kind: SERVER, status: { code: 0 } });
  expect(session?.parentSpanId ?? '').toBe('');
  expect(attributesOf(session!)).toEqual({
    ...{ 'pesit.session.id': 's-1', 'pesit.listener': 'NODE1', 'network.peer.address': '192.0.2.7' },
    'pesit.dialect': 'cft',
  });
  expect(received).toMatchObject({ name: 'pesit receive', parentSpanId: session?.spanId, status: { code: 0 } });
  expect(attributesOf(received!)).toEqual({
    ...{ 'pesit.transfer.id': '7', 'pesit.transfer.type': 'FILE', 'pesit.direction': 'RECEIVE', 'pesit.peer': 'ACME' },
    ...{ 'pesit.file.name': 'INVOICES', 'pesit.data_bytes': '8192', 'pesit.sync_point': '2' },
    'pesit.status': 'COMPLETED',
  });
  expect(received?.events?.map(({ name }) => name)).toEqual(['data from', 'delivered']);
  expect(collector.resources()).toContainEqual(
    expect.objectContaining({
      ...{ 'service.name': 'pesit-server', 'service.version': '1.2.3', 'service.instance.id': 'pod-1' },
    }),
  );
  expect(collector.text()).not.toContain('n0t-t0-be-seen');
  expect(new Set(collector.authorizations)).toEqual(new Set(['Bearer t0k3n']));
});

test('what fails or is refused has the diagnostic, and a text that is bounded', async () => {
  await begin(collector.endpoint);
  const error = refused();
  events.publish(SESSION_REFUSED, { session: SESSION, diagnostic: '3-304', error, facts: {} });
  const transfer = { ...FILE, id: 8, name: 'x'.repeat(1000), progress: () => undefined };
  events.publish(TRANSFER_BEGAN, { session: undefined, transfer, facts: {} });
  const failed = { session: undefined, transfer, status: 'FAILED', diagnostic: '2-204', error, facts: {} } as const;
  events.publish(TRANSFER_ENDED, failed);
  const said = { session: undefined, ...FILE, status: 'FAILED', diagnostic: '2-226', error, facts: {} } as const;
  events.publish(TRANSFER_REFUSED, { ...said, counted: false });
  await step.stop?.();
  expect(collector.spans().map((span) => [span.status.code, attributesOf(span)['pesit.diagnostic']])).toEqual([
    ...[
      [ERROR, '3-304'],
      [ERROR, '2-204'],
      [ERROR, '2-226'],
    ],
  ]);
  expect(attributesOf(collector.spans()[1]!)['pesit.file.name']).toHaveLength(256);
});

test('a transfer that got its session after it began is linked with it; what still runs at the stop is sent', async () => {
  await begin(collector.endpoint);
  const transfer = { ...FILE, id: 9, progress: () => END };
  events.publish(TRANSFER_BEGAN, { session: undefined, transfer, facts: {} });
  events.publish(SESSION_OPENED, { session: SESSION, facts: {} });
  const from = { dataBytes: 0, syncPoint: 0 };
  events.publish(TRANSFER_WENT_ON, { session: SESSION, transfer, from, attempt: 'first', facts: {} });
  await step.stop?.();
  const [received, session] = collector.spans();
  expect(received?.links?.map(({ spanId }) => spanId)).toEqual([session?.spanId]);
});

test('without an endpoint nothing is sent, and nobody listens to the events', async () => {
  // Channels belong to the process: a file that this worker had before may have left a subscriber.
  const before = SESSION_OPENED.channel.hasSubscribers;
  await begin('');
  expect(SESSION_OPENED.channel.hasSubscribers).toBe(before);
  await step.stop?.();
  expect(collector.text()).toBe('');
});
