import { expect, test } from '@jest/globals';

// Within the package: nobody outside sees it.
import { Crowd } from '../src/crowd.js';

const crowd = (...members: readonly (readonly [string, string])[]): Crowd<string> => {
  const all = new Crowd<string>();
  for (const [member, address] of members) all.add(member, address);
  return all;
};

test('the network that has most gives way, from its oldest or its newest; where all have the same, the oldest of all', () => {
  const all = crowd(['b', '192.0.2.1'], ['a', '::1'], ['c', '::2'], ['d', '192.0.2.2'], ['e', '::3']);
  expect([all.oldest(), all.newestBefore('192.0.2.9')]).toEqual(['a', 'e']);
  all.delete('e');
  all.delete('a');
  expect(all.oldest()).toBe('b');
  expect([...all]).toEqual(['b', 'c', 'd']);
});

test('nobody gives way to one who would then have as much', () => {
  const all = crowd(['a', '192.0.2.1'], ['b', '192.0.2.1'], ['c', '192.0.2.2']);
  expect(all.newestBefore('192.0.2.1')).toBeUndefined();
  expect(all.newestBefore('192.0.2.2')).toBeUndefined();
  expect(all.newestBefore('192.0.2.3')).toBe('b');
  all.delete('b');
  expect(all.newestBefore('192.0.2.3')).toBeUndefined();
});

test('an address is known as long as its member', () => {
  const all = crowd(['a', '192.0.2.1']);
  expect(all.addressOf('a')).toBe('192.0.2.1');
  all.delete('a');
  all.delete('a');
  expect([all.addressOf('a'), all.size, all.oldest()]).toEqual([undefined, 0, undefined]);
});
