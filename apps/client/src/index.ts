/**
 * The requester service: it connects to remote PeSIT servers, sends and receives files, and keeps a queue and a history.
 *
 * A request for a transfer becomes a PENDING row (`transfers/`); its content, if it brought one, is in the send tree before.
 * The queue (`exchange/transfer-queue.ts`) takes rows with FOR UPDATE SKIP LOCKED when there is a slot for them and runs
 * each (`exchange/run-transfer.ts`) over a session of the pool: `sending.ts` reads a file of the send tree, `receiving.ts`
 * stages one and delivers it to the received tree after the partner has confirmed the end. How it ended is written in one
 * statement, and told to callers that wait. A transfer costs three statements: insert, take, end; progress and leases are
 * written for all running transfers together, every two seconds. The database guards the statuses with triggers.
 *
 * `main.ts` reads the environment, `node.ts` composes the rest; `createApp` is the REST interface alone.
 */
export { createApp } from './app.js';
export type { AppDeps } from './app.js';
export { CLIENT_MIGRATIONS } from './migrations/index.js';
export { createNode } from './node.js';
export type { NodeOptions } from './node.js';
