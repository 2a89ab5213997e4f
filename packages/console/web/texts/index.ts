/** The words of the pages in the language of the person, and numbers and times as that language writes them. */
import { computed, effect, signal } from '@preact/signals';

import { en } from './en/index.ts';
import type { Texts } from './en/index.ts';
import { fr } from './fr/index.ts';

export const LANGUAGES = { en, fr } as const satisfies Readonly<Record<string, Texts>>;
export type Language = keyof typeof LANGUAGES;

/** A choice of the person; it says nothing that must not be kept. */
const KEPT = 'pesit.language';

const isLanguage = (name: string | null): name is Language => name !== null && Object.hasOwn(LANGUAGES, name);

const first = (): Language => {
  const kept = localStorage.getItem(KEPT);
  if (isLanguage(kept)) return kept;
  const spoken = navigator.languages.map((tag) => tag.slice(0, 2)).find(isLanguage);
  return spoken ?? 'en';
};

export const language = signal<Language>(first());

effect(() => {
  document.documentElement.lang = language.value;
});

export const choose = (chosen: Language): void => {
  localStorage.setItem(KEPT, chosen);
  language.value = chosen;
};

export const texts = computed((): Texts => LANGUAGES[language.value]);
