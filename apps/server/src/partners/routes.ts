import { conflict, endpoint, hashPassword, notFound, validation } from '@pesit-node/service';
import type { Logger, Routes } from '@pesit-node/service';
import { z } from 'zod';

import { partnerId, renames } from '../schemas.js';
import { accessOf, createPartner, operationsOf, partnerAnswer, updatePartner } from './schema.js';
import type { AccessType, UpdatePartner } from './schema.js';
import { productOf } from './seen.js';
import type { PartnerRow, PartnerStore, PartnerValues } from './store.js';

const PATH = '/api/v1/config/partners';

const NOT_FOUND = { 404: 'There is no such partner.' };

/** A partner as the interface shows it: everything but the password. */
const toPartner = (row: PartnerRow): z.output<typeof partnerAnswer> => ({
  partnerId: row.partner_id,
  id: row.partner_id,
  name: row.name,
  description: row.description,
  enabled: row.enabled,
  allowedOperations: operationsOf(row.access_type),
  accessType: row.access_type,
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

/** Columns of the fields that are there. */
const valuesOf = async (body: UpdatePartner): Promise<Partial<PartnerValues>> => {
  const access = accessIn(body);
  return {
    ...(body.name === undefined ? {} : { name: body.name }),
    ...(body.description === undefined ? {} : { description: body.description }),
    ...(body.password === undefined ? {} : { password_hash: await hashPassword(body.password) }),
    ...(body.enabled === undefined ? {} : { enabled: body.enabled }),
    ...(access === undefined ? {} : { access_type: access }),
    ...(body.maxConnections === undefined ? {} : { max_connections: body.maxConnections }),
    ...(body.multiArticle === undefined ? {} : { multi_article: body.multiArticle }),
    ...(body.concatenation === undefined ? {} : { concatenation: body.concatenation }),
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

export const partnerRoutes = (routes: Routes, store: PartnerStore, logger: Logger): void => {
  const params = z.strictObject({ partnerId: partnerId() });

  routes.resource(PATH, {
    get: endpoint({ summary: 'All partners', answers: { 200: z.array(partnerAnswer) } }, async ({ res }) => {
      res.json((await store.list()).map(toPartner));
    }),
    post: endpoint(
      { summary: 'Creates a partner', body: createPartner, answers: { 201: partnerAnswer, 409: 'It exists already.' } },
      async ({ body, res }) => {
        const id = (body.partnerId ?? body.id) as string;
        const created = await store.create(id, {
          name: null,
          description: null,
          enabled: true,
          access_type: 'BOTH',
          max_connections: null,
          preconnect_id: null,
          preconnect_password_hash: null,
          multi_article: null,
          concatenation: null,
          ...(await valuesOf(body)),
        } as PartnerValues);
        if (created === undefined) throw conflict(`Partner ${JSON.stringify(id)} exists already`);
        logger.info({ partner: id }, 'partner created');
        res
          .status(201)
          .location(`${PATH}/${encodeURIComponent(id)}`)
          .json(toPartner(created));
      },
    ),
  });

  routes.resource(`${PATH}/:partnerId`, {
    get: endpoint(
      { summary: 'A partner', params, answers: { 200: partnerAnswer, ...NOT_FOUND } },
      async ({ params: { partnerId: id }, res }) => {
        const row = await store.get(id);
        if (row === undefined) throw notFound('Partner', id);
        res.json(toPartner(row));
      },
    ),
    put: endpoint(
      { summary: 'Changes a partner', params, body: updatePartner, answers: { 200: partnerAnswer, ...NOT_FOUND } },
      async ({ params: { partnerId: id }, body, res }) => {
        if (renames([body.partnerId, body.id], id)) {
          throw validation([{ field: 'partnerId', message: `cannot be changed from ${id}: create another partner` }]);
        }
        const row = await store.update(id, await valuesOf(body));
        if (row === undefined) throw notFound('Partner', id);
        logger.info({ partner: id, fields: Object.keys(body) }, 'partner changed');
        res.json(toPartner(row));
      },
    ),
    delete: endpoint(
      { summary: 'Deletes a partner', params, answers: { 204: 'Deleted.', ...NOT_FOUND } },
      async ({ params: { partnerId: id }, res }) => {
        if (!(await store.delete(id))) throw notFound('Partner', id);
        logger.info({ partner: id }, 'partner deleted');
        res.status(204).end();
      },
    ),
  });
};
