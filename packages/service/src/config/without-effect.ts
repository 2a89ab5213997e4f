import type { z } from 'zod';

import { flag, integer, requiredText } from './kinds.js';
import type { ConfigKey } from './row.js';

const NO_GZIP =
  'PeSIT knows no GZIP, only the strings of its annex A (PI 21): set compression of the virtual file, of the remote server or of the request instead';
const ONE_PORT = 'each app has one REST interface: set server.port';

/** Undefined: it was not set. */
const row = <T>(
  withoutEffect: string,
  type: z.ZodType<T>,
  options: Pick<ConfigKey, 'notFromEnvironment'> = {},
): ConfigKey<T | undefined, 'both'> => ({
  ...{ apps: 'both', type, default: undefined, withoutEffect, description: '', ...options },
  // Nobody reads it but to say so, and that is said of what is set now.
  reload: true,
});

/**
 * Keys of the interface that can mean nothing here, each with the reason. A service that has one in its configuration starts:
 * the value is checked, a warning names the reason once, and `/actuator/info` shows it, so that nobody believes that it works.
 */
export const KEYS_WITHOUT_EFFECT = {
  'transfer.compression.enabled': row(NO_GZIP, flag()),
  'transfer.compression.algorithm': row(NO_GZIP, requiredText()),
  'transfer.compression.level': row(NO_GZIP, integer(1, 9)),
  'api-port': row(ONE_PORT, integer(0, 65_535), { notFromEnvironment: true }),
  'transfer-port': row(ONE_PORT, integer(0, 65_535), { notFromEnvironment: true }),
} as const;
