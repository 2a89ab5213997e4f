import { conflict, endpoint, notFound, validation } from '@pesit-node/service';
import type { Answer, Logger, Routes } from '@pesit-node/service';
import { z } from 'zod';

import type { ConfiguredStore } from './configured-store.js';
import { renames } from './schemas.js';

/** The two names of an identifier in a request (design §4). */
type Named<F extends string> = Readonly<Partial<Record<F | 'id', string | undefined>>>;

export interface ConfiguredResource<F extends string, Row extends object, Values extends object, Body> {
  readonly path: string;
  /** Name of the identifier in the path and in bodies, beside `id`. */
  readonly field: F;
  readonly identifier: z.ZodType<string>;
  /** In texts: `partner`, `virtual file`. */
  readonly noun: string;
  readonly create: z.ZodType<Body & Named<F>>;
  readonly update: z.ZodType<Body & Named<F>>;
  readonly answer: z.ZodType;
  /** What may be answered to a request that configures something, besides what is true of all of them. */
  readonly answers?: Readonly<Record<number, Answer>>;
  readonly store: ConfiguredStore<Row, Values>;
  readonly view: (row: Row) => unknown;
  /**
   * The columns of what a request says.
   * @param id what is changed; undefined: it is new
   * @throws {ApiError} when it cannot be had
   */
  readonly valuesOf: (body: Body, id?: string) => Promise<Partial<Values>>;
  /** Of a new one. */
  readonly defaults: Partial<Values>;
  readonly logger: Logger;
}

/** `virtual file` → `Virtual file`, and `virtualFile` in the log. */
const capital = (noun: string): string => noun.charAt(0).toUpperCase() + noun.slice(1);
const logKey = (noun: string): string => noun.replace(/ (\w)/g, (_, first: string) => first.toUpperCase());

/** All verbs of things that are configured by an identifier and otherwise do nothing by themselves. */
export const configuredRoutes = <F extends string, Row extends object, Values extends object, Body extends object>(
  routes: Routes,
  resource: ConfiguredResource<F, Row, Values, Body>,
): void => {
  const { path, field, noun, create, update, answer, answers = {}, store, view, valuesOf, defaults } = resource;
  const params = z.strictObject({ [field]: resource.identifier });
  const idOf = (values: unknown): string => (values as Readonly<Record<F, string>>)[field];
  const missing = { 404: `There is no such ${noun}.` };
  const say = (id: string, what: string, more: object = {}): void => {
    resource.logger.info({ [logKey(noun)]: id, ...more }, `${noun} ${what}`);
  };
  const existing = (row: Row | undefined, id: string): Row => {
    if (row === undefined) throw notFound(capital(noun), id);
    return row;
  };

  routes.resource(path, {
    get: endpoint({ summary: `All ${noun}s`, answers: { 200: z.array(answer) } }, async ({ res }) => {
      res.json((await store.list()).map(view));
    }),
    post: endpoint(
      { summary: `Creates a ${noun}`, body: create, answers: { 201: answer, 409: 'It exists already.', ...answers } },
      async ({ body, res }) => {
        const named: Named<F> = body;
        const id = (named[field] ?? named.id) as string;
        const taken = (): Error => conflict(`${capital(noun)} ${JSON.stringify(id)} exists already`);
        // Before anything is made for it, and once more when it is stored.
        if ((await store.get(id)) !== undefined) throw taken();
        const row = await store.create(id, { ...defaults, ...(await valuesOf(body)) } as Values);
        if (row === undefined) throw taken();
        say(id, 'created');
        res
          .status(201)
          .location(`${path}/${encodeURIComponent(id)}`)
          .json(view(row));
      },
    ),
  });

  routes.resource(`${path}/:${field}`, {
    get: endpoint(
      { summary: `A ${noun}`, params, answers: { 200: answer, ...missing } },
      async ({ params: values, res }) => {
        const id = idOf(values);
        res.json(view(existing(await store.get(id), id)));
      },
    ),
    put: endpoint(
      { summary: `Changes a ${noun}`, params, body: update, answers: { 200: answer, ...missing, ...answers } },
      async ({ params: values, body, res }) => {
        const id = idOf(values);
        const named: Named<F> = body;
        if (renames([named[field], named.id], id)) {
          throw validation([{ field, message: `cannot be changed from ${id}: create another ${noun}` }]);
        }
        existing(await store.get(id), id);
        const row = existing(await store.update(id, await valuesOf(body, id)), id);
        say(id, 'changed', { fields: Object.keys(body) });
        res.json(view(row));
      },
    ),
    delete: endpoint(
      { summary: `Deletes a ${noun}`, params, answers: { 204: 'Deleted.', ...missing } },
      async ({ params: values, res }) => {
        const id = idOf(values);
        if (!(await store.delete(id))) throw notFound(capital(noun), id);
        say(id, 'deleted');
        res.status(204).end();
      },
    ),
  });
};
