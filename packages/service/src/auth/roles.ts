import type { Request, RequestHandler } from 'express';

import { ApiError } from '../errors.js';

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

/** Answers 403 to a caller whose role is a lesser one; to be mounted behind the login. */
export const requireRole =
  (least: Role): RequestHandler =>
  (req, _res, next) => {
    const login = loginOf(req);
    if (login !== undefined && reaches(login.role, least)) next();
    else next(new ApiError('FORBIDDEN', refusal(least, login)));
  };

const refusal = (least: Role, login: Login | undefined): string =>
  login === undefined
    ? `This takes the role ${least}, and nobody has logged in`
    : `This takes the role ${least}, and ${login.username} has the role ${login.role}: ask an admin, or log in as another user`;
