import type { Texts } from './en/index.ts';
import { catalogue } from './index.ts';

export const certificatesWords = await catalogue<Texts['certificates']>({
  en: async () => (await import('./en/certificates.ts')).certificates,
  fr: async () => (await import('./fr/certificates.ts')).certificates,
});
