import { z } from 'zod';

import { readOnly } from '../http/schemas.js';
import { disagreements, namesOf, otherNames } from './names.js';
import type { FieldName } from './names.js';
import type { FieldRow, FieldRows } from './row.js';

const isRequired = ({ default: preset, unset, otherwise, readOnly: never, notBuilt }: FieldRow): boolean =>
  [preset, unset, otherwise, never, notBuilt].every((value) => value === undefined);

/** Description of a field under one of its names, for the document. */
const wordsOf = ({ name, field, row, schema }: FieldName, more?: string): { readonly description?: string } => {
  const isForm = schema !== row.schema;
  const said = [
    name === field ? undefined : `Another ${isForm ? 'form' : 'name'} of \`${field}\`.`,
    isForm ? schema.description : (row.words ?? schema.description),
    row.notBuilt === undefined ? undefined : 'Not built in this version.',
    row.unset === undefined ? undefined : `null: ${row.unset}.`,
    row.otherwise === undefined ? undefined : `Left out: ${row.otherwise}.`,
    more,
  ].filter((text) => text !== undefined);
  return said.length === 0 ? {} : { description: said.join(' ') };
};

const requested = ({ row, schema }: FieldName): z.ZodType =>
  row.unset !== undefined || row.notBuilt !== undefined ? schema.nullable() : schema;

/** The example of a field as an answer shows it under one of its names. */
const exampleOf = ({ row, schema }: FieldName): unknown => {
  const { example, exampleShown, default: preset, notBuilt } = row;
  if (exampleShown !== undefined) return exampleShown;
  if (example !== undefined && schema === row.schema) return example;
  // Another form of it shows the same stored value.
  const stored = example === undefined ? (preset ?? notBuilt) : row.schema.parse(example);
  return stored !== undefined && schema instanceof z.ZodCodec ? z.encode(schema, stored) : stored;
};

const shownBy = (example: unknown): { readonly example?: unknown } => (example === undefined ? {} : { example });

const inCreate = (one: FieldName): z.ZodType => {
  const { row, name, field } = one;
  if (row.readOnly) return readOnly();
  const example = name === field ? shownBy(row.example) : {};
  if (isRequired(row) && otherNames(row).length === 0) return requested(one).meta({ ...wordsOf(one), ...example });
  const preset = row.default === undefined || name !== field ? {} : { default: row.default };
  return requested(one)
    .optional()
    .meta({ ...preset, ...wordsOf(one), ...example });
};

/** A field that no request sets is still accepted, so that an answer can be put back. */
const inUpdate = (one: FieldName): z.ZodType => {
  if (!one.row.readOnly) return requested(one).optional().meta(wordsOf(one));
  const said = wordsOf(one, one.row.key ? 'Does not change.' : 'Ignored here.');
  return z
    .unknown()
    .optional()
    .meta({ readOnly: true, ...said });
};

const inAnswer = (one: FieldName): z.ZodType => {
  const { row, schema } = one;
  const shown = schema instanceof z.ZodCodec ? (schema.def.in as z.ZodType) : schema;
  const schemaInAnswer = row.unset !== undefined || row.notBuilt === null ? shown.nullable() : shown;
  return schemaInAnswer.meta({ ...wordsOf(one), ...shownBy(exampleOf(one)) });
};

const shapeOf = (names: readonly FieldName[], schemaOf: (one: FieldName) => z.ZodType) =>
  Object.fromEntries(names.map((one) => [one.name, schemaOf(one)]));

/** Fields that are required, and may come by one of several names. */
const groupsOf = (rows: FieldRows): readonly (readonly string[])[] =>
  Object.entries(rows)
    .filter(([, row]) => isRequired(row) && otherNames(row).length > 0)
    .map(([field, row]) => [field, ...otherNames(row)]);

/** Complains of names of one field that say different things, and of required fields that came by none of theirs. */
const complainOfNames =
  (rows: FieldRows) =>
  (body: Readonly<Record<string, unknown>>, refinement: z.RefinementCtx): void => {
    const complain = (field: string, message: string): void =>
      refinement.addIssue({ code: 'custom', path: [field], message });
    for (const { field, message } of disagreements(rows, body)) complain(field, message);
    for (const [field = '', ...others] of groupsOf(rows)) {
      if ([field, ...others].some((name) => body[name] !== undefined)) continue;
      complain(field, `expected ${field} (or ${others.join(', ')})`);
    }
  };

/** The body of a request that creates one, `Create…` in the document. */
export const createSchema = (rows: FieldRows, id: string): z.ZodType => {
  const groups = groupsOf(rows);
  const words = groups.map((names) => `${names.map((name) => `\`${name}\``).join(', or ')}, is required.`);
  return z
    .strictObject(shapeOf(namesOf(rows), inCreate))
    .superRefine(complainOfNames(rows))
    .meta({ id: `Create${id}`, ...(words.length === 0 ? {} : { description: words.join(' ') }) });
};

/** `password` → `passwordFile`: the name under which the configuration file says where a secret stands. */
export const secretFileOf = (field: string): string => `${field}File`;

/** A path that the configuration file may name. */
const LONGEST_PATH = 4096;

/**
 * One of them in a list of the configuration file: the body of a request that creates one, but that a secret may be left out (that of
 * one that exists stays), and may stand in a file of its own.
 */
export const declaredSchema = (rows: FieldRows): z.ZodType<Readonly<Record<string, unknown>>> => {
  const secrets = Object.entries(rows).flatMap(([field, { secret }]) => (secret ? [field] : []));
  const inList = (one: FieldName): z.ZodType => (one.row.secret ? inCreate(one).optional() : inCreate(one));
  return z
    .strictObject({
      ...shapeOf(namesOf(rows), inList),
      ...Object.fromEntries(
        secrets.map((field) => [secretFileOf(field), z.string().min(1).max(LONGEST_PATH).optional()]),
      ),
    })
    .superRefine((body: Readonly<Record<string, unknown>>, refinement) => {
      complainOfNames(rows)(body, refinement);
      for (const field of secrets) {
        const file = secretFileOf(field);
        if (body[field] === undefined || body[file] === undefined) continue;
        refinement.addIssue({ code: 'custom', path: [file], message: `expected ${field}, or ${file}, not both` });
      }
    });
};

const UPDATE_WORDS =
  `Absent fields stay as they are. A GET answer can be put back: a field that is as it was changes nothing,
and of two names of one field the one that differs counts.`.replaceAll('\n', ' ');

/** The body of a request that changes one, `Update…` in the document. @param example of such a body */
export const updateSchema = (rows: FieldRows, id: string, example?: object): z.ZodType =>
  z
    .strictObject(shapeOf(namesOf(rows), inUpdate))
    .meta({ id: `Update${id}`, description: UPDATE_WORDS, ...shownBy(example) });

/** An answer. */
export const answerSchema = (rows: FieldRows, id: string): z.ZodObject => {
  const shown = namesOf(rows).filter(({ row }) => !row.secret);
  return z.object(shapeOf(shown, inAnswer)).meta({ id });
};
