import { describe, expect, test } from '@jest/globals';

// Within the package: nobody outside sees the queue.
import { FairQueue } from '../../src/secrets/fair-queue.js';

const from = (address: string, name = 'N') => ({ address, name });

const drained = (queue: FairQueue<string>): string => {
  const taken: string[] = [];
  for (let item = queue.take(); item !== undefined; item = queue.take()) taken.push(item);
  return taken.join(' ');
};

describe('whose turn it is', () => {
  test('addresses take turns, each in its own order', () => {
    const queue = new FairQueue<string>(10);
    for (const item of ['a1', 'a2', 'a3']) queue.add(item, from('a'));
    for (const item of ['b1', 'b2']) queue.add(item, from('b'));
    queue.add('c1', from('c'));
    expect(drained(queue)).toBe('a1 b1 c1 a2 b2 a3');
    expect(queue.size).toBe(0);
  });

  test('the names of one address take turns', () => {
    const queue = new FairQueue<string>(10);
    for (const item of ['x1', 'x2', 'x3']) queue.add(item, from('a', 'x'));
    queue.add('y1', from('a', 'y'));
    queue.add('b1', from('b'));
    expect(drained(queue)).toBe('x1 b1 y1 x2 x3');
  });

  test('one that comes while others have had their turn comes before their next', () => {
    const queue = new FairQueue<string>(10);
    for (const item of ['a1', 'a2', 'a3']) queue.add(item, from('a'));
    expect(queue.take()).toBe('a1');
    queue.add('b1', from('b'));
    expect(queue.take()).toBe('a2');
    expect(drained(queue)).toBe('b1 a3');
  });
});

describe('when it is full', () => {
  const full = (): FairQueue<string> => {
    const queue = new FairQueue<string>(4);
    for (const item of ['a1', 'a2', 'a3']) queue.add(item, from('a', 'x'));
    queue.add('a4', from('a', 'y'));
    return queue;
  };

  test('the newest of the address that has most gives way to another address', () => {
    const queue = full();
    expect(queue.add('b1', from('b'))).toBe('a3');
    expect(drained(queue)).toBe('a1 b1 a4 a2');
  });

  test('the newest of the name that has most gives way to another name of its address', () => {
    const queue = full();
    expect(queue.add('a5', from('a', 'z'))).toBe('a3');
    expect(drained(queue)).toBe('a1 a4 a5 a2');
  });

  test('whoever has most itself has no place for more', () => {
    const queue = full();
    expect(queue.add('a5', from('a', 'x'))).toBe('a5');
    expect(drained(queue)).toBe('a1 a4 a2 a3');
  });

  test('where all have the same, the newcomer gives way: nobody who waits can be pushed out by one more stranger', () => {
    const queue = new FairQueue<string>(3);
    for (const address of ['a', 'b', 'c']) queue.add(address, from(address));
    expect(queue.add('d', from('d'))).toBe('d');
    expect(drained(queue)).toBe('a b c');
  });
});

test('one address never holds up another, whatever it does: 10,000 steps by chance', () => {
  let seed = 7;
  const chance = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  const queue = new FairQueue<string>(16);
  let waited = 0;
  let honest = false;
  for (let step = 0; step < 10_000; step++) {
    const lost = queue.add('stranger', from('a', `name ${chance(40)}`));
    expect(lost).not.toBe('honest');
    if (!honest && chance(5) === 0) {
      expect(queue.add('honest', from('b'))).not.toBe('honest');
      [honest, waited] = [true, 0];
    }
    if (chance(3) > 0) continue;
    if (queue.take() === 'honest') honest = false;
    else if (honest) expect(++waited).toBeLessThanOrEqual(1);
    expect(queue.size).toBeLessThanOrEqual(16);
  }
});
