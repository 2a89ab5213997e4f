import type { Texts } from './en/index.ts';
import { catalogue } from './index.ts';

export const recordWords = await catalogue<Texts['record']>({
  en: async () => (await import('./en/record.ts')).record,
  fr: async () => (await import('./fr/record.ts')).record,
});
