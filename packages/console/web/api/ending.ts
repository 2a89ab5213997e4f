/** Certificates that end soon, or have ended: of keystores and truststores as health tells them, and those that the local CA has issued. */
import type { Health } from './attention.ts';
import { Failure } from './failure.ts';
import { answerOf, serverApp } from './rest.ts';
import { app } from './session.ts';

/** `file`: named by the configuration; `issued`: what somebody else has from the local CA. */
export type EndingKind = 'keystore' | 'truststore' | 'file' | 'issued';

export interface Ending {
  readonly kind: EndingKind;
  readonly name: string;
  /** When it ends, or has ended. */
  readonly until: string;
}

/** What is known of a store beside its end. */
export interface StoreUse {
  readonly usedBy: readonly string[];
  /** The local CA renews it. */
  readonly isManaged: boolean;
}

const DAY_MS = 86_400_000;
const SOON_DAYS = 30;
/** More are not shown one by one. */
export const MOST_ENDING = 10;

const isExpiring = (one: unknown): one is { readonly store: string; readonly notAfter: string } => {
  const { store, notAfter } = (one ?? {}) as Readonly<Record<string, unknown>>;
  return typeof store === 'string' && typeof notAfter === 'string';
};

/** Stores that health tells of, which end within 30 days: asked for already, whatever else is. */
export const endingStores = (health: Health | undefined): readonly Ending[] => {
  const told = health?.components['certificates']?.details?.['expiring'];
  return (Array.isArray(told) ? told : []).filter(isExpiring).map(({ store, notAfter }) => {
    const [kind = '', ...rest] = store.split('/');
    const known = kind === 'keystore' || kind === 'truststore' ? kind : 'file';
    return { kind: known, name: rest.join('/'), until: notAfter };
  });
};

/**
 * Certificates of the local CA that others hold: the newest of each name alone. What ended a month ago is nobody's any longer; those in
 * keystores are told of with these.
 */
export const endingIssued = async (signal: AbortSignal): Promise<readonly Ending[]> => {
  if (app.value === 'client') return [];
  const at = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();
  const period = { from: at(-SOON_DAYS), to: at(SOON_DAYS) };
  const query = { ...period, newest: 'true' as const, sort: 'notAfter,asc', page: '0', size: '100' };
  const { content } = await answerOf(serverApp.GET('/api/v1/certificates/issued', { params: { query }, signal }));
  return content
    .filter(({ keystore }) => keystore === null)
    .map(({ name, notAfter }) => ({ kind: 'issued', name, until: notAfter }));
};

const keyOf = ({ kind, name }: Ending): string => `${kind}/${name}`;

/** By store, what uses it; a store that is gone is left out. */
export const usesOf = async (
  stores: readonly Ending[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, StoreUse>> => {
  const asked = stores.slice(0, MOST_ENDING).map(async (one): Promise<readonly [string, StoreUse] | undefined> => {
    const { kind, name } = one;
    if (kind !== 'keystore' && kind !== 'truststore') return undefined;
    const params = { path: { name } };
    const words = (used: readonly { readonly what: string; readonly name: string }[]): readonly string[] =>
      used.map((by) => `${by.what} ${by.name}`);
    try {
      if (kind === 'truststore') {
        const { usedBy } = await answerOf(serverApp.GET('/api/v1/certificates/truststores/{name}', { params, signal }));
        return [keyOf(one), { usedBy: words(usedBy), isManaged: false }];
      }
      const { usedBy, managed } = await answerOf(
        serverApp.GET('/api/v1/certificates/keystores/{name}', { params, signal }),
      );
      return [keyOf(one), { usedBy: words(usedBy), isManaged: managed }];
    } catch (error) {
      if (error instanceof Failure && error.status === 404) return undefined;
      throw error;
    }
  });
  return new Map((await Promise.all(asked)).filter((one) => one !== undefined));
};

export interface Endings {
  readonly of: readonly Ending[];
  readonly uses: ReadonlyMap<string, StoreUse>;
}

export const useOf = ({ uses }: Endings, one: Ending): StoreUse | undefined => uses.get(keyOf(one));
