import type { Texts } from './en/index.ts';
import { catalogue } from './index.ts';

export const sendWords = await catalogue<Texts['send']>({
  en: async () => (await import('./en/send.ts')).send,
  fr: async () => (await import('./fr/send.ts')).send,
});
