/**
 * Reads of TLS into buffers of our own.
 *
 * TLS decrypts record by record, 16 KB at most, and hands each over in a new buffer of its own: 60,000 of them a gigabyte, a tenth of
 * the receiver's processor time. `onread` would spare that, but a socket that a server has accepted cannot be given it. So its fields are
 * filled here, for both sides. A Node without these fields reads as before, and only speed is lost.
 */
import type { TLSSocket } from 'node:tls';
import type { ReceiveBuffers } from './receive-buffers.js';

/** Names of the symbols under which a socket of Node keeps its `onread`. */
const FIELDS = ['kBuffer', 'kBufferGen', 'kBufferCb'] as const;

/**
 * Reads of `socket` go into `buffers` from now on, and to `deliver`. Bytes that it has read already, and those that come while it is
 * paused, wait in it for `data`, as ever.
 * @param socket paused, its handshake over
 * @returns false: Node does not let us
 */
export const readTlsInto = (socket: TLSSocket, buffers: ReceiveBuffers, deliver: (bytes: Buffer) => void): boolean => {
  const { _handle: handle } = socket as unknown as {
    readonly _handle: { useUserBuffer?: (room: Buffer) => void } | null;
  };
  const symbols = Object.getOwnPropertySymbols(socket);
  const fields = FIELDS.map((name) => symbols.find(({ description }) => description === name));
  const [buffer, next, callback] = fields;
  if (handle?.useUserBuffer === undefined) return false;
  if (buffer === undefined || next === undefined || callback === undefined) return false;
  const taken = (length: number, room: Buffer): boolean => {
    // A record that was under way when reading ended, or one behind bytes that wait.
    if (socket.isPaused() || socket.readableLength > 0) keep(socket, Buffer.from(room.subarray(0, length)));
    else deliver(buffers.take(length));
    return true;
  };
  const room = buffers.next();
  Object.assign(socket, { [buffer]: room, [next]: () => buffers.next(), [callback]: taken });
  handle.useUserBuffer(room);
  return true;
};

/** As Node does without `onread`: beyond what a stream may hold, nothing more is read. */
const keep = (socket: TLSSocket, bytes: Buffer): void => {
  if (!socket.push(bytes)) socket.pause();
};
