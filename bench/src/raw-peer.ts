/**
 * One side of the raw copy, as a process of its own: `send` serves a file once, `receive` fetches it into a new file. With `hashed` each
 * side computes the SHA-256 of what passes, as both ends of a transfer do.
 *
 * Sizes tuned by trying (256 KiB to 4 MiB, 2 to 8 buffers, `data` events with writev, flushing on the way): 2 MiB and four
 * buffers a side were the fastest in memory. On disk one size differs less from another than one run from the next, so the
 * same are taken there. The receiving side is the one that
 * connects because only there Node lets the kernel fill our own buffers (`onread`), which saves an allocation per 64 KB
 * and gathers what writev would gather. Reading and sending overlap, so do receiving and writing; the file is flushed
 * before the last byte is acknowledged, and the sender's clock stops at that acknowledgement.
 */
import { createHash, type Hash } from 'node:crypto';
import { closeSync, fdatasync, fstatSync, openSync, read, write } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { hrtime } from 'node:process';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import type { Papers } from './papers.js';

const BUFFER_SIZE = 2 << 20;
const BUFFER_COUNT = 4;

/** Messages of a peer to its parent: the port it listens on, or its figures at the end. */
export type PeerMessage =
  { readonly port: number } | { readonly seconds: number; readonly cpuSeconds: number; readonly peakRssMb: number };

/** With them the copy is over TLS, with certificates on both sides, as the node has it. */
const papers = JSON.parse(process.env['BENCH_PAPERS'] ?? 'null') as Papers | null;
const secured = papers && { cert: papers.certificate, key: papers.privateKey, ca: papers.ca };

const buffers = (): Buffer[] => Array.from({ length: BUFFER_COUNT }, () => Buffer.allocUnsafeSlow(BUFFER_SIZE));

const tell = (message: PeerMessage): void => {
  process.send?.(message);
};

const finish = (began: bigint): void => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  tell({
    seconds: Number(hrtime.bigint() - began) / 1e9,
    cpuSeconds: (userCPUTime + systemCPUTime) / 1e6,
    peakRssMb: (maxRSS * 1024) / 1e6,
  });
  process.off('disconnect', orphaned);
  process.disconnect();
};

const pump = (file: number, socket: Socket, hash: Hash | undefined): void => {
  const { size } = fstatSync(file);
  const free = buffers();
  let position = 0;
  let reading = false;
  const next = (): void => {
    if (reading) return;
    if (position >= size) {
      socket.end();
      return;
    }
    const buffer = free.pop();
    if (buffer === undefined) return;
    reading = true;
    read(file, buffer, 0, BUFFER_SIZE, position, (error, length) => {
      if (error !== null) throw error;
      reading = false;
      position += length;
      hash?.update(buffer.subarray(0, length));
      socket.write(buffer.subarray(0, length), () => {
        free.push(buffer);
        if (position < size) next();
      });
      next();
    });
  };
  next();
};

const send = (path: string, hash: Hash | undefined): void => {
  const file = openSync(path, 'r');
  const accept = (socket: Socket): void => {
    const began = hrtime.bigint();
    server.close();
    socket.once('data', () => {
      finish(began);
      socket.destroy();
      closeSync(file);
    });
    pump(file, socket, hash);
  };
  const server =
    secured === null
      ? createServer({ allowHalfOpen: true }, accept)
      : createTlsServer({ ...secured, requestCert: true, allowHalfOpen: true }, accept);
  server.listen(0, '127.0.0.1', () => tell({ port: (server.address() as AddressInfo).port }));
};

const receive = (path: string, port: number, hash: Hash | undefined): void => {
  const began = hrtime.bigint();
  const file = openSync(path, 'wx');
  const free = buffers();
  let current = free.pop()!;
  let filled = 0;
  let position = 0;
  let writing = 0;
  let ended = false;

  const settle = (): void => {
    if (!ended || writing > 0) return;
    fdatasync(file, (error) => {
      if (error !== null) throw error;
      socket.end('k');
      closeSync(file);
      finish(began);
    });
  };
  const store = (): void => {
    const buffer = current;
    const length = filled;
    writing++;
    write(file, buffer, 0, length, position, (error, written) => {
      if (error !== null) throw error;
      if (written !== length) throw new Error(`short write: ${written} of ${length} bytes`);
      writing--;
      free.push(buffer);
      if (socket.isPaused()) socket.resume();
      settle();
    });
    hash?.update(buffer.subarray(0, length));
    position += length;
    current = free.pop()!;
    filled = 0;
  };
  const options = {
    host: '127.0.0.1',
    port,
    allowHalfOpen: true,
    onread: {
      buffer: () => current.subarray(filled),
      callback: (length: number): boolean => {
        filled += length;
        if (filled < BUFFER_SIZE) return true;
        store();
        // The buffer just taken was the last: read on when one comes back.
        if (free.length > 0) return true;
        socket.pause();
        return false;
      },
    },
  };
  const socket: Socket = secured === null ? connect(options) : connectTls({ ...options, ...secured });
  socket.once('end', () => {
    ended = true;
    if (filled > 0) store();
    settle();
  });
};

/** The disk alone: the same writes from memory that is already there, and the flush. */
const writeOnly = (path: string, size: number): void => {
  const began = hrtime.bigint();
  const file = openSync(path, 'wx');
  const pool = buffers();
  for (const buffer of pool) buffer.fill(0x5a);
  let position = 0;
  let writing = 0;
  const next = (buffer: Buffer): void => {
    const length = Math.min(BUFFER_SIZE, size - position);
    if (length === 0) {
      if (writing > 0) return;
      fdatasync(file, (error) => {
        if (error !== null) throw error;
        closeSync(file);
        finish(began);
      });
      return;
    }
    writing++;
    write(file, buffer, 0, length, position, (error) => {
      if (error !== null) throw error;
      writing--;
      next(buffer);
    });
    position += length;
  };
  for (const buffer of pool) next(buffer);
};

// A parent that is gone wants no figures.
const orphaned = (): never => process.exit(1);
process.once('disconnect', orphaned);

const [role, path, argument, hashed] = process.argv.slice(2);
const hash = hashed === 'hashed' ? createHash('sha256') : undefined;
if (role === 'send') send(path!, hash);
else if (role === 'receive') receive(path!, Number(argument), hash);
else writeOnly(path!, Number(argument));
