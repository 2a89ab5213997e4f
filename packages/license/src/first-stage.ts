import type { FirstStage } from '@pesit-node/service';

import { keyWithoutEffect, LicenseKeyError, loadPublicKey } from './public-key.js';
import type { VendorKey } from './public-key.js';

/** The first stage of a licensed service (`runService`): the key that its licenses are verified with. */
export const LICENSE_KEY: FirstStage<VendorKey> = {
  read: async (config, logger) => {
    const value = config['license.public-key'];
    const key = await loadPublicKey(value);
    for (const { key: name, reason } of keyWithoutEffect(value, key)) logger.warn(`${name} is not used: ${reason}`);
    return key;
  },
  explained: [LicenseKeyError],
};
