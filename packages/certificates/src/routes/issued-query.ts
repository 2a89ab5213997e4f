import { pagingFields, periodFields } from '@pesit-node/service';
import type { Knex } from 'knex';
import { z } from 'zod';

const { from, to } = periodFields();

/** Which of the certificates that the local CA has issued are asked for. */
export const issuedQuery = z.strictObject({
  ...pagingFields({
    sortable: { issuedAt: 'issued_at', notAfter: 'not_after', name: 'name', serial: 'serial' },
    defaultSort: 'issuedAt,desc',
  }),
  from: from.meta({ description: 'Those that end then or later: a date or a date-time; without a zone it is UTC.' }),
  to: to.meta({ description: 'Those that end by then; a date includes that day.' }),
  newest: z
    .enum(['true', 'false'], { error: 'expected true or false' })
    .transform((text) => text === 'true')
    .optional()
    .meta({ description: 'Of each name the newest alone, of those that were not revoked.' }),
});

/** Its holder has the newer one of two that were issued under one name. */
const HAS_NEWER = `select 1 from issued_certificates as newer
  where newer.name = issued_certificates.name and newer.revoked_at is null
    and (newer.issued_at, newer.serial) > (issued_certificates.issued_at, issued_certificates.serial)`;

/** Nothing is selected or ordered yet. */
export const issuedAsked = (
  knex: Knex,
  { from: since, to: before, newest }: z.output<typeof issuedQuery>,
): Knex.QueryBuilder =>
  knex('issued_certificates').where((query) => {
    if (since !== undefined) void query.where('not_after', '>=', since);
    if (before !== undefined) void query.where('not_after', '<', before);
    if (newest === true) void query.whereNull('revoked_at').whereRaw(`not exists (${HAS_NEWER})`);
  });
