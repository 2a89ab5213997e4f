import type { AuditWrite, ChangeAudit, Config } from '@pesit-node/service';

import { asking, refusal } from '../exchange/refusal.js';
import type { PartnerRow } from '../partners/fields.js';
import type { PartnerStore } from '../partners/store.js';
import type { PartnerPasswords, ShownPassword } from './partner-passwords.js';

/** PI 5: eight bytes of password, eight of a new one (pesit-e.md §2). */
const LENGTH = 8;

/** PI 5, taken apart; trailing blanks are not significant. */
export interface AccessControl {
  readonly password: string;
  /** '': none. */
  readonly next: string;
}

export const accessControlOf = (text: string): AccessControl => ({
  password: text.slice(0, LENGTH).trimEnd(),
  next: text.slice(LENGTH, 2 * LENGTH).trimEnd(),
});

export interface PasswordChangeDeps {
  readonly config: Pick<Config<'server'>, 'password.min-length'>;
  readonly partners: Pick<PartnerStore, 'changePassword' | 'get'>;
  readonly passwords: Pick<PartnerPasswords, 'proves' | 'hash'>;
  readonly audit: Pick<ChangeAudit, 'entry'>;
}

/**
 * Whether the partner says a change once more that is made already: the acknowledgement of its CONNECT was lost. It knows the
 * password that counts now, so it is let in with it.
 */
export const repeatsChange = async (
  { passwords }: Pick<PasswordChangeDeps, 'passwords'>,
  { may_change_password: mayChange }: PartnerRow,
  { next }: AccessControl,
  shown: ShownPassword,
): Promise<boolean> => mayChange && next !== '' && (await passwords.proves({ ...shown, password: next }));

/**
 * Gives a partner that has proved itself by its password the new one that it asks for.
 * @returns the partner as it is then
 * @throws PesitError 3-304 when it may not, or the new one cannot be; 3-322 when the database is away, or somebody else changed it now
 */
export const changePassword = async (
  { config, partners, passwords, audit }: PasswordChangeDeps,
  partner: PartnerRow,
  { password, next }: AccessControl,
  remoteAddress: string,
): Promise<PartnerRow> => {
  if (next === '' || next === password) return partner;
  const id = partner.partner_id;
  const refused = (why: string): Error =>
    refusal('3-304', `${id} asks to change its password (second half of PI 5): ${why}`, NOT_CHANGED);
  if (!partner.may_change_password) throw refused('set its mayChangePassword to true, or give it the new one here');
  const least = config['password.min-length'];
  if (next.length < least) throw refused(`a new one has at least ${least} characters (password.min-length)`);
  if (!/^[\x21-\x7e][\x20-\x7e]*$/.test(next))
    throw refused('a new one has printable ASCII characters, no blank first');
  const by = { actor: `partner ${id}`, address: remoteAddress };
  const details = { changes: { password: { before: 'set', after: 'changed' } } };
  const audited: AuditWrite = audit.entry({ by, action: 'changed', objectType: 'partner', object: id, details });
  const hash = await passwords.hash(next);
  const changed = await asking('3-322', () => partners.changePassword(id, partner.password_hash, hash, audited));
  if (changed === undefined)
    throw refusal('3-322', `the password of ${id} was changed by somebody else at the same time`, LATER);
  return changed;
};

const NOT_CHANGED = 'the password was not changed: connect without a new one';
const LATER = 'the password is being changed: try again later';
