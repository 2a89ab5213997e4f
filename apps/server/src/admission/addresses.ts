import { networkMatcher } from '@pesit-node/service';

/**
 * Why a connection is not that of its partner as far as its address can tell; undefined: nothing speaks against it.
 * @param remoteAddress the partner's own one, also behind a balancer that says it (`proxyProtocol`)
 */
export const addressProblem = (
  partner: { readonly partner_id: string; readonly allowed_addresses: readonly string[] | null },
  remoteAddress: string,
): string | undefined => {
  const { partner_id: id, allowed_addresses: allowed } = partner;
  if (allowed === null || networkMatcher(allowed)(remoteAddress)) return undefined;
  return `${id} came from ${remoteAddress}, which its allowedAddresses leave out: add the address if it is the partner's, else find out who tries`;
};
