import type { Request } from 'express';
import type { Knex } from 'knex';
import { z } from 'zod';

import type { AuditChange, ChangeAudit } from '../audit/audit.js';
import { callerOf } from '../auth/roles.js';
import { capital, conflict, notFound } from '../errors.js';
import type { EventStream } from '../events/event-stream.js';
import { CONFIGURATION_CHANGED } from '../events/events.js';
import type { Answer, Endpoint, Routes } from '../http/routes.js';
import { endpoint } from '../http/validate.js';
import { deletionQuery, IN_USE, refuseUsed } from './deletion.js';
import type { Uses } from './deletion.js';
import { listAnswer, listed } from './lists.js';
import type { ComputedOf, FieldRows, GivenOf, RowOf } from './row.js';
import type { FieldStore } from './store.js';
import type { FieldTable, KeepSecret } from './table.js';

export interface FieldResource<F extends FieldRows, Row extends RowOf<F>> {
  readonly path: string;
  readonly fields: FieldTable<F>;
  readonly store: FieldStore<F, Row>;
  /** The fields of an answer that no column holds. */
  readonly computed: (row: Row) => ComputedOf<F>;
  /** The uses that keep one from being deleted. */
  readonly uses: Uses<Row>;
  /** The stored form of a secret. */
  readonly keep?: KeepSecret;
  /**
   * Checks what a request must satisfy beside its schema, and what must exist before it is stored.
   * @param change what is asked for a new one, or what changes
   * @throws {ApiError} when it cannot be done
   */
  readonly admit?: (change: GivenOf<F>) => Promise<void>;
  /** Answers to a request that configures something, besides those of all requests. */
  readonly answers?: Readonly<Record<number, Answer>>;
  readonly events: EventStream;
  /** Stores each change with its audit entry. */
  readonly audit: ChangeAudit;
}

/** `virtual file` → `virtualFile` in the log. */
const logKey = (noun: string): string => noun.replace(/ (\w)/g, (_, first: string) => first.toUpperCase());

/**
 * All verbs of things that are configured by an identifier and otherwise do nothing by themselves.
 * @returns the endpoint that creates one, to be mounted in another place, too
 */
export const fieldRoutes = <F extends FieldRows, Row extends RowOf<F>>(
  routes: Routes,
  { path, fields, store, computed, uses, keep, admit, answers = {}, events, audit }: FieldResource<F, Row>,
): Endpoint => {
  const { noun, key, answer } = fields;
  const params = z.strictObject({ [key.field]: key.schema });
  const idOf = (values: unknown): string => (values as Readonly<Record<string, string>>)[key.field] as string;
  const missing = { 404: `There is no such ${noun}.` };
  const view = (row: Row) => fields.view(row, computed(row));
  const say = (req: Request, id: string, action: 'created' | 'changed' | 'deleted', more: object = {}): void => {
    const facts = { [logKey(noun)]: id, ...more };
    events.publish(CONFIGURATION_CHANGED, { what: noun, action, facts, by: callerOf(req), recorded: true });
  };
  const audited = (req: Request): AuditChange<Row> => audit.change(fields, callerOf(req));
  const existing = (row: Row | undefined, id: string): Row => {
    if (row === undefined) throw notFound(capital(noun), id, path);
    return row;
  };

  const create = endpoint(
    {
      summary: `Creates a ${noun}`,
      body: fields.create,
      answers: { 201: answer, 409: 'It exists already.', ...answers },
    },
    async ({ body, req, res }) => {
      const id = fields.idOf(body);
      const taken = (): Error => conflict(`${capital(noun)} ${JSON.stringify(id)} exists already`);
      // Before anything is made for it, and once more when it is stored.
      if ((await store.get(id)) !== undefined) throw taken();
      const asked = fields.asked(body);
      await admit?.(asked);
      const row = await store.create(id, await fields.values(asked, keep), audited(req));
      if (row === undefined) throw taken();
      say(req, id, 'created');
      res
        .status(201)
        .location(`${path}/${encodeURIComponent(id)}`)
        .json(view(row));
    },
  );

  routes.resource(path, {
    get: endpoint(
      { summary: `All ${noun}s`, query: fields.list, answers: { 200: listAnswer(answer) } },
      async ({ query, res }) => {
        const { rows, total } = await store.find(query);
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
        res.json(view(existing(await store.get(id), id)));
      },
    ),
    put: endpoint(
      { summary: `Changes a ${noun}`, params, body: fields.update, answers: { 200: answer, ...missing, ...answers } },
      async ({ params: values, body, req, res }) => {
        const id = idOf(values);
        const before = existing(await store.get(id), id);
        const change = fields.changes(body, before);
        if (Object.keys(change).length === 0) return res.json(view(before));
        await admit?.(change);
        const row = existing(await store.update(id, await fields.values(change, keep), undefined, audited(req)), id);
        say(req, id, 'changed', { fields: Object.keys(change) });
        return res.json(view(row));
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
        const unused = async (knex: Knex, row: Row): Promise<void> =>
          refuseUsed(noun, id, await uses.of(knex, row), uses.forced);
        if (!(await store.delete(id, audited(req), force ? undefined : unused)))
          throw notFound(capital(noun), id, path);
        say(req, id, 'deleted', force ? { force } : {});
        res.status(204).end();
      },
    ),
  });
  return create;
};
