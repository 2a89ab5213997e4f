import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

const IV_BYTES = 12;
const TAG_BYTES = 16;
export const KEY_BYTES = 32;

/** A sealed text cannot be opened: the key is not there, or the text was changed or belongs to another place. */
export class SecretError extends Error {
  override readonly name = 'SecretError';
}

/** A key, and the name that is stored beside what it was used for. */
export interface SecretKey {
  readonly id: string;
  readonly bytes: Buffer;
}

/** Eight hex digits of the key's SHA-256: enough to tell the keys of one installation apart, useless to guess a key. */
const keyId = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex').slice(0, 8);

/**
 * Seals what must be read back (remote server passwords): AES-256-GCM, `v1.<key id>.<base64url of iv, data, tag>`.
 * The first key seals; all keys open, so that a key is rotated by putting the new one first and sealing again.
 */
export class SecretBox {
  readonly #keys: readonly [SecretKey, ...SecretKey[]];

  /** @param keys 32 bytes each, at least one. */
  constructor(keys: readonly Buffer[]) {
    const wrong = keys.find((key) => key.length !== KEY_BYTES);
    if (wrong !== undefined) throw new SecretError(`secrets.key: expected ${KEY_BYTES} bytes, got ${wrong.length}`);
    const [first, ...rest] = keys.map((bytes) => ({ id: keyId(bytes), bytes }));
    if (first === undefined) throw new SecretError('secrets.key: expected at least one key, got none');
    this.#keys = [first, ...rest];
  }

  /** Id of the key that seals. */
  get keyId(): string {
    return this.#keys[0].id;
  }

  /** Ids of all keys, in their order. */
  get keyIds(): readonly string[] {
    return this.#keys.map(({ id }) => id);
  }

  /**
   * @param owner where the secret belongs (`remote-server/7/password`); it opens nowhere else, so that a row cannot be
   * given another row's secret.
   */
  seal(plain: string, owner: string): string {
    const { id, bytes } = this.#keys[0];
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', bytes, iv).setAAD(Buffer.from(owner));
    const sealed = Buffer.concat([iv, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `v1.${id}.${sealed.toString('base64url')}`;
  }

  /** @throws {SecretError} when no key fits, or the text was changed or sealed for another owner. */
  open(sealed: string, owner: string): string {
    const [version, id, data] = sealed.split('.');
    if (version !== 'v1' || id === undefined || data === undefined) {
      throw new SecretError('A stored secret has an unknown form: expected v1.<key id>.<data>');
    }
    const key = this.#keys.find((candidate) => candidate.id === id);
    if (key === undefined) {
      throw new SecretError(`A stored secret needs the key ${id}, secrets.key holds ${this.keyIds.join(', ')}`);
    }
    const bytes = Buffer.from(data, 'base64url');
    try {
      const tag = bytes.subarray(bytes.length - TAG_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', key.bytes, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(owner)).setAuthTag(tag);
      const plain = decipher.update(bytes.subarray(IV_BYTES, bytes.length - TAG_BYTES));
      return Buffer.concat([plain, decipher.final()]).toString('utf8');
    } catch (cause) {
      throw new SecretError('A stored secret was changed, or belongs to another place', { cause });
    }
  }

  /** Keys for another purpose, one made of each key (RFC 5869) and with its id; the first one is to be used for what is new. */
  keysFor(purpose: string): readonly [SecretKey, ...SecretKey[]] {
    const derived = ({ id, bytes }: SecretKey): SecretKey => ({
      id,
      bytes: Buffer.from(hkdfSync('sha256', bytes, '', purpose, KEY_BYTES)),
    });
    const [first, ...rest] = this.#keys;
    return [derived(first), ...rest.map(derived)];
  }

  /** Whether a stored secret was sealed with an older key and should be sealed again. */
  isStale(sealed: string): boolean {
    return sealed.split('.')[1] !== this.keyId;
  }
}
