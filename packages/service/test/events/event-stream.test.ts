import { subscribe, unsubscribe } from 'node:diagnostics_channel';

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { EventKind, EventStream } from '@pesit-node/service';

const THING = new EventKind<{ readonly name: string }>('pesit:test:thing');

let failures: [unknown, string][];
let one: EventStream;
let other: EventStream;

beforeEach(() => {
  failures = [];
  const failed = (error: unknown, event: string): void => void failures.push([error, event]);
  one = new EventStream({ app: 'server', node: 'pod-1', failed });
  other = new EventStream({ app: 'server', node: 'pod-2', failed });
});

afterEach(() => {
  one.close();
  other.close();
});

test('an event reaches the subscribers of its stream in their order, and those of no other', () => {
  const heard: string[] = [];
  one.subscribe(THING, ({ name }) => void heard.push(`first ${name}`));
  one.subscribe(THING, ({ name }) => void heard.push(`second ${name}`));
  other.subscribe(THING, ({ name }) => void heard.push(`other ${name}`));
  one.publish(THING, { name: 'a' });
  expect(heard).toEqual(['first a', 'second a']);
});

test('a subscriber that throws is reported, and keeps neither the publisher nor another subscriber from anything', () => {
  const heard: string[] = [];
  one.subscribe(THING, () => {
    throw new Error('broken');
  });
  one.subscribe(THING, ({ name }) => void heard.push(name));
  one.publish(THING, { name: 'a' });
  expect(heard).toEqual(['a']);
  expect(failures).toEqual([[new Error('broken'), 'pesit:test:thing']]);
});

test('a subscription ends by itself or with its stream', () => {
  const heard: string[] = [];
  const end = one.subscribe(THING, () => void heard.push('ended'));
  one.subscribe(THING, () => void heard.push('stays'));
  end();
  one.publish(THING, { name: 'a' });
  expect(heard).toEqual(['stays']);
  one.close();
  one.publish(THING, { name: 'b' });
  expect(heard).toEqual(['stays']);
  expect(THING.channel.hasSubscribers).toBe(false);
});

test('whoever watches the process finds the channel by its name, with the node that speaks', () => {
  const heard: unknown[] = [];
  const watch = (message: unknown): void => void heard.push(message);
  subscribe('pesit:test:thing', watch);
  try {
    other.publish(THING, { name: 'a' });
  } finally {
    unsubscribe('pesit:test:thing', watch);
  }
  expect(heard).toEqual([{ stream: other, app: 'server', node: 'pod-2', event: { name: 'a' } }]);
});
