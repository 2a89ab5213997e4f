import { computed } from '@preact/signals';

import type { FieldName, ResourceName } from '../api/fields.ts';
import { words } from '../texts/configuration.ts';
import type { FieldWords } from '../texts/configuration.ts';

/** Every field of every form: one that the interface has and the catalogue has not does not compile. */
type Complete = { readonly [R in ResourceName]: Readonly<Record<FieldName<R>, FieldWords>> };

const all = computed((): Complete => words.value.fields);

export const wordsOf = (resource: ResourceName, name: string): FieldWords => {
  const ofResource: Readonly<Record<string, FieldWords>> = all.value[resource];
  return ofResource[name] ?? { label: name };
};
