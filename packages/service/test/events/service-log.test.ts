import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { CONFIGURATION_CHANGED, eventStream, LOGIN_FAILED, LOGIN_SUCCEEDED } from '@pesit-node/service';
import type { EventStream } from '@pesit-node/service';
import { captureLog } from '@pesit-node/service/testing';

import { logService } from '../../src/events/service-log.js';

let log: ReturnType<typeof captureLog>;
let events: EventStream;

let now: number;

beforeEach(() => {
  now = 0;
  log = captureLog();
  events = eventStream({ app: 'server', node: 'pod-1' }, log.logger);
  logService(events, log.logger, { now: () => now });
});

afterEach(() => {
  events.close();
});

test('what was configured is a line that names the thing and the fields, never a value', () => {
  const facts = { partner: 'BANK1', fields: ['password'] };
  events.publish(CONFIGURATION_CHANGED, { what: 'partner', action: 'changed', facts });
  expect(log.entries()).toMatchObject([{ msg: 'partner changed', ...facts }]);
});

test('failed logins are lines with address and user, those refused unread are not', () => {
  const failed = { address: '192.0.2.1', user: 'admin' };
  events.publish(LOGIN_FAILED, { ...failed, result: 'wrong', blockedSeconds: 60 });
  events.publish(LOGIN_FAILED, { ...failed, result: 'blocked', blockedSeconds: 60 });
  expect(log.entries()).toMatchObject([{ msg: 'login failed', ...failed, blockedSeconds: 60 }]);
});

test('a login that succeeds is a line an hour of its user and address, though each request is one', () => {
  const admin = { address: '192.0.2.1', user: 'admin' };
  const [elsewhere, other] = [
    { ...admin, address: '192.0.2.2' },
    { ...admin, user: 'eve' },
  ];
  for (const one of [admin, admin, elsewhere, other, admin]) events.publish(LOGIN_SUCCEEDED, one);
  now = 3_599_999;
  events.publish(LOGIN_SUCCEEDED, admin);
  expect(log.entries()).toMatchObject(
    [admin, elsewhere, other].map((one) => ({ level: 'info', msg: 'login', ...one })),
  );
  now = 3_600_000;
  events.publish(LOGIN_SUCCEEDED, admin);
  expect(log.entries()).toHaveLength(4);
  for (let index = 0; index < 2000; index++) events.publish(LOGIN_SUCCEEDED, { ...admin, address: `a${index}` });
  expect(log.entries()).toHaveLength(3 + 1000);
});

test('a subscriber that throws is a line with its event', () => {
  events.subscribe(LOGIN_FAILED, () => {
    throw new Error('broken');
  });
  events.publish(LOGIN_FAILED, { address: 'a', user: 'b', result: 'wrong', blockedSeconds: 0 });
  expect(log.entries()).toContainEqual(
    expect.objectContaining({ msg: 'a subscriber of the event stream failed', event: 'pesit:login:failed' }),
  );
});
