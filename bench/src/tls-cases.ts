import type { Case } from './cases.js';

/** Rows over TLS, beside a raw copy over TLS; certificates on both sides. */
export const TLS_CASES: readonly Case[] = [
  { name: 'raw-tls-disk', stage: 'disk over TLS', raw: 'yardstick', run: (stage) => stage.raw() },
  { name: 'tls-push-disk', stage: 'disk over TLS', raw: 'compared', run: (stage) => stage.transfer('push') },
  { name: 'tls-pull-disk', stage: 'disk over TLS', raw: 'compared', run: (stage) => stage.transfer('pull') },
  { name: 'raw-tls-memory', stage: 'memory over TLS', raw: 'yardstick', run: (stage) => stage.raw() },
  { name: 'tls-push-memory', stage: 'memory over TLS', raw: 'compared', run: (stage) => stage.transfer('push') },
  { name: 'tls-pull-memory', stage: 'memory over TLS', raw: 'compared', run: (stage) => stage.transfer('pull') },
];
