import { PasswordHasher, SecretBox } from '@pesit-node/service';

export const secrets = new SecretBox([Buffer.alloc(32, 7)]);

/** At the least cost that a stored hash may have: hashing is slow on purpose, and tests log in often. */
export const passwords = new PasswordHasher(secrets, { logN: 10, r: 8, p: 1 });
