/**
 * The requester service: it connects to remote PeSIT servers, sends and receives files, and keeps a queue and a history.
 *
 * A request for a transfer becomes a PENDING row (`transfers/`); its content, if it brought one, is in the send tree before.
 * The queue (`queue/transfer-queue.ts`) takes rows with FOR UPDATE SKIP LOCKED when there is a slot for them, holds a lease
 * with a fence on each (`leases.ts`), and runs them (`exchange/run-transfer.ts`) over sessions of the pool (`sessions/`): `sending.ts` reads a file of
 * the send tree, `receiving.ts` stages one and delivers it to the received tree after the partner has confirmed the end,
 * `messaging.ts` sends a message. An attempt that fails is followed by another (`retry.ts`) with what was kept of the one
 * before: source version and pacing of points in the row, staged data and the note of a delivery on the disk. A small
 * transfer costs three statements, insert, take, end; leases and progress are written for all running transfers together,
 * every two seconds. The database guards the statuses with triggers.
 *
 * `main.ts` reads the environment, `node.ts` composes the rest; `createApp` is the REST interface alone.
 */
export { createApp } from './app.js';
export type { AppDeps } from './app.js';
export { CLIENT_MIGRATIONS } from './migrations/index.js';
export { createNode } from './node.js';
export type { NodeOptions } from './node.js';
export { rotateClientSecrets } from './remote-servers/rotation.js';
export { DECLARED_LISTS } from './declared.js';
