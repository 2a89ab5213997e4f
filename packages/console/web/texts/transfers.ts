import type { Texts } from './en/index.ts';
import { catalogue } from './index.ts';

export const transfersWords = await catalogue<Texts['transfers']>({
  en: async () => (await import('./en/transfers.ts')).transfers,
  fr: async () => (await import('./fr/transfers.ts')).transfers,
});
