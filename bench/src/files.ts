import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';

const CHUNK = 1 << 20;

/** Random bytes that no compression can shrink, made as fast as AES makes a key stream. Flushed, so that nothing of it is written while something is measured. */
export const writeRandomFile = async (path: string, size: number): Promise<void> => {
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
};

/** Writes what `next` makes of the number of each piece, until the file has about `size` bytes. */
const writePieces = async (path: string, size: number, next: (index: number) => string): Promise<void> => {
  const file = await open(path, 'wx');
  try {
    for (let written = 0, index = 0; written < size;) {
      const pieces: string[] = [];
      for (let length = 0; length < CHUNK && written + length < size; index++) {
        const piece = next(index);
        pieces.push(piece);
        length += piece.length;
      }
      written += (await file.write(Buffer.from(pieces.join(''), 'latin1'))).bytesWritten;
    }
    await file.sync();
  } finally {
    await file.close();
  }
};

/** Numbered records of 80 bytes, each followed by `end`. */
export const writeRecords = (path: string, size: number, end: '' | '\n'): Promise<void> => {
  const rest = 'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ.:';
  return writePieces(path, size, (index) => `${index.toString(16).padStart(15, '0')} ${rest}${end}`);
};

/** A listing as accounting programs print it: columns filled with blanks or zeros, most of a line like the one before. */
export const writeListing = (path: string, size: number): Promise<void> =>
  writePieces(path, size, (index) => {
    const amount = ((index * 7919) % 1_000_003).toString().padStart(15, '0');
    const name = `CUSTOMER ${(index % 977).toString(36).toUpperCase()}`.padEnd(35);
    const day = (20_270_101 + (Math.floor(index / 1000) % 28)).toString();
    return `ORDER ${index.toString().padStart(10, '0')} ${day} ${name}${amount} EUR ${'PAID'.padEnd(12)}FR7612345${'.'.repeat(20)}\n`;
  });

/** SHA-256 of a file, in hex. */
export const sha256 = async (path: string): Promise<string> => {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: CHUNK }), hash);
  return hash.digest('hex');
};
