/**
 * The words of the pages in the language of the person. Those of the frame and of the login come with the first load, in every
 * language: nobody waits for a second request. Those of the pages come with the pages, in one language (`catalogue`).
 */
import { computed, effect, signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';

import { words as en } from './en/words.ts';
import type { Texts } from './en/index.ts';
import { words as fr } from './fr/words.ts';

type Frame = Pick<Texts, keyof typeof en>;

export const LANGUAGES = { en, fr } as const satisfies Readonly<Record<string, Frame>>;
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

const chosen = signal<Language>(first());
export const language: ReadonlySignal<Language> = chosen;

effect(() => {
  document.documentElement.lang = language.value;
});

export const texts = computed((): Frame => LANGUAGES[language.value]);

interface Part {
  readonly has: (one: Language) => boolean;
  readonly load: (one: Language) => Promise<void>;
}

/** Of every page that was opened. */
const parts: Part[] = [];

/** The words of some pages; their module waits for them, so that no page is shown without. @throws where they cannot be fetched */
export const catalogue = async <T>(files: Readonly<Record<Language, () => Promise<T>>>): Promise<ReadonlySignal<T>> => {
  const known = new Map<Language, T>();
  const part: Part = {
    has: (one) => known.has(one),
    load: async (one) => {
      if (!known.has(one)) known.set(one, await files[one]());
    },
  };
  parts.push(part);
  // The language may change meanwhile.
  while (!part.has(language.value)) await part.load(language.value);
  return computed(() => {
    const words = known.get(language.value);
    if (words === undefined) throw new Error(`The words in ${language.value} were not fetched`);
    return words;
  });
};

/**
 * Keeps the choice, and changes the language as soon as every page that was opened has its words; where they cannot be fetched
 * now, the next load of the console has them.
 */
export const choose = async (wanted: Language): Promise<void> => {
  localStorage.setItem(KEPT, wanted);
  try {
    // A page may be opened meanwhile.
    while (!parts.every((part) => part.has(wanted))) await Promise.all(parts.map((part) => part.load(wanted)));
  } catch {
    return;
  }
  if (localStorage.getItem(KEPT) === wanted) chosen.value = wanted;
};
