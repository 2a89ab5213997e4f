/**
 * Hooks: what is told to others after the outcome of a transfer, by a signed request or an executable (docs/hooks.md).
 *
 * Their way: `tables.ts` orders a delivery with the outcome, `delivery-store.ts` has the statements of the pods that take, settle and give up,
 * `deliverer.ts` takes what is due and tries it again, `webhook.ts` and `executable.ts` make one attempt each. `fields.ts`, `store.ts` and `routes.ts` are
 * the resource, `observers.ts` the log lines, audit entries and figures.
 */
export { HOOK_ATTEMPTED, HOOK_DISABLED } from './events.js';
export { HOOK } from './fields.js';
export { createHooks } from './hooks.js';
export type { Hooks, HooksOptions } from './hooks.js';
export { hookRoutes } from './routes.js';
export type { HookRoutes } from './routes.js';
export { HOOK_SECRETS, sealHooksAnew } from './store.js';
export { createHookTables } from './tables.js';
export { retryAfterOf, signatureOf } from './webhook.js';
