/**
 * A tar archive of a folder, the same bytes for the same contents (POSIX ustar, then gzip): names in order, one time for all, owner 0,
 * and of the permissions only whether a file may be run. Holds files and folders, no links.
 */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { Failure } from './process.mjs';

const BLOCK = 512;
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;
const LARGEST_SIZE = 8 ** 11 - 1;

/** Paths below `directory` in the order of their bytes, folders before what is in them. */
async function* walk(directory, below = '') {
  const names = (await readdir(join(directory, below))).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  for (const name of names) {
    const path = below === '' ? name : `${below}/${name}`;
    const stats = await lstat(join(directory, path));
    if (stats.isDirectory()) {
      yield { path: `${path}/`, type: '5', size: 0, mode: 0o755 };
      yield* walk(directory, path);
    } else if (stats.isFile()) {
      yield { path, type: '0', size: stats.size, mode: stats.mode & 0o100 ? 0o755 : 0o644 };
    } else {
      throw new Failure(`${join(directory, path)} is neither a file nor a folder: the archive cannot hold it`);
    }
  }
}

/** A long path is cut at a slash: the first part goes into the field `prefix` (POSIX.1-1988, ustar). */
function splitPath(path) {
  if (Buffer.byteLength(path) <= NAME_BYTES) return { prefix: '', name: path };
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (name !== '' && Buffer.byteLength(name) <= NAME_BYTES && Buffer.byteLength(prefix) <= PREFIX_BYTES) {
      return { prefix, name };
    }
  }
  throw new Failure(`${path} is too long a path for a tar archive`);
}

function header({ path, type, size, mode }, seconds) {
  if (size > LARGEST_SIZE) throw new Failure(`${path} is too large for a tar archive: ${size} bytes`);
  const block = Buffer.alloc(BLOCK);
  const text = (value, offset) => block.write(value, offset, 'utf8');
  const octal = (value, offset, length) => text(value.toString(8).padStart(length - 1, '0'), offset);
  const { prefix, name } = splitPath(path);
  text(name, 0);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(seconds, 136, 12);
  block.fill(' ', 148, 156);
  text(type, 156);
  text('ustar', 257);
  text('00', 263);
  octal(0, 329, 8);
  octal(0, 337, 8);
  text(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  text(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

async function* archive(directory, seconds) {
  for await (const entry of walk(directory)) {
    yield header(entry, seconds);
    if (entry.size === 0) continue;
    let read = 0;
    for await (const chunk of createReadStream(join(directory, entry.path))) {
      read += chunk.length;
      yield chunk;
    }
    if (read !== entry.size) throw new Failure(`${join(directory, entry.path)} changed while it was packed`);
    yield Buffer.alloc((BLOCK - (read % BLOCK)) % BLOCK);
  }
  yield Buffer.alloc(2 * BLOCK);
}

/**
 * Packs what is in `directory` into `path`.
 * @param seconds time of every entry, since 1970
 * @returns size of the file in bytes and its SHA-256 in hex
 */
export async function packFolder(directory, path, seconds) {
  const hash = createHash('sha256');
  let bytes = 0;
  await pipeline(
    Readable.from(archive(directory, seconds)),
    createGzip({ level: 9 }),
    async function* (chunks) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        bytes += chunk.length;
        yield chunk;
      }
    },
    createWriteStream(path),
  );
  return { bytes, sha256: hash.digest('hex') };
}
