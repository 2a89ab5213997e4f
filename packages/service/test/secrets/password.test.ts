import { createHash, createHmac, hkdfSync, scryptSync } from 'node:crypto';

import { describe, expect, test } from '@jest/globals';
import { PasswordHasher, PasswordHashError, SecretBox } from '@pesit-node/service';

const KEY = Buffer.alloc(32, 1);
const OLDER = Buffer.alloc(32, 2);
/** A fortieth of what a real one costs. */
const CHEAP = { logN: 11, r: 8, p: 1 };
const MEBIBYTE = 1_048_576;

const cheap = (...keys: readonly Buffer[]): PasswordHasher => new PasswordHasher(new SecretBox(keys), CHEAP);
const idOf = (key: Buffer): string => createHash('sha256').update(key).digest('hex').slice(0, 8);
const unpadded = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '');

/** Of the first versions: no key. */
const withoutKey = (password: string, logN = 15): string => {
  const hash = scryptSync(password, 'salt', 32, { N: 2 ** logN, r: 8, p: 1, maxmem: 64 * MEBIBYTE });
  return `$scrypt$ln=${logN},r=8,p=1$${unpadded(Buffer.from('salt'))}$${unpadded(hash)}`;
};

describe('the hash of a password', () => {
  test('is scrypt, N=2^15, r=8, p=3, over an HMAC under a key that is made of secrets.key, whose id it names', async () => {
    const stored = await new PasswordHasher(new SecretBox([KEY, OLDER])).hash('pä:ss'.normalize('NFD'));
    expect(stored).toMatch(/^\$scrypt\$ln=15,r=8,p=3,keyid=[0-9a-f]{8}\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    const [, , , salt = '', hash] = stored.split('$');
    const key = Buffer.from(hkdfSync('sha256', KEY, '', 'pesit-node password hashes v1', 32));
    const input = createHmac('sha256', key).update('pä:ss'.normalize('NFC')).digest();
    const cost = { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * MEBIBYTE };
    expect(hash).toBe(unpadded(scryptSync(input, Buffer.from(salt, 'base64'), 32, cost)));
    expect(stored).toContain(`keyid=${idOf(KEY)}$`);
  });

  test('verifies what it was made from, and nothing else', async () => {
    const hasher = cheap(KEY);
    const hash = await hasher.hash('pä:ss');
    expect(await hasher.verify('pä:ss', hash)).toBe(true);
    expect(await hasher.verify('pä:ss'.normalize('NFD'), hash)).toBe(true);
    expect(await hasher.verify('pä:sS', hash)).toBe(false);
    expect(await hasher.verify('', hash)).toBe(false);
    expect(await hasher.hash('pä:ss')).not.toBe(hash);
  });

  test('made by another implementation of scrypt, without a key, verifies (RFC 7914 §12, N=1024 r=8 p=16)', async () => {
    const stored =
      '$scrypt$ln=10,r=8,p=16$TmFDbA$/bq+HJ00cgB4VucZDQHp/nxq18vII3gw53N2Y0s3MWIurzDZLiKjiG/xCSedmDDaxyevuUqD7m2DYMvfoswGQA';
    expect(await cheap(KEY).verify('password', stored)).toBe(true);
  });

  test('is of use to nobody without the key', async () => {
    const stored = await cheap(KEY).hash('secret12');
    const other = cheap(OLDER).verify('secret12', stored);
    await expect(other).rejects.toThrow(PasswordHashError);
    await expect(other).rejects.toThrow(`needs the key ${idOf(KEY)}, secrets.key holds ${idOf(OLDER)}`);
    expect(await cheap(KEY).verify('secret12', stored.replace(`,keyid=${idOf(KEY)}`, ''))).toBe(false);
  });

  test('is stale when it has no key, an older one, or costs less than new ones', async () => {
    const [old, rotated] = [cheap(OLDER), cheap(KEY, OLDER)];
    const [before, after] = [await old.hash('secret12'), await rotated.hash('secret12')];
    expect(await rotated.verify('secret12', before)).toBe(true);
    expect([old.isStale(before), rotated.isStale(before), rotated.isStale(after)]).toEqual([false, true, false]);
    expect(rotated.isStale(withoutKey('secret12'))).toBe(true);
    const dearer = new PasswordHasher(new SecretBox([KEY]), { ...CHEAP, p: 3 });
    expect(dearer.isStale(after)).toBe(true);
    // Of a version that takes more: its hashes are not made cheaper by an older one beside it.
    expect(rotated.isStale(after.replace('p=1', 'p=9').replace('ln=11', 'ln=13'))).toBe(false);
  });
});

describe('a stored hash', () => {
  const hash = (parameters: string): string => `$scrypt$${parameters}$${'A'.repeat(22)}$${'A'.repeat(43)}`;

  test.each([
    ['no hash', '', 'unknown form'],
    ['a password in clear', 'plain', 'unknown form'],
    ['a hash of something else', '$2b$10$abc', 'unknown form'],
    ['N beyond the bound', hash('ln=21,r=8,p=1'), 'N = 2^21, and 2^10 to 2^20 is allowed'],
    ['N of nothing', hash('ln=1,r=8,p=1'), 'N = 2^1, and 2^10 to 2^20 is allowed'],
    ['r beyond the bound', hash('ln=10,r=33,p=1'), 'r = 33, and 8 to 32 is allowed'],
    ['r of nothing', hash('ln=15,r=1,p=1'), 'r = 1, and 8 to 32 is allowed'],
    ['p beyond the bound', hash('ln=10,r=8,p=17'), 'p = 17, and 1 to 16 is allowed'],
    ['p of nothing', hash('ln=15,r=8,p=0'), 'p = 0, and 1 to 16 is allowed'],
    ['more memory than a check may take', hash('ln=18,r=8,p=1'), 'it asks for 256 MB, and 128 are allowed'],
    ['numbers without end', hash('ln=99999,r=8,p=1'), 'unknown form'],
  ])('%s is refused in words and never computed', async (_case, stored, words) => {
    const hasher = cheap(KEY);
    const refused = hasher.verify('x', stored);
    await expect(refused).rejects.toThrow(PasswordHashError);
    await expect(refused).rejects.toThrow(words);
    expect(() => hasher.isStale(stored)).toThrow(words);
  });

  test('is never made beyond the bounds either', () => {
    expect(() => new PasswordHasher(new SecretBox([KEY]), { logN: 9, r: 8, p: 1 })).toThrow('N = 2^9');
  });
});
