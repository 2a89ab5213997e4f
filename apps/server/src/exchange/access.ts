import { operationsOf } from '../partners/fields.js';
import type { Operation } from '../partners/fields.js';
import type { VirtualFileRow } from '../virtual-files/fields.js';
import type { PartnerContext } from './context.js';
import { mayUseFile } from './grants.js';
import { isPlausible, readable } from './names.js';
import { asking, refusal } from './refusal.js';

/** How each request is refused where the specification tells them apart (pesit-e.md §9). */
const RULES = {
  WRITE: { name: 'CREATE', unknown: '2-226', forbidden: 'SEND', does: 'write' },
  READ: { name: 'SELECT', unknown: '2-205', forbidden: 'RECEIVE', does: 'read' },
} as const;

/**
 * The virtual file that a request names (PI 12), if this partner may do that with it now: rights that were changed during
 * the session count.
 * @throws PesitError 2-226, 2-205, or 2-201 when the database is away
 */
export const virtualFileFor = async (
  { virtualFiles, partner, config }: PartnerContext,
  operation: Operation,
  name: string,
  fileType: number,
): Promise<VirtualFileRow> => {
  const rule = RULES[operation];
  const shown = JSON.stringify(readable(name, 76));
  if (fileType !== 0) {
    throw refusal('2-226', `${rule.name} of file type ${fileType} (PI 11): only 0, a file, is taken`);
  }
  const { file, partner: now } = await asking('2-201', () =>
    // A name that cannot be configured is as unknown as the empty one.
    virtualFiles.access(isPlausible(name, 76) ? name : '', partner.partner_id),
  );
  // Who may not use a file is not told that there is one.
  const unknown = (reason: string) => refusal(rule.unknown, reason, `the virtual file ${shown} is not known here`);
  if (file === undefined) {
    throw unknown(
      `the virtual file ${shown} (PI 12) is not configured: create it, or correct the name on the other side`,
    );
  }
  if (!file.enabled) throw unknown(`the virtual file ${shown} is disabled: enable it`);
  const { partner_id } = partner;
  const { allowed_files } = now ?? partner;
  if (!mayUseFile({ partner_id, allowed_files }, file, config['access.default'])) {
    throw unknown(
      `the partner ${partner_id} is not granted the virtual file ${shown}: name the file in allowedFiles of the partner, and the partner in allowedPartners of the file where it has a list`,
    );
  }
  if (now?.enabled !== true || !operationsOf(now.access).includes(operation)) {
    throw refusal(
      '2-226',
      now?.enabled === true
        ? `${partner.partner_id} may not ${rule.does} (allowedOperations): add ${operation}`
        : `the partner ${partner.partner_id} was disabled or removed during the session`,
      `this partner may not ${rule.does} files`,
    );
  }
  if (file.direction === rule.forbidden) {
    throw refusal(
      '2-226',
      `the virtual file ${shown} has direction ${file.direction}: partners may not ${rule.does} it; set BOTH to allow it`,
      `the virtual file ${shown} is not for partners to ${rule.does}`,
    );
  }
  return file;
};
