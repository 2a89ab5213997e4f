import type { Texts } from './en/index.ts';
import { catalogue } from './index.ts';

export const figuresWords = await catalogue<Texts['figures']>({
  en: async () => (await import('./en/figures.ts')).figures,
  fr: async () => (await import('./fr/figures.ts')).figures,
});
