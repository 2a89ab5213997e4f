import type { StoreUses } from '@pesit-node/certificates';

/** What of this app names a keystore or a truststore. */
export const storeUses: StoreUses = () => Promise.resolve([]);
