import type { Request } from 'express';

import type { Caller } from '../audit/entry.js';
import { ApiError } from '../errors.js';
import { withoutPort } from './login-guard.js';

/** Each may do all that those before it may: a viewer reads, an operator moves files and runs listeners, an admin configures. */
export const ROLES = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** Name of callers who log in with `X-API-Key`. */
export const API_KEY_USER = 'api-key';

/** Who has logged in. */
export interface Login {
  readonly username: string;
  readonly role: Role;
}

/** Undefined where nobody has logged in. */
export const loginOf = (req: Pick<Request, 'user'>): Login | undefined => req.user as Login | undefined;

/** Whether `role` may do what `least` may. */
export const reaches = (role: Role, least: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(least);

/** @throws {ApiError} 403 for a caller whose role is a lesser one, and for one who has not logged in */
export const requireRole = (req: Pick<Request, 'user'>, least: Role): void => {
  const login = loginOf(req);
  if (login === undefined || !reaches(login.role, least)) throw new ApiError('FORBIDDEN', refusal(least, login));
};

/** Undefined where nobody has logged in. */
export const callerOf = (req: Pick<Request, 'user' | 'ip'>): Caller | undefined => {
  const login = loginOf(req);
  return login === undefined ? undefined : { actor: login.username, address: withoutPort(req.ip ?? 'unknown') };
};

const refusal = (least: Role, login: Login | undefined): string =>
  login === undefined
    ? `This takes the role ${least}, and nobody has logged in`
    : `This takes the role ${least}, and ${login.username} has the role ${login.role}: ask an admin, or log in as another user`;
