import type { Texts } from './en/index.ts';
import { catalogue } from './index.ts';

export const traceWords = await catalogue<Texts['trace']>({
  en: async () => (await import('./en/trace.ts')).trace,
  fr: async () => (await import('./fr/trace.ts')).trace,
});
