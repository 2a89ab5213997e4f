import { identifier } from '@pesit-node/service';
import { z } from 'zod';

/** PI 4. */
export const serverId = () => identifier(24);
/** PI 3. */
export const partnerId = () => identifier(24);
/** PI 12. */
export const fileId = () => identifier(76);

/** A field of answers that no request may set. */
export const readOnly = () => z.undefined({ error: 'is read-only: leave it out' }).optional();

/** Whether a request names another identifier than its path: identifiers do not change. */
export const renames = (given: readonly (string | undefined)[], current: string): boolean =>
  given.some((id) => id !== undefined && id !== current);
