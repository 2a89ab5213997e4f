/**
 * Who is tied to what (design §4, Grants). A list says who, or what, is allowed, by identifiers and globs; null says nothing.
 * A partner and a virtual file each may have one: none of them may leave the other out, and where neither says anything
 * `access.default` decides.
 */
import type { Config } from '@pesit-node/service';
import { matchesGlob } from '@pesit-node/storage';

type Grants = readonly string[] | null;
type Default = Config<'server'>['access.default'];

/** An identifier may hold a bracket, which is a set to a glob: it is always itself. */
const includes = (grants: readonly string[], id: string): boolean =>
  grants.some((grant) => grant === id || matchesGlob(grant, id));

/** Whether a partner may use a virtual file, whatever it wants to do with it. */
export const mayUseFile = (
  partner: { readonly partner_id: string; readonly allowed_files: Grants },
  file: { readonly file_id: string; readonly allowed_partners: Grants },
  byDefault: Default,
): boolean => {
  const { allowed_files: files } = partner;
  const { allowed_partners: partners } = file;
  if (files === null && partners === null) return byDefault === 'all';
  if (files !== null && !includes(files, file.file_id)) return false;
  return partners === null || includes(partners, partner.partner_id);
};

/** Whether a partner is known on a listener. */
export const mayUseListener = (
  { allowed_listeners: listeners }: { readonly allowed_listeners: Grants },
  serverId: string,
  byDefault: Default,
): boolean => (listeners === null ? byDefault === 'all' : includes(listeners, serverId));
