import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Express, RequestHandler } from 'express';

import { reaches, ROLES } from '../auth/roles.js';
import type { Login, Role } from '../auth/roles.js';
import { operationsOfApp } from '../http/app.js';
import { roleOf } from '../http/routes.js';
import type { Method, Operation } from '../http/routes.js';
import { hashPassword } from '../secrets/password.js';

const PASSWORD = 'of-each-role';

/** Stands for a login, in front of routes that are mounted by themselves. */
export const loggedIn: RequestHandler = (req, _res, next) => {
  req.user = { username: 'tester', role: 'admin' } satisfies Login;
  next();
};

/** A file for `admin.users` with a user for each role, `the-viewer` and so on. */
export const usersOfRoles = async (): Promise<{ readonly path: string; remove(): void }> => {
  const directory = mkdtempSync(join(tmpdir(), 'pesit-users-'));
  const hash = await hashPassword(PASSWORD, { logN: 10, r: 8, p: 1 });
  const path = join(directory, 'users');
  writeFileSync(path, ROLES.map((role) => `the-${role} ${role} ${hash}\n`).join(''));
  return { path, remove: () => rmSync(directory, { recursive: true }) };
};

/** Its answer is events, as long as somebody reads: nobody has a lesser role than who may. */
const isEndless = ({ answers }: Operation): boolean => {
  const answer = answers[200];
  return typeof answer === 'object' && 'events' in answer;
};

/**
 * Calls every operation that needs a login with the least role that may, and with the one below: parameters name nothing that is
 * there, and bodies are left out.
 * @returns the calls whose answer is not as declared, and how many there were
 */
export const roleViolations = async (
  app: Express,
  send: (method: Method, path: string, user: string, password: string) => PromiseLike<{ readonly status: number }>,
): Promise<{ readonly wrong: readonly string[]; readonly calls: number }> => {
  const wrong: string[] = [];
  let calls = 0;
  const call = async (method: Method, path: string, role: Role, may: boolean): Promise<void> => {
    const { status } = await send(method, path, `the-${role}`, PASSWORD);
    calls += 1;
    if ((status === 403) === may || status === 401) wrong.push(`${role} ${method} ${path} → ${status}`);
  };
  for (const { method, path, operation } of operationsOfApp(app)) {
    if (operation.access === 'open' || isEndless(operation)) continue;
    const least = roleOf(method, operation);
    const target = path.replace(/:\w+/g, '0');
    await call(method, target, least, true);
    const below = ROLES.filter((role) => !reaches(role, least)).at(-1);
    if (below !== undefined) await call(method, target, below, false);
  }
  return { wrong, calls };
};
