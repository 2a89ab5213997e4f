import { readable } from '@pesit-node/protocol';
import { isPlausible } from './plausible.js';
import { operationsOf } from '../partners/fields.js';
import type { Operation } from '../partners/fields.js';
import type { VirtualFileRow } from '../virtual-files/fields.js';
import { mayUseFile } from './grants.js';
import type { Files } from '../exchange/parts.js';
import type { ProvenPartner } from '../exchange/proven-partner.js';
import type { Quota } from './quotas.js';
import { asking, refusal } from '../exchange/refusal.js';

/** How each request is refused where the specification tells them apart (pesit-e.md §9). */
const RULES = {
  WRITE: { name: 'CREATE', unknown: '2-226', forbidden: 'SEND', does: 'write' },
  READ: { name: 'SELECT', unknown: '2-205', forbidden: 'RECEIVE', does: 'read' },
} as const;

/** With the quota of the partner, which counts when it writes. */
export interface GrantedFile {
  readonly file: VirtualFileRow;
  readonly quota: Quota;
}

/** A partner that has proven who it is, or that an administrator asks about. */
interface AskingPartner extends Pick<ProvenPartner, 'stands'> {
  readonly partner: Pick<ProvenPartner['partner'], 'partner_id'>;
}

/**
 * The virtual file that a request names (PI 12), if this partner may do that with it now: grants that were changed during
 * the session count.
 * @throws PesitError 2-226, 2-205, 2-201 when the database is away, or why the session has to end
 */
export const virtualFileFor = async (
  { partner: { partner_id }, stands }: AskingPartner,
  {
    virtualFiles,
    config,
  }: {
    readonly virtualFiles: Pick<Files['virtualFiles'], 'access'>;
    readonly config: Pick<Files['config'], 'access.default'>;
  },
  operation: Operation,
  name: string,
  fileType: number,
): Promise<GrantedFile> => {
  const rule = RULES[operation];
  const shown = JSON.stringify(readable(name, 76));
  if (fileType !== 0) {
    throw refusal('2-226', `${rule.name} of file type ${fileType} (PI 11): only 0, a file, is taken`);
  }
  const {
    file,
    partner: found,
    quota,
  } = await asking('2-201', () =>
    // A name that cannot be configured is as unknown as the empty one.
    virtualFiles.access(isPlausible(name, 76) ? name : '', partner_id),
  );
  const now = stands(found);
  // Who may not use a file is not told that there is one.
  const unknown = (reason: string) => refusal(rule.unknown, reason, `the virtual file ${shown} is not known here`);
  if (file === undefined) {
    throw unknown(
      `the virtual file ${shown} (PI 12) is not configured: create it, or correct the name on the other side`,
    );
  }
  if (!file.enabled) throw unknown(`the virtual file ${shown} is disabled: enable it`);
  if (!mayUseFile(now, file, config['access.default'])) {
    throw unknown(
      `the partner ${partner_id} is not granted the virtual file ${shown}: name the file in allowedFiles of the partner, and the partner in allowedPartners of the file where it has a list`,
    );
  }
  if (!operationsOf(now.access_type).includes(operation)) {
    throw refusal(
      '2-226',
      `${partner_id} may not ${rule.does} (allowedOperations): add ${operation}`,
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
  return { file, quota };
};
