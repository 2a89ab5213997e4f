import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import type { ScryptOptions } from 'node:crypto';

/** 32 MiB and about 60 ms a check: the cost parameters travel in the hash, so that they can be raised later. */
const LOG_N = 15;
const BLOCK_SIZE = 8;
const PARALLEL = 1;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** A stored hash may not ask for more memory than this, whoever wrote it. */
const MAX_LOG_N = 17;

const FORMAT = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{4,64})\$([A-Za-z0-9+/]{16,128})$/;

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '');

const derive = (password: string, salt: Buffer, length: number, options: ScryptOptions): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, length, options, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });

const cost = (logN: number, r: number, p: number): ScryptOptions => ({
  N: 2 ** logN,
  r,
  p,
  maxmem: 256 * 2 ** logN * r,
});

/** Hash of a password to be stored (PHC form `$scrypt$ln=…,r=…,p=…$salt$hash`), with a salt of its own. */
export const hashPassword = async (password: string): Promise<string> => {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, salt, HASH_BYTES, cost(LOG_N, BLOCK_SIZE, PARALLEL));
  return `$scrypt$ln=${LOG_N},r=${BLOCK_SIZE},p=${PARALLEL}$${unpadded(salt)}$${unpadded(hash)}`;
};

/** Whether `password` gives `stored`, in time that does not depend on where they differ; false for what is no hash of ours. */
export const verifyPassword = async (password: string, stored: string): Promise<boolean> => {
  const [, logN, r, p, salt, hash] = FORMAT.exec(stored) ?? [];
  if (salt === undefined || hash === undefined || Number(logN) > MAX_LOG_N || Number(logN) < 1) return false;
  const expected = Buffer.from(hash, 'base64');
  const options = cost(Number(logN), Number(r), Number(p));
  return timingSafeEqual(await derive(password, Buffer.from(salt, 'base64'), expected.length, options), expected);
};
