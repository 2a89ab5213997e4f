import type { Knex } from 'knex';
import { z } from 'zod';

import { callerOf } from '../auth/roles.js';
import { capital, notFound } from '../errors.js';
import type { Answer, Endpoint, Routes } from '../http/routes.js';
import { endpoint } from '../http/validate.js';
import { deletionQuery, IN_USE, refuseUsed } from './deletion.js';
import type { Uses } from './deletion.js';
import { listAnswer, listed } from './lists.js';
import type { ComputedOf, FieldRows, RowOf } from './row.js';
import type { FieldService } from './service.js';
import type { FieldTable } from './table.js';

export interface FieldResource<F extends FieldRows, Row extends RowOf<F>> {
  readonly path: string;
  readonly fields: FieldTable<F>;
  /** Not asked before the first request. */
  readonly service: FieldService<F, Row>;
  /** The fields of an answer that no column holds. */
  readonly computed: (row: Row) => ComputedOf<F>;
  /** The uses that keep one from being deleted. */
  readonly uses: Uses<Row>;
  /** Answers to a request that configures something, besides those of all requests. */
  readonly answers?: Readonly<Record<number, Answer>>;
}

/**
 * All verbs of things that are configured by an identifier and otherwise do nothing by themselves.
 * @returns the endpoint that creates one, to be mounted in another place, too
 */
export const fieldRoutes = <F extends FieldRows, Row extends RowOf<F>>(
  routes: Routes,
  { path, fields, service, computed, uses, answers = {} }: FieldResource<F, Row>,
): Endpoint => {
  const { noun, key, answer } = fields;
  const params = z.strictObject({ [key.field]: key.schema });
  const idOf = (values: unknown): string => (values as Readonly<Record<string, string>>)[key.field] as string;
  const missing = { 404: `There is no such ${noun}.` };
  const view = (row: Row) => fields.view(row, computed(row));

  const create = endpoint(
    {
      summary: `Creates a ${noun}`,
      body: fields.create,
      answers: { 201: answer, 409: 'It exists already.', ...answers },
    },
    async ({ body, req, res }) => {
      const row = await service.create(body, callerOf(req));
      res
        .status(201)
        .location(`${path}/${encodeURIComponent(fields.idOf(body))}`)
        .json(view(row));
    },
  );

  routes.resource(path, {
    get: endpoint(
      { summary: `All ${noun}s`, query: fields.list, answers: { 200: listAnswer(answer) } },
      async ({ query, res }) => {
        const { rows, total } = await service.store.find(query);
        res.json(listed(query, total, rows.map(view)));
      },
    ),
    post: create,
  });

  routes.resource(`${path}/:${key.field}`, {
    get: endpoint(
      { summary: `A ${noun}`, params, answers: { 200: answer, ...missing } },
      async ({ params: values, res }) => {
        const id = idOf(values);
        res.json(view(service.existing(await service.store.get(id), id)));
      },
    ),
    put: endpoint(
      { summary: `Changes a ${noun}`, params, body: fields.update, answers: { 200: answer, ...missing, ...answers } },
      async ({ params: values, body, req, res }) => {
        res.json(view(await service.change(idOf(values), body, callerOf(req))));
      },
    ),
    delete: endpoint(
      {
        summary: `Deletes a ${noun}`,
        params,
        query: deletionQuery(uses.forced),
        answers: { 204: 'Deleted.', ...missing, 409: IN_USE },
      },
      async ({ params: values, query: { force = false }, req, res }) => {
        const id = idOf(values);
        const by = callerOf(req);
        const unused = async (knex: Knex, row: Row): Promise<void> =>
          refuseUsed(noun, id, await uses.of(knex, row), uses.forced);
        if (!(await service.store.delete(id, service.audited(by), force ? undefined : unused)))
          throw notFound(capital(noun), id, path);
        service.say(id, 'deleted', by, force ? { force } : {});
        res.status(204).end();
      },
    ),
  });
  return create;
};
