import type { HealthComponent } from '@pesit-node/service';
import { isUsedUp } from '@pesit-node/storage';
import type { Space } from '@pesit-node/storage';

/** The fullest volume that files are received on, as a component of health. Sending continues when it is DOWN. */
export const storageHealth = (space: (Space & { readonly directory: string }) | undefined): HealthComponent => {
  if (space === undefined) return { status: 'DOWN', details: { reason: 'no receive directory can be looked at' } };
  const { directory, free, reserve } = space;
  const facts = { directory, free, reserve };
  if (!isUsedUp(space)) return { status: 'UP', details: facts };
  const reason =
    'less is free than must stay (storage.reserve): nothing new is received; free space or enlarge the volume';
  return { status: 'DOWN', details: { reason, ...facts } };
};

/** The same as gauges. */
export const spaceReadings = (space: Space | undefined) =>
  space === undefined ? {} : { pesit_storage_free_bytes: space.free, pesit_storage_reserve_bytes: space.reserve };
