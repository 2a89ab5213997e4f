import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

import type { CommonConfig } from '../config/keys.js';
import { unavailable } from '../errors.js';
import type { Logger } from '../logging.js';
import { checkPassword } from '../secrets/password.js';
import { PasswordVerifier, UncheckedPasswordError } from '../secrets/password-verifier.js';
import type { VerifyCredentials } from './basic-strategy.js';
import { API_KEY_USER } from './roles.js';
import type { Login } from './roles.js';
import { UserFile } from './user-file.js';

export type LoginConfig = Pick<CommonConfig, 'admin.username' | 'admin.password'> & Partial<CommonConfig>;

/** Logs in whoever sends the right `X-API-Key`; undefined when it is another, or none is configured. */
export type VerifyApiKey = (given: string) => Login | undefined;

/** A hash of nothing, as costly as another: a name that is not there is refused no sooner than a wrong password. */
const nobodyLike = (hash: string): string => hash.replace(/[^$]+$/, 'A'.repeat(43));

/** How long a password that was right is not computed again, after its last use. */
const REMEMBERED_MS = 600_000;

/** Compares lists of texts in a time that says nothing of them, their lengths included. */
const constantTime = (): ((one: readonly string[], other: readonly string[]) => boolean) => {
  const key = randomBytes(32);
  const digest = (texts: readonly string[]): Buffer =>
    // As JSON it is known where each text ends.
    createHmac('sha256', key)
      .update(JSON.stringify(texts.map((text) => text.normalize('NFC'))))
      .digest();
  return (one, other) => timingSafeEqual(digest(one), digest(other));
};

/** An admin: compares with `admin.username` and `admin.password` in constant time, whatever differs and wherever. */
export const configuredAdmin = (config: LoginConfig): ((username: string, password: string) => Login | undefined) => {
  const same = constantTime();
  return (username, password) => {
    const name = config['admin.username'];
    return same([username, password], [name, config['admin.password']]) ? { username: name, role: 'admin' } : undefined;
  };
};

/**
 * `admin.username`, and the users of `admin.users`. One slow check runs at a time, so that guesses take one processor at most, and
 * callers wait in turn; a password that was right lately costs a hash. A change of the file forgets them all.
 */
export const configuredLogins = (config: LoginConfig, logger: Logger): VerifyCredentials => {
  const admin = configuredAdmin(config);
  const verifier = (): PasswordVerifier =>
    new PasswordVerifier({ check: checkPassword, maxRunning: 1, maxWaiting: 64, ttlMs: REMEMBERED_MS });
  let checks = verifier();
  const file = new UserFile({
    path: () => config['admin.users'] ?? '',
    logger,
    changed: () => {
      checks = verifier();
    },
  });
  // Errors in it are said at the start, not when somebody logs in.
  void file.users();
  return async (username, password, address) => {
    const asAdmin = admin(username, password);
    if (asAdmin !== undefined) return asAdmin;
    const users = await file.users();
    const [any] = users.values();
    if (any === undefined) return undefined;
    const name = username.normalize('NFC');
    const user = name === config['admin.username'].normalize('NFC') ? undefined : users.get(name);
    try {
      const isRight = await checks.verify(password, user?.hash ?? nobodyLike(any.hash), { address, name });
      return isRight && user !== undefined ? { username: name, role: user.role } : undefined;
    } catch (error) {
      if (error instanceof UncheckedPasswordError) throw unavailable('Too many logins wait to be checked: try again');
      throw error;
    }
  };
};

/** Compares with `admin.api-key` in constant time. */
export const configuredApiKey = (config: LoginConfig): VerifyApiKey => {
  const same = constantTime();
  return (given) => {
    const expected = config['admin.api-key'] ?? '';
    const fits = same([given], [expected]);
    return fits && expected !== ''
      ? { username: API_KEY_USER, role: config['admin.api-key-role'] ?? 'admin' }
      : undefined;
  };
};
