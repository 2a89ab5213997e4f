import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { CONFIGURATION_CHANGED, eventStream, LOGIN_FAILED } from '@pesit-node/service';
import type { EventStream } from '@pesit-node/service';
import { captureLog } from '@pesit-node/service/testing';

import { logService } from '../../src/events/service-log.js';

let log: ReturnType<typeof captureLog>;
let events: EventStream;

beforeEach(() => {
  log = captureLog();
  events = eventStream({ app: 'server', node: 'pod-1' }, log.logger);
  logService(events, log.logger, { now: () => 0 });
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

test('a subscriber that throws is a line with its event', () => {
  events.subscribe(LOGIN_FAILED, () => {
    throw new Error('broken');
  });
  events.publish(LOGIN_FAILED, { address: 'a', user: 'b', result: 'wrong', blockedSeconds: 0 });
  expect(log.entries()).toContainEqual(
    expect.objectContaining({ msg: 'a subscriber of the event stream failed', event: 'pesit:login:failed' }),
  );
});
