/**
 * The server app: logical PeSIT servers (listeners) that partners connect to, to write and to read files.
 *
 * Theory of operation. `main.ts` puts everything together and starts it; nothing else reads the environment. Each resource
 * of the REST interface has a room: `listeners`, `partners`, `virtual-files`, `transfers`, with routes, schema and store;
 * `app.ts` mounts them.
 */
export { createApp } from './app.js';
export type { AppDeps } from './app.js';
export { MIGRATIONS } from './migrations/index.js';
