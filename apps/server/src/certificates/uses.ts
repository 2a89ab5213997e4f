import type { StoreUses } from '@pesit-node/certificates';

/** The things of this app that name a keystore or a truststore. */
export const storeUses: StoreUses = () => Promise.resolve([]);
