import { identifier, isNetwork, plainText } from '@pesit-node/service';
import { z } from 'zod';

/** PI 4. */
export const serverId = () => identifier(24);
/** PI 3. */
export const partnerId = () => identifier(24);
/** PI 12. */
export const fileId = () => identifier(76);

/** As many as a person can look through. */
const MAX_GRANTS = 1000;

/**
 * Who, or what, is allowed (design §4, Grants): identifiers, and globs of them, which may be longer.
 * @param of in words: `virtual files`
 */
export const grants = (of: string) =>
  z
    .array(
      z
        .string()
        .min(1, 'expected an identifier or a glob such as BANK*, got nothing')
        .max(255)
        .regex(/^[\x20-\x7e]*$/, 'expected printable ASCII characters alone')
        .regex(/^[^/\\:"<>|]*$/, 'none of / \\ : " < > | can be in an identifier'),
      `expected a list of ${of}, or null to allow what access.default says`,
    )
    .max(MAX_GRANTS, `expected at most ${MAX_GRANTS} entries: use globs`);

/** Where a peer connects from. */
export const network = () =>
  z
    .string()
    .max(50)
    .refine(isNetwork, {
      error: ({ input }) =>
        `expected an address or a CIDR range such as 10.0.0.0/8 or 2001:db8::/32, got ${JSON.stringify(String(input).slice(0, 50))}`,
    });

/** A path of this machine; whether it may be used is a matter of `Directories`. */
export const path = () => plainText(1024).min(1, 'expected a path, or null for the default');
