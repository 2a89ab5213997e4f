import type { Texts } from './en/index.ts';
import { catalogue } from './index.ts';

export const licenseWords = await catalogue<Texts['license']>({
  en: async () => (await import('./en/license.ts')).license,
  fr: async () => (await import('./fr/license.ts')).license,
});
