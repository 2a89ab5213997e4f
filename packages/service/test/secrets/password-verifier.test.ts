import { describe, expect, test } from '@jest/globals';
import { PasswordHasher, PasswordVerifier, SecretBox, UncheckedPasswordError } from '@pesit-node/service';
import type { PasswordVerifierOptions } from '@pesit-node/service';

import { deferred } from '@pesit-node/ground';

const HERE = { address: '192.0.2.1', name: 'PART' };

/** A verifier whose checks end when the test says so: the stored form of a password is `=password` here. */
const byHand = (options: Partial<PasswordVerifierOptions> = {}) => {
  const checks: { readonly password: string; readonly end: () => void }[] = [];
  let now = 0;
  const verifier = new PasswordVerifier({
    now: () => now,
    check: async (password, stored) => {
      const ended = deferred<undefined>();
      checks.push({ password, end: () => ended.resolve(undefined) });
      await ended.promise;
      return stored === `=${password}`;
    },
    ...options,
  });
  return {
    verifier,
    checks,
    begun: () => checks.map(({ password }) => password).join(' '),
    pass: (ms: number) => (now += ms),
    /** The password is verified and remembered. */
    learn: async (password: string) => {
      const known = verifier.verify(password, `=${password}`, HERE);
      checks.pop()?.end();
      expect(await known).toBe(true);
    },
  };
};

test('tells right from wrong by the real hashes', async () => {
  const hasher = new PasswordHasher(new SecretBox([Buffer.alloc(32, 1)]));
  const verifier = new PasswordVerifier({ check: (password, stored) => hasher.verify(password, stored) });
  const [one, two] = await Promise.all([hasher.hash('one'), hasher.hash('two')]);
  expect(verifier.knows('one', one)).toBe(false);
  expect(await verifier.verify('one', one, HERE)).toBe(true);
  expect(await verifier.verify('two', one, HERE)).toBe(false);
  expect(await verifier.verify('one', two, HERE)).toBe(false);
  expect([verifier.knows('one', one), verifier.knows('two', one), verifier.knows('one', two)]).toEqual([
    true,
    false,
    false,
  ]);
});

describe('what is remembered', () => {
  test('is renewed by its use, and forgotten when it is not used for its time', async () => {
    const { verifier, learn, pass } = byHand({ ttlMs: 1000 });
    await learn('one');
    for (let use = 0; use < 5; use++) {
      pass(900);
      expect(verifier.knows('one', '=one')).toBe(true);
    }
    pass(1000);
    expect(verifier.knows('one', '=one')).toBe(false);
  });

  test('is bounded: the least recently used gives way', async () => {
    const { verifier, learn } = byHand({ capacity: 2 });
    await learn('one');
    await learn('two');
    expect(verifier.knows('one', '=one')).toBe(true);
    await learn('three');
    expect(['one', 'two', 'three'].map((text) => verifier.knows(text, `=${text}`))).toEqual([true, false, true]);
  });

  test('is the new hash of a known password as well', async () => {
    const { verifier, learn } = byHand();
    await learn('one');
    expect(verifier.knows('one', 'anew')).toBe(false);
    verifier.learned('one', 'anew');
    expect(['one', 'two'].map((password) => verifier.knows(password, 'anew'))).toEqual([true, false]);
  });

  test('never is a failure', async () => {
    const { verifier, checks } = byHand();
    for (let attempt = 1; attempt <= 2; attempt++) {
      const wrong = verifier.verify('bad', '=good', HERE);
      expect(checks).toHaveLength(attempt);
      checks.at(-1)?.end();
      expect(await wrong).toBe(false);
    }
  });

  test('is answered at once while strangers keep every check busy', async () => {
    const { verifier, learn } = byHand({ maxWaiting: 1 });
    await learn('one');
    const strangers = Array.from({ length: 20 }, (_, i) => verifier.verify(`bad ${i}`, '=one', HERE));
    for (const stranger of strangers) stranger.catch(() => undefined);
    expect(await verifier.verify('one', '=one', HERE)).toBe(true);
  });
});

describe('the checks', () => {
  test('run beside each other within their bound', async () => {
    const { verifier, checks, begun } = byHand({ maxRunning: 3 });
    const all = ['a', 'b', 'c', 'd', 'e'].map((text) => verifier.verify(text, `=${text}`, HERE));
    expect(begun()).toBe('a b c');
    checks[1]?.end();
    expect(await all[1]).toBe(true);
    expect(begun()).toBe('a b c d');
    for (const at of [0, 2, 3]) checks[at]?.end();
    await all[3];
    checks[4]?.end();
    expect(await Promise.all(all)).toEqual([true, true, true, true, true]);
  });

  test('that are equal are one', async () => {
    const { verifier, checks } = byHand();
    const all = Array.from({ length: 20 }, () => verifier.verify('one', '=one', HERE));
    expect(checks).toHaveLength(1);
    checks[0]?.end();
    expect(await Promise.all(all)).toEqual(Array(20).fill(true));
  });

  test('wait in turn by where they come from: 200 of a stranger do not hold up a partner', async () => {
    const { verifier, checks, begun } = byHand({ maxRunning: 1 });
    const stranger = { address: '198.51.100.7', name: 'PART' };
    const bogus = Array.from({ length: 200 }, (_, i) => verifier.verify(`bad${i}`, '=good', stranger));
    const partner = verifier.verify('good', '=good', HERE);
    checks[0]?.end();
    await bogus[0];
    checks[1]?.end();
    await bogus[1];
    expect(begun()).toBe('bad0 bad1 good');
    checks[2]?.end();
    expect(await partner).toBe(true);
  });

  test('beyond the bound say that nothing was looked at, never that the password is wrong', async () => {
    const { verifier, checks } = byHand({ maxRunning: 1, maxWaiting: 2 });
    const [first, second] = ['a', 'b', 'c'].map((text) => verifier.verify(text, '=x', HERE));
    const refused = await verifier.verify('d', '=d', HERE).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(UncheckedPasswordError);
    expect((refused as Error).message).toBe('2 password checks wait already');
    checks[0]?.end();
    expect(await first).toBe(false);
    checks[1]?.end();
    expect(await second).toBe(false);
  });

  test('that nobody wants when their turn comes are left out; of equal ones, one that is wanted is enough', async () => {
    const { verifier, checks, begun } = byHand({ maxRunning: 1 });
    const [gone, here] = [() => false, () => true];
    const first = verifier.verify('a', '=a', HERE, gone);
    await expect(first).rejects.toThrow(new UncheckedPasswordError('nobody waits for the answer'));
    const running = verifier.verify('b', '=b', HERE, here);
    const [left, both, also] = [
      verifier.verify('c', '=c', HERE, gone),
      verifier.verify('d', '=d', HERE, gone),
      verifier.verify('d', '=d', HERE, here),
    ];
    checks[0]?.end();
    await running;
    await expect(left).rejects.toBeInstanceOf(UncheckedPasswordError);
    expect(begun()).toBe('b d');
    checks[1]?.end();
    expect([await both, await also]).toEqual([true, true]);
  });

  test('that fail reject, and the next one runs', async () => {
    const verifier = new PasswordVerifier({
      maxRunning: 1,
      check: (password) => (password === 'a' ? Promise.reject(new Error('no memory')) : Promise.resolve(true)),
    });
    const [broken, next] = [verifier.verify('a', 'x', HERE), verifier.verify('b', 'x', HERE)];
    await expect(broken).rejects.toThrow('no memory');
    expect(await next).toBe(true);
  });
});
