import type { Texts } from './en/index.ts';
import { catalogue } from './index.ts';

export const auditWords = await catalogue<Texts['audit']>({
  en: async () => (await import('./en/audit.ts')).audit,
  fr: async () => (await import('./fr/audit.ts')).audit,
});
