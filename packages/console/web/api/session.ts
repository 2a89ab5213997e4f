/**
 * Who is logged in. The credentials live in this module alone, for as long as the page does: in no storage of the browser, in no
 * cookie, and in no dialog of its own (requests are made with `credentials: 'omit'`).
 */
import { computed, signal } from '@preact/signals';

import { failureOf } from './failure.ts';
import type { components } from './generated/server.ts';

export type Login = components['schemas']['Login'];
export type Role = Login['role'];

interface Session {
  readonly authorization: string;
  readonly login: Login;
  /** The license lets nothing else be asked than the license itself: not even who this is. */
  readonly isBlocked: boolean;
}

const session = signal<Session | undefined>(undefined);

/** Why the login form is there again; undefined at first. */
export const ended = signal<'loggedOut' | 'refused' | undefined>(undefined);

export const login = computed(() => session.value?.login);

export const isBlocked = computed(() => session.value?.isBlocked === true);

/** Which app serves the page. */
export const app = computed((): 'server' | 'client' => (login.value?.name === 'pesit-client' ? 'client' : 'server'));

const ORDER: readonly Role[] = ['viewer', 'operator', 'admin'];

/** Whether the person may do what takes this role. */
export const may = (least: Role): boolean => {
  const role = login.value?.role;
  return role !== undefined && ORDER.indexOf(role) >= ORDER.indexOf(least);
};

/** Value of `Authorization`; empty when nobody is logged in. */
export const authorization = (): string => session.value?.authorization ?? '';

/** RFC 7617 §2.1: UTF-8. */
const basic = (username: string, password: string): string => {
  const bytes = new TextEncoder().encode(`${username}:${password}`);
  return `Basic ${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))}`;
};

/** @throws {Failure} when the service refuses them; whatever fetch throws when it cannot be asked */
export const logIn = (username: string, password: string): Promise<void> => enter(username, basic(username, password));

const enter = async (username: string, given: string): Promise<void> => {
  const response = await fetch('/api/v1/login', {
    headers: { Authorization: given, Accept: 'application/json' },
    credentials: 'omit',
    cache: 'no-store',
    signal: AbortSignal.timeout(15_000),
  });
  const body: unknown = await response.json().catch(() => undefined);
  ended.value = undefined;
  if (response.status === 402) {
    // 401 comes before 402: the service knows them. Whether they may install a license it says when they do.
    const unknown: Login = { username, role: 'admin', name: '', version: '', peerUrl: null };
    session.value = { authorization: given, login: unknown, isBlocked: true };
    return;
  }
  if (!response.ok) throw failureOf(response, body);
  session.value = { authorization: given, login: body as Login, isBlocked: false };
};

/** Asks anew who this is, once the license no longer blocks. */
export const logInAgain = async (): Promise<void> => {
  const known = session.value;
  if (known?.isBlocked === true) await enter(known.login.username, known.authorization);
};

/** @param why `refused`: the service no longer takes what was given (a changed password, a removed user) */
export const logOut = (why: 'loggedOut' | 'refused' = 'loggedOut'): void => {
  session.value = undefined;
  ended.value = why;
};
