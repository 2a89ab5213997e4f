import { identifier } from '@pesit-node/service';
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
export const grants = (of: string, description: string) =>
  z
    .array(
      z
        .string()
        .min(1, 'expected an identifier or a glob such as BANK*, got nothing')
        .max(255, 'expected at most 255 characters')
        .regex(/^[\x20-\x7e]*$/, 'expected printable ASCII characters alone')
        .regex(/^[^/\\:"<>|]*$/, 'none of / \\ : " < > | can be in an identifier'),
      `expected a list of ${of}, or null to allow what access.default says`,
    )
    .max(MAX_GRANTS, `expected at most ${MAX_GRANTS} entries: use globs`)
    .nullish()
    .meta({ description });

/** Two names of one field may both be given when they agree. */
export const agree = <F extends string>(
  body: Readonly<Partial<Record<F, unknown>>>,
  context: z.RefinementCtx,
  name: F,
  otherName: F,
): void => {
  const [one, other] = [body[name], body[otherName]];
  if (one === undefined || other === undefined || one === other) return;
  const message = `expected the same value as ${name}, or one of the two`;
  context.addIssue({ code: 'custom', path: [otherName], message });
};

/** Something new has an identifier, by one of its two names. */
export const identified = <F extends string>(
  body: Readonly<Partial<Record<F | 'id', unknown>>>,
  context: z.RefinementCtx,
  name: F,
): void => {
  if (body[name] !== undefined || body.id !== undefined) return;
  context.addIssue({ code: 'custom', path: [name], message: `expected ${name} (or id)` });
};

/** Whether a request names another identifier than its path: identifiers do not change. */
export const renames = (given: readonly (string | undefined)[], current: string): boolean =>
  given.some((id) => id !== undefined && id !== current);
