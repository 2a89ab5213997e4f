import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';

const CHUNK = 1 << 20;

/** Random bytes that no compression can shrink, made as fast as AES makes a key stream. Flushed, so that nothing of it is written while something is measured. */
export async function writeRandomFile(path: string, size: number): Promise<void> {
  const keyStream = createCipheriv('aes-128-ctr', randomBytes(16), randomBytes(16));
  const zeros = Buffer.alloc(CHUNK);
  const file = await open(path, 'wx');
  try {
    for (let written = 0; written < size; written += CHUNK) {
      await file.write(keyStream.update(zeros.subarray(0, Math.min(CHUNK, size - written))));
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

/** SHA-256 of a file, in hex. */
export async function sha256(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: CHUNK }), hash);
  return hash.digest('hex');
}
