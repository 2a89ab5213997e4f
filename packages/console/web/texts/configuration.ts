/** The words of the pages that configure, with every field of their forms. */
import type { configuration as english } from './en/configuration.ts';
import type { Words } from './en/index.ts';
import { catalogue } from './index.ts';

export type Configuration = Words<typeof english>;
export type { FieldWords } from './en/fields.ts';
export type GroupName = keyof Configuration['groups'];

export const words = await catalogue<Configuration>({
  en: async () => (await import('./en/configuration.ts')).configuration,
  fr: async () => (await import('./fr/configuration.ts')).configuration,
});
