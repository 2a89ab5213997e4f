/**
 * The server app: logical PeSIT servers (listeners) that partners connect to, to write and to read files.
 *
 * Theory of operation. `main.ts` puts the process together and alone reads the environment; `node.ts` puts everything else
 * together. Each resource of the REST interface has a room: `listeners`, `partners`, `virtual-files`, `transfers`, with
 * routes, schema and store; `app.ts` mounts them. `admission` decides who may come in and use what. `exchange` is where PeSIT
 * meets them: a `PartnerSession` answers one connection, from `identification` over `access` to an `IncomingFile` or
 * `OutgoingFile`, which know the order in which file, record and acknowledgement become final. `transfers/journal.ts` writes
 * the history, never on the data path, and keeps in an `Outbox` what must be written but cannot be now. A record is also the
 * context of its transfer (`transfers/contexts.ts`). In `recovery`, `Restarts` finds the one that a partner restarts,
 * `Recovery` brings those of dead processes (`transfers/instances.ts`) to their end, `Housekeeping` calls it and removes what
 * nobody restarts.
 */
export { createApp } from './app.js';
export type { AppDeps } from './app.js';
export { MIGRATIONS } from './migrations/index.js';
export { createNode } from './node.js';
export type { NodeOptions, ServerNode } from './node.js';
export { rotateServerSecrets } from './partners/secrets.js';
export { DECLARED_LISTS } from './declared.js';
