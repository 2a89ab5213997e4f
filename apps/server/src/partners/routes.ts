import { hashPassword, validation } from '@pesit-node/service';
import type { Logger, Routes } from '@pesit-node/service';
import type { z } from 'zod';

import { configuredRoutes } from '../configured-routes.js';
import { columnsOf } from '../configured-store.js';
import { partnerId } from '../schemas.js';
import { accessOf, createPartner, operationsOf, partnerAnswer, updatePartner } from './schema.js';
import type { AccessType, UpdatePartner } from './schema.js';
import { productOf } from './seen.js';
import type { PartnerRow, PartnerStore, PartnerValues } from './store.js';

/** A partner as the interface shows it: everything but the password. */
const toPartner = (row: PartnerRow): z.output<typeof partnerAnswer> => ({
  partnerId: row.partner_id,
  id: row.partner_id,
  name: row.name,
  description: row.description,
  enabled: row.enabled,
  allowedOperations: operationsOf(row.access_type),
  accessType: row.access_type,
  allowedFiles: row.allowed_files,
  allowedListeners: row.allowed_listeners,
  maxConnections: row.max_connections,
  preconnectId: row.preconnect_id,
  multiArticle: row.multi_article ?? true,
  concatenation: row.concatenation ?? true,
  lastConnection: row.last_connection?.toISOString() ?? null,
  transferCount: row.transfer_count,
  lastSeen: lastSeen(row),
  traceUntil: row.trace_until?.toISOString() ?? null,
});

/** What its last sessions have shown; null before the first. */
const lastSeen = ({ seen }: PartnerRow) =>
  Object.keys(seen).length === 0 ? null : { ...seen, product: productOf(seen) ?? null };

const accessIn = (body: UpdatePartner): AccessType | undefined =>
  body.accessType ?? (body.allowedOperations && accessOf(body.allowedOperations));

const COLUMNS = {
  name: 'name',
  description: 'description',
  enabled: 'enabled',
  allowedFiles: 'allowed_files',
  allowedListeners: 'allowed_listeners',
  maxConnections: 'max_connections',
  multiArticle: 'multi_article',
  concatenation: 'concatenation',
} as const satisfies Partial<Record<keyof UpdatePartner, keyof PartnerValues>>;

/** Columns of the fields that are there. */
const valuesOf = async (body: UpdatePartner): Promise<Partial<PartnerValues>> => {
  const access = accessIn(body);
  return {
    ...columnsOf<UpdatePartner, PartnerValues>(body, COLUMNS),
    ...(body.password === undefined ? {} : { password_hash: await hashPassword(body.password) }),
    ...(access === undefined ? {} : { access_type: access }),
    ...(await preconnectionOf(body)),
  };
};

/** Without an identifier nothing is asked, and no password is kept. */
const preconnectionOf = async ({
  preconnectId,
  preconnectPassword,
}: UpdatePartner): Promise<Partial<PartnerValues>> => {
  if (preconnectId === null) return { preconnect_id: null, preconnect_password_hash: null };
  const hash = typeof preconnectPassword !== 'string' ? null : await hashPassword(preconnectPassword);
  return {
    ...(preconnectId === undefined ? {} : { preconnect_id: preconnectId }),
    ...(preconnectPassword === undefined ? {} : { preconnect_password_hash: hash }),
  };
};

/** Of a new partner, as far as its request does not say otherwise. */
const DEFAULTS: Omit<PartnerValues, 'password_hash'> = {
  name: null,
  description: null,
  enabled: true,
  access_type: 'BOTH',
  allowed_files: null,
  allowed_listeners: null,
  max_connections: null,
  preconnect_id: null,
  preconnect_password_hash: null,
  multi_article: null,
  concatenation: null,
};

export const partnerRoutes = (routes: Routes, store: PartnerStore, logger: Logger): void => {
  configuredRoutes<'partnerId', PartnerRow, PartnerValues, UpdatePartner>(routes, {
    path: '/api/v1/config/partners',
    field: 'partnerId',
    identifier: partnerId(),
    noun: 'partner',
    create: createPartner,
    update: updatePartner,
    answer: partnerAnswer,
    store,
    view: toPartner,
    valuesOf: async (body, id) => {
      if (typeof body.preconnectPassword === 'string' && id !== undefined) {
        const before = body.preconnectId === undefined ? (await store.get(id))?.preconnect_id : body.preconnectId;
        if (before === null)
          throw validation([{ field: 'preconnectId', message: 'expected beside preconnectPassword' }]);
      }
      return valuesOf(body);
    },
    defaults: DEFAULTS,
    logger,
  });
};
