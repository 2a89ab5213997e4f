import { conflict, endpoint, resource, unavailable, validation } from '@pesit-node/service';
import type { IRouter, Request } from 'express';
import { z } from 'zod';

import { LicenseRefusedError, LicenseTooSmallError } from './errors.js';
import { EXTEND_PATH, LICENSE_PATH } from './gate.js';
import type { LicenseKeeper } from './keeper.js';

const installation = z.strictObject({
  license: z.string({ error: 'expected the base64 text of the license' }),
});
const force = z.strictObject({
  force: z
    .enum(['true', 'false'], { error: 'expected true or false' })
    .transform((text) => text === 'true')
    .optional(),
});
/** Specification, Limits: at most 365 days a call. */
const extension = z.strictObject({
  days: z
    .int({ error: 'expected a whole number from 1 to 365' })
    .min(1, 'expected 1 to 365')
    .max(365, 'expected 1 to 365'),
});

const actorOf = ({ user }: Request): string =>
  (user as { readonly username?: string } | undefined)?.username ?? 'administrator';

/** What the keeper refuses, as an answer. */
const toAnswer = (error: unknown): unknown => {
  if (error instanceof LicenseRefusedError) return validation([{ field: 'license', message: error.message }]);
  if (error instanceof LicenseTooSmallError) return conflict(error.message, { cause: error });
  return error;
};

/** The license endpoints, open while everything else answers 402. */
export const licenseRoutes = (router: IRouter, keeper: LicenseKeeper): void => {
  resource(router, LICENSE_PATH, {
    get: endpoint({}, ({ res }) => {
      if (keeper.status === undefined) throw unavailable('The license has not been read yet: try again');
      res.json(keeper.status);
    }),
    post: endpoint({ body: installation, query: force }, async ({ body, query, req, res }) => {
      try {
        res.json(await keeper.install(body.license, { actor: actorOf(req), force: query.force ?? false }));
      } catch (error) {
        throw toAnswer(error);
      }
    }),
  });
  resource(router, EXTEND_PATH, {
    post: endpoint({ body: extension }, async ({ body, req, res }) => {
      res.json(await keeper.extendEvaluation(body.days, actorOf(req)));
    }),
  });
};
