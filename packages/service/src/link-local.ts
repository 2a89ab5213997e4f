import { lookup } from 'node:dns';
import type { LookupAddress } from 'node:dns';
import { BlockList, isIP } from 'node:net';
import type { LookupFunction } from 'node:net';

/** Addresses of one network cable alone, where clouds keep the credentials of a machine (RFC 3927, RFC 4291 §2.5.6). */
const LINK_LOCAL = new BlockList();
LINK_LOCAL.addSubnet('169.254.0.0', 16, 'ipv4');
LINK_LOCAL.addSubnet('fe80::', 10, 'ipv6');

/** Others at which they do: of AWS by IPv6, and of Alibaba Cloud. */
const METADATA = new BlockList();
METADATA.addAddress('fd00:ec2::254', 'ipv6');
METADATA.addAddress('100.100.100.200', 'ipv4');

/** @param host of a URL; a name is judged by `lookUpOutside` @returns why nothing may be asked there; undefined: it may */
export const whyNotAsked = (host: string): string | undefined => {
  const address = host.replace(/^\[|\]$/g, '');
  const version = isIP(address);
  if (version === 0) return undefined;
  const family = version === 6 ? 'ipv6' : 'ipv4';
  if (LINK_LOCAL.check(address, family)) return `${address} is a link-local address: expected another host`;
  return METADATA.check(address, family) ? `clouds keep credentials at ${address}: expected another host` : undefined;
};

/** @throws as `whyNotAsked` says */
export const refuseLinkLocal = (host: string): void => {
  const reason = whyNotAsked(host);
  if (reason !== undefined) throw new Error(reason);
};

/** `lookup` of a request to a URL that somebody configured: the addresses are judged that are connected to, for a name may have others a moment later. */
export const lookUpOutside: LookupFunction = (host, options, answer) => {
  lookup(host, options, (error: NodeJS.ErrnoException | null, found: string | LookupAddress[], family?: number) => {
    try {
      if (error === null)
        for (const one of typeof found === 'string' ? [found] : found.map(({ address }) => address))
          refuseLinkLocal(one);
      answer(error, found, family);
    } catch (refused) {
      answer(refused as NodeJS.ErrnoException, [], family);
    }
  });
};
