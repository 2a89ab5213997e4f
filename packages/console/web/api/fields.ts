/**
 * The fields of a resource as a form has them: each is a text while somebody types (`Draft`), and the value of a request in the end.
 * Kind and bounds come from the document of the interface (`generated/fields.ts`).
 */
import { fields } from './generated/fields.ts';

export type ResourceName = keyof typeof fields;
export type FieldName<R extends ResourceName> = keyof (typeof fields)[R] & string;

export interface Field {
  /** `choices`: some of several words; `list`: any number of texts. */
  readonly kind: 'text' | 'whole' | 'flag' | 'choice' | 'choices' | 'list';
  /** Null is a value: it is what an empty control says. */
  readonly nullable?: true;
  readonly required?: true;
  /** Never answered. */
  readonly secret?: true;
  /** It identifies the resource, and never changes. */
  readonly key?: true;
  readonly default?: unknown;
  readonly values?: readonly (string | number)[];
  readonly min?: number;
  readonly max?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly patterns?: readonly string[];
}

/** Of a field whose value breaks its bounds. */
export type Fault =
  | { readonly kind: 'required' | 'whole' | 'form' }
  | { readonly kind: 'range'; readonly min: number; readonly max: number | undefined }
  | { readonly kind: 'length' | 'items'; readonly max: number };

/** What is in the controls, by the name of the field. A list has an item a line. */
export type Draft = Readonly<Record<string, string>>;

/** In the place of a secret that is to be none. */
export const NO_SECRET = '\u0000';

export const fieldsOf = (resource: ResourceName): Readonly<Record<string, Field>> => fields[resource];

const isList = ({ kind }: Field): boolean => kind === 'list' || kind === 'choices';

const items = (text: string): readonly string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

/** A value as its control shows it. */
export const textOf = (value: unknown): string => {
  if (value === null || value === undefined) return '';
  if (Array.isArray(value)) return value.map(String).join('\n');
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
};

/** Whether an empty control stands for the default: then the default is its placeholder. */
export const hasPlaceholder = ({ kind, nullable, default: preset }: Field): boolean =>
  preset !== undefined && nullable === undefined && (kind === 'whole' || kind === 'text');

/** The controls of a new one, or of one that is there. */
export const draftOf = (resource: ResourceName, row?: Readonly<Record<string, unknown>>): Draft =>
  Object.fromEntries(
    Object.entries(fieldsOf(resource)).map(([name, field]) => {
      if (row !== undefined) return [name, field.secret ? '' : textOf(row[name])];
      return [name, hasPlaceholder(field) ? '' : textOf(field.default)];
    }),
  );

const valueOf = (field: Field, text: string): unknown => {
  if (isList(field)) return text === '' && field.nullable ? null : items(text);
  if (text === NO_SECRET) return null;
  if (text === '') return field.nullable ? null : field.default;
  if (field.kind === 'whole') return Number(text);
  if (field.kind === 'flag') return text === 'true';
  if (field.kind === 'choice') return field.values?.find((one) => String(one) === text);
  return text;
};

/** The body of a request: for a new one all that is said, else what differs from `before`. */
export const bodyOf = (resource: ResourceName, draft: Draft, before?: Draft): Record<string, unknown> => {
  const said = Object.entries(fieldsOf(resource)).filter(([name, field]) => {
    const text = draft[name] ?? '';
    if (before !== undefined) return text !== before[name];
    // Where null is not the default it has to be said.
    return text === '' || text === NO_SECRET ? field.nullable && field.default !== undefined : true;
  });
  return Object.fromEntries(said.map(([name, field]) => [name, valueOf(field, draft[name] ?? '')]));
};

const textFault = ({ minLength = 0, maxLength, patterns = [] }: Field, text: string): Fault | undefined => {
  if (maxLength !== undefined && text.length > maxLength) return { kind: 'length', max: maxLength };
  if (text.length < minLength) return { kind: 'required' };
  return patterns.every((pattern) => new RegExp(pattern, 'u').test(text)) ? undefined : { kind: 'form' };
};

const numberFault = ({ min = 0, max }: Field, text: string): Fault | undefined => {
  if (!/^-?\d{1,15}$/.test(text)) return { kind: 'whole' };
  return Number(text) < min || (max !== undefined && Number(text) > max) ? { kind: 'range', min, max } : undefined;
};

/** What the service would refuse. @param isNew a secret that is there already may stay unsaid */
export const faultOf = (field: Field, text: string, isNew: boolean): Fault | undefined => {
  if (text === NO_SECRET) return undefined;
  if (isList(field)) {
    const all = items(text);
    const { minItems = 0, maxItems = Infinity, nullable } = field;
    if (all.length > maxItems) return { kind: 'items', max: maxItems };
    if (all.length < minItems && !nullable) return { kind: 'required' };
    return all.map((one) => textFault(field, one)).find((one) => one !== undefined);
  }
  if (text === '') return field.required && (isNew || !field.secret) ? { kind: 'required' } : undefined;
  if (field.kind === 'whole') return numberFault(field, text);
  return field.kind === 'text' ? textFault(field, text) : undefined;
};
