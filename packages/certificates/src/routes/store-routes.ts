import { callerOf, capital, check, conflict, CONFIGURATION_CHANGED, endpoint, notFound } from '@pesit-node/service';
import type { AuditChange, Caller, ChangeAudit, Endpoint, EventStream, Routes } from '@pesit-node/service';
import type { Request, Response } from 'express';
import { z } from 'zod';

import type { Certificates } from '../certificates.js';
import { UploadError, uploadAnswer } from '../faults.js';
import { storeName } from '../fields.js';
import type { StoreKind, StoreUses } from '../ports.js';
import { isForm, readUploadForm } from '../upload-form.js';
import type { UploadForm } from '../upload-form.js';
import type { Shown } from '../views.js';

export interface StoreRoutesDeps {
  readonly certificates: Certificates;
  readonly uses: StoreUses;
  readonly events: EventStream;
  readonly audit: ChangeAudit;
}

/** The store that an upload made, and sentences on the upload. */
interface Outcome<Row> {
  readonly row: Row;
  readonly said: readonly string[];
  /** Names of the fields that changed. */
  readonly fields: readonly string[];
}

/** How one kind of store is configured. */
export interface StoreResource<Row extends { readonly name: string }, Create extends object, Update extends object> {
  readonly kind: StoreKind;
  readonly create: z.ZodType<Create>;
  readonly update: z.ZodType<Update>;
  readonly answer: z.ZodType;
  /** Fields of a form, beside the file. */
  readonly form: z.ZodType;
  /** Fields that the file of a form stands for. @throws {UploadError} */
  readonly fromFile: (file: Buffer) => Readonly<Record<string, string>>;
  /** Bytes of each part of a form. Default: of a store. */
  readonly formBytes?: number;
  readonly store: {
    readonly list: () => Promise<readonly Row[]>;
    readonly get: (name: string) => Promise<Row | undefined>;
    readonly delete: (name: string, audited: AuditChange<Row>) => Promise<boolean>;
  };
  readonly audited: (audit: ChangeAudit, by: Caller | undefined) => AuditChange<Row>;
  readonly view: (row: Row, shown: Shown) => unknown;
  /** @returns undefined when the name is taken. @throws {UploadError} */
  readonly add: (name: string, body: Create, audited: AuditChange<Row>) => Promise<Outcome<Row> | undefined>;
  /** @returns undefined when it is gone. @throws {UploadError} */
  readonly change: (before: Row, body: Update, audited: AuditChange<Row>) => Promise<Outcome<Row> | undefined>;
}

const params = z.strictObject({ name: storeName() });

/** An upload that cannot be used, as an answer. */
const answering = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw error instanceof UploadError ? uploadAnswer(error) : error;
  }
};

/** All verbs of one kind of store. */
export const storeRoutes = <Row extends { readonly name: string }, Create extends object, Update extends object>(
  routes: Routes,
  { certificates, uses, events, audit }: StoreRoutesDeps,
  resource: StoreResource<Row, Create, Update>,
): void => {
  const { kind, create, update, answer, form, store, view } = resource;
  const path = `/api/v1/certificates/${kind}s`;
  const missing = { 404: `There is no such ${kind}.` };
  const refusals = { 422: 'What was given can be read, and not be used: the message says why.' };
  const say = (req: Request, name: string, action: 'created' | 'changed' | 'deleted', more: object = {}): void => {
    const facts = { [kind]: name, ...more };
    events.publish(CONFIGURATION_CHANGED, { what: kind, action, facts, by: callerOf(req), recorded: true });
  };
  const audited = (req: Request): AuditChange<Row> => resource.audited(audit, callerOf(req));
  const existing = (row: Row | undefined, name: string): Row => {
    if (row === undefined) throw notFound(capital(kind), name, path);
    return row;
  };

  const created = (body: Create, req: Request, res: Response): Promise<void> =>
    answering(async () => {
      const { name } = body as { readonly name: string };
      const taken = (): Error => conflict(`${capital(kind)} ${JSON.stringify(name)} exists already`);
      if ((await store.get(name)) !== undefined) throw taken();
      const made = await resource.add(name, body, audited(req));
      if (made === undefined) throw taken();
      say(req, name, 'created');
      await certificates.changed();
      const { row, said } = made;
      res
        .status(201)
        .location(`${path}/${encodeURIComponent(name)}`)
        .json(view(row, { uses: await uses(), said }));
    });

  const changed = (name: string, body: Update, req: Request, res: Response): Promise<void> =>
    answering(async () => {
      const before = existing(await store.get(name), name);
      const { row, said, fields } = (await resource.change(before, body, audited(req))) ?? {
        row: undefined,
        said: [],
        fields: [],
      };
      const after = existing(row, name);
      if (fields.length > 0) {
        say(req, name, 'changed', { fields });
        await certificates.changed();
      }
      res.json(view(after, { uses: await uses(), said }));
    });

  /** The fields of a form, its file among them. */
  const formBody = async (req: Request, res: Response): Promise<object> => {
    const { fields, file }: UploadForm = await readUploadForm(req, res, resource.formBytes);
    return { ...(file === undefined ? {} : resource.fromFile(file)), ...fields };
  };
  /** An endpoint whose body may as well be a form. */
  const orForm = (json: Endpoint, takeForm: Endpoint): Endpoint => ({
    operation: json.operation,
    handle: (req, res, next) => (isForm(req) ? takeForm : json).handle(req, res, next),
  });

  const creates = {
    summary: `Creates a ${kind}`,
    form,
    answers: { 201: answer, 409: 'It exists already.', ...refusals },
  };
  const changes = {
    ...{ summary: `Changes a ${kind}: the next handshake uses it`, params, form },
    answers: { 200: answer, ...missing, ...refusals },
  };

  routes.resource(path, {
    get: endpoint({ summary: `All ${kind}s`, answers: { 200: z.array(answer) } }, async ({ res }) => {
      const shown = { uses: await uses() };
      res.json((await store.list()).map((row) => view(row, shown)));
    }),
    post: orForm(
      endpoint({ ...creates, body: create }, ({ body, req, res }) => created(body, req, res)),
      endpoint(creates, ({ req, res }) =>
        answering(async () => created(check(create, await formBody(req, res), 'body'), req, res)),
      ),
    ),
  });

  routes.resource(`${path}/:name`, {
    get: endpoint(
      { summary: `A ${kind}`, params, answers: { 200: answer, ...missing } },
      async ({ params: { name }, res }) => {
        res.json(view(existing(await store.get(name), name), { uses: await uses() }));
      },
    ),
    put: orForm(
      endpoint({ ...changes, body: update }, ({ params: { name }, body, req, res }) => changed(name, body, req, res)),
      endpoint(changes, ({ params: { name }, req, res }) =>
        answering(async () => changed(name, check(update, await formBody(req, res), 'body'), req, res)),
      ),
    ),
    delete: endpoint(
      {
        ...{ summary: `Deletes a ${kind}`, params },
        answers: { 204: 'Deleted.', ...missing, 409: 'It is in use: the message says by what.' },
      },
      async ({ params: { name }, req, res }) => {
        existing(await store.get(name), name);
        const users = (await uses()).filter((use) => use.kind === kind && use.store === name);
        if (users.length > 0) {
          const named = users.slice(0, 10).map((use) => `${use.what} ${use.name}`);
          throw conflict(
            `${capital(kind)} ${JSON.stringify(name)} is in use by ${named.join(', ')}${users.length > 10 ? ' and others' : ''}: let them use another one first`,
          );
        }
        if (!(await store.delete(name, audited(req)))) throw notFound(capital(kind), name, path);
        say(req, name, 'deleted');
        await certificates.changed();
        res.status(204).end();
      },
    ),
  });
};
