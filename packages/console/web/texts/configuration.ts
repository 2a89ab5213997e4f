/** The words of the pages that configure, with every field of their forms: fetched with these pages. */
import { computed } from '@preact/signals';

import { configuration as en } from './en/configuration.ts';
import type { Words } from './en/index.ts';
import { configuration as fr } from './fr/configuration.ts';
import { language } from './index.ts';
import type { Language } from './index.ts';

export type Configuration = Words<typeof en>;
export type { FieldWords } from './en/fields.ts';
export type GroupName = keyof Configuration['groups'];

const ALL: Readonly<Record<Language, Configuration>> = { en, fr };

export const words = computed((): Configuration => ALL[language.value]);
