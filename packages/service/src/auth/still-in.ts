import type { Request } from 'express';

import { reaches } from './roles.js';
import type { Login, Role } from './roles.js';

type Check = () => Login | undefined | Promise<Login | undefined>;

const checks = new WeakMap<Request, Check>();

/** Keeps how the credentials of a request are checked, for answers that last longer than they may be good. */
export const rememberCheck = (req: Request, check: Check): void => {
  checks.set(req, check);
};

/** Whether the credentials of a request are still good for `least`. A check that fails says nothing against them. */
export const isStillIn = async (req: Request, least: Role): Promise<boolean> => {
  const check = checks.get(req);
  if (check === undefined) return true;
  try {
    const login = await check();
    return login !== undefined && reaches(login.role, least);
  } catch {
    return true;
  }
};
