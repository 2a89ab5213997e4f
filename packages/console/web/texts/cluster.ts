import type { Texts } from './en/index.ts';
import { catalogue } from './index.ts';

export const clusterWords = await catalogue<Texts['cluster']>({
  en: async () => (await import('./en/cluster.ts')).cluster,
  fr: async () => (await import('./fr/cluster.ts')).cluster,
});
