import { callerOf, conflict, endpoint, unavailable, validation } from '@pesit-node/service';
import type { ChangeAudit, Routes } from '@pesit-node/service';
import type { Request } from 'express';
import { z } from 'zod';

import { LICENSE_TYPE_NAMES } from './claims.js';
import { ExtensionCapError, LicenseRefusedError, LicenseTooSmallError } from './errors.js';
import { EXTEND_PATH, LICENSE_PATH } from './gate.js';
import type { LicenseKeeper } from './keeper.js';
import { KEY_SOURCES } from './public-key.js';
import type { LicenseStatus } from './state.js';

const installation = z
  .strictObject({
    license: z
      .string({ error: 'expected the base64 text of the license' })
      .meta({ example: 'ZXlKaGJHY2lPaUpTVXpJMU5pSjkuLi4=' }),
  })
  .meta({ id: 'LicenseInstallation' });
const force = z.strictObject({
  force: z
    .enum(['true', 'false'], { error: 'expected true or false' })
    .transform((text) => text === 'true')
    .optional()
    .meta({ description: 'Install it even if it allows less than the license in force.' }),
});
const date = () => z.string().meta({ format: 'date' });
const limit = () => z.int().meta({ description: '-1 = unlimited.' });

/** Specification, Limits: at most 365 days a call. */
const extension = z.strictObject({
  days: z
    .int({ error: 'expected a whole number from 1 to 365' })
    .min(1, 'expected 1 to 365')
    .max(365, 'expected 1 to 365')
    .meta({ example: 30 }),
});

/** A license, and nothing of an evaluation. */
const EXAMPLE = {
  ...{
    valid: true,
    evaluation: false,
    blocked: false,
    type: 'BUSINESS',
    licenseId: 'L-2026-0042',
    customer: 'Acme Bank',
  },
  ...{ expirationDate: '2027-11-23', daysUntilExpiration: 365, maxClusters: 5, maxPodsPerCluster: -1 },
  message: 'Licensed to Acme Bank (BUSINESS) until 2027-11-23',
};

const status = z
  .object({
    valid: z.boolean(),
    evaluation: z.boolean(),
    blocked: z.boolean(),
    type: z.enum(['EVALUATION', ...LICENSE_TYPE_NAMES]),
    licenseId: z.string().nullable(),
    customer: z.string().nullable(),
    expirationDate: date(),
    daysUntilExpiration: z.int().meta({ description: 'Days that have begun count whole; 0 when it is over.' }),
    maxClusters: limit(),
    maxPodsPerCluster: limit(),
    evaluationStartDate: date().optional(),
    evaluationExpirationDate: date().optional(),
    evaluationDaysRemaining: z.int().optional(),
    message: z.string().meta({ description: 'The state in words, with what to do.' }),
    publicKey: z
      .object({
        source: z.enum(KEY_SOURCES),
        fingerprint: z.string().meta({ description: '`sha256:` and the hash of the key as SPKI DER.' }),
      })
      .meta({
        description:
          'Key that verifies licenses: the one inside the build, that of `license.public-key`, or that of evaluation builds.',
      }),
    maxExtensionDays: z
      .int()
      .nullable()
      .meta({ description: 'Most days that all extensions of the evaluation together add; null = any.' }),
  })
  .meta({
    id: 'License',
    description: 'Exactly one of `valid`, `evaluation` and `blocked` is true.',
    example: EXAMPLE,
  });

const actorOf = ({ user }: Request): string =>
  (user as { readonly username?: string } | undefined)?.username ?? 'administrator';

/** The state, and what of the build it depends on. */
const shown = (state: LicenseStatus, { publicKey, maxExtensionDays }: LicenseKeeper) => {
  const { source, fingerprint } = publicKey;
  return { ...state, publicKey: { source, fingerprint }, maxExtensionDays: maxExtensionDays ?? null };
};

/** A refusal of the keeper, as an answer. */
const toAnswer = (error: unknown): unknown => {
  if (error instanceof LicenseRefusedError) return validation([{ field: 'license', message: error.message }]);
  if (error instanceof LicenseTooSmallError || error instanceof ExtensionCapError) {
    return conflict(error.message, { cause: error });
  }
  return error;
};

/** The license endpoints, open while everything else answers 402. */
export const licenseRoutes = (routes: Routes, keeper: LicenseKeeper, audit: Pick<ChangeAudit, 'entry'>): void => {
  routes.resource(LICENSE_PATH, {
    get: endpoint({ summary: 'The license', access: 'login', answers: { 200: status } }, ({ res }) => {
      if (keeper.status === undefined) throw unavailable('The license has not been read yet: try again');
      res.json(shown(keeper.status, keeper));
    }),
    post: endpoint(
      {
        summary: 'Installs a license',
        audit: ['license', 'installed'],
        recorded: true,
        access: 'login',
        body: installation,
        query: force,
        answers: { 200: status, 409: 'It allows less than the license in force: `?force=true` installs it anyway.' },
      },
      async ({ body, query, req, res }) => {
        try {
          const entry = { by: callerOf(req), action: 'installed', objectType: 'license' };
          const by = { actor: actorOf(req), force: query.force ?? false, audited: audit.entry(entry) };
          res.json(shown(await keeper.install(body.license, by), keeper));
        } catch (error) {
          throw toAnswer(error);
        }
      },
    ),
  });
  routes.resource(EXTEND_PATH, {
    post: endpoint(
      {
        summary: 'Adds days to the evaluation',
        audit: ['license', 'evaluation extended'],
        recorded: true,
        access: 'login',
        body: extension,
        answers: { 200: status, 409: 'The build has a cap on all extensions together, and this would be beyond it.' },
      },
      async ({ body, req, res }) => {
        try {
          const entry = { by: callerOf(req), action: 'evaluation extended', objectType: 'license', details: body };
          res.json(shown(await keeper.extendEvaluation(body.days, actorOf(req), audit.entry(entry)), keeper));
        } catch (error) {
          throw toAnswer(error);
        }
      },
    ),
  });
};
