import type { Texts } from './en/index.ts';
import { catalogue } from './index.ts';

export const nowWords = await catalogue<Texts['now']>({
  en: async () => (await import('./en/now.ts')).now,
  fr: async () => (await import('./fr/now.ts')).now,
});
