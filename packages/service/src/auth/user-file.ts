import { open } from 'node:fs/promises';

import { reasonOf } from '@pesit-node/ground';
import type { Logger } from '../logging.js';
import { PasswordHashError, readHash } from '../secrets/password-hash.js';
import { API_KEY_USER, ROLES } from './roles.js';
import type { Role } from './roles.js';

export interface User {
  readonly role: Role;
  /** As `npm run hash-password` prints it. */
  readonly hash: string;
}

/** By their names in NFC. */
export type Users = ReadonlyMap<string, User>;

export interface UserFileOptions {
  /** Empty: there is none. Asked each time. */
  readonly path: () => string;
  readonly logger: Logger;
  /** The users are others now. */
  readonly changed: () => void;
  /** Clock, for tests. */
  readonly now?: () => number;
}

const MAX_BYTES = 1_048_576;
const MAX_USERS = 1000;
/** A file may be written twice within one tick of the file system's clock: one that is younger is read each time. */
const SETTLED_MS = 2000;
/** RFC 7617 §2: a user name has no colon. */
const NAME = /^[^\s:#\p{C}][^\s:\p{C}]{0,63}$/u;

const isRole = (text: string): text is Role => (ROLES as readonly string[]).includes(text);

/**
 * A user a line: `name role hash`; empty lines and those that begin with `#` say nothing.
 * @throws Error that names the line and never shows a hash
 */
export const readUsers = (text: string): Users => {
  const users = new Map<string, User>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue;
    const problem = (what: string): Error => new Error(`line ${index + 1}: ${what}`);
    const [given = '', role = '', hash = '', ...rest] = line.trim().split(/\s+/);
    const name = given.normalize('NFC');
    if (hash === '' || rest.length > 0) throw problem('expected three words: name, role and hash');
    if (!NAME.test(name)) throw problem('expected a name of at most 64 characters, without colons');
    if (!isRole(role)) throw problem(`expected a role of: ${ROLES.join(', ')}`);
    try {
      if (readHash(hash).keyId !== undefined) throw new PasswordHashError('the hash is the one of a partner');
    } catch (error) {
      throw problem(`${reasonOf(error)}: make one with npm run hash-password`);
    }
    if (name === API_KEY_USER) throw problem(`${API_KEY_USER} is the name of callers with X-API-Key`);
    if (users.has(name)) throw problem('this name is there twice');
    if (users.size === MAX_USERS) throw problem(`expected at most ${MAX_USERS} users`);
    users.set(name, { role, hash });
  }
  return users;
};

/** The users of `admin.users`, read again when the file has changed; while it cannot be used, the users are those of its last good version. */
export class UserFile {
  readonly #options: UserFileOptions;
  #users: Users = new Map();
  /** The version that was looked at last; '' = one that may still change unseen. */
  #seen = '';
  /** Content of the last good version. */
  #text: string | undefined;
  /** The failure that was told of last. */
  #reported = '';

  constructor(options: UserFileOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async users(): Promise<Users> {
    const path = this.#options.path();
    if (path === '') {
      this.#seen = '';
      if (this.#text !== undefined) this.#take(undefined, new Map());
      return this.#users;
    }
    try {
      await this.#read(path);
    } catch (error) {
      this.#failed(path, reasonOf(error));
    }
    return this.#users;
  }

  async #read(path: string): Promise<void> {
    const file = await open(path);
    try {
      const { ino, size, mtimeNs, ctimeNs, ctimeMs } = await file.stat({ bigint: true });
      const version = `${path} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
      if (version === this.#seen) return;
      if (size > MAX_BYTES) throw new Error(`it is ${size} bytes long, expected at most ${MAX_BYTES}`);
      const text = await file.readFile('utf8');
      if (text !== this.#text) {
        const users = readUsers(text);
        this.#take(text, users);
        this.#options.logger.info({ file: path, users: users.size }, 'read the users of the REST interface');
      }
      this.#reported = '';
      const { now = Date.now } = this.#options;
      this.#seen = now() - Number(ctimeMs) > SETTLED_MS ? version : '';
    } finally {
      await file.close();
    }
  }

  #take(text: string | undefined, users: Users): void {
    this.#text = text;
    this.#users = users;
    this.#options.changed();
  }

  #failed(path: string, reason: string): void {
    const failure = `${path} ${reason}`;
    if (this.#reported === failure) return;
    this.#reported = failure;
    this.#options.logger.error(
      { file: path, reason, users: this.#users.size },
      'admin.users cannot be used: the users are those of its last good version; correct the file',
    );
  }
}
