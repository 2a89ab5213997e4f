import { computed } from '@preact/signals';

import { app, isBlocked, may } from '../api/session.ts';
import type { Role } from '../api/session.ts';
import type { Texts } from '../texts/en/index.ts';

/** A page of the rail: its path, its words, and the key that goes there behind `g`. */
export interface MenuItem {
  readonly path: string;
  readonly name: keyof Texts['pages'];
  readonly key: string;
  readonly apps: readonly ('server' | 'client')[];
  /** Who has less sees nothing of it. Default: viewer. */
  readonly least?: Role;
}

const BOTH = ['server', 'client'] as const;

/** Every page, in the order of the rail. */
const ITEMS: readonly MenuItem[] = [
  { path: '/', name: 'now', key: 'n', apps: BOTH },
  { path: '/transfers', name: 'transfers', key: 't', apps: BOTH },
  { path: '/send', name: 'send', key: 's', apps: ['client'], least: 'operator' },
  { path: '/partners', name: 'partners', key: 'p', apps: ['server'] },
  { path: '/files', name: 'files', key: 'f', apps: ['server'] },
  { path: '/listeners', name: 'listeners', key: 'i', apps: ['server'] },
  { path: '/servers', name: 'servers', key: 'r', apps: ['client'] },
  { path: '/certificates', name: 'certificates', key: 'c', apps: BOTH },
  { path: '/figures', name: 'figures', key: 'm', apps: BOTH },
  { path: '/audit', name: 'audit', key: 'a', apps: BOTH, least: 'operator' },
  { path: '/cluster', name: 'cluster', key: 'k', apps: BOTH },
  { path: '/license', name: 'license', key: 'l', apps: BOTH },
];

/** What the app of the page has. */
export const menu = computed(() =>
  ITEMS.filter(
    ({ apps, name, least = 'viewer' }) =>
      apps.includes(app.value) && may(least) && (!isBlocked.value || name === 'license'),
  ),
);
