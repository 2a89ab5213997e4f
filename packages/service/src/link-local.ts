import { lookup } from 'node:dns';
import type { LookupAddress } from 'node:dns';
import { BlockList, isIP } from 'node:net';
import type { LookupFunction } from 'node:net';

/** Addresses of one network cable alone, where clouds keep the credentials of a machine (RFC 3927, RFC 4291 §2.5.6). */
const LINK_LOCAL = new BlockList();
LINK_LOCAL.addSubnet('169.254.0.0', 16, 'ipv4');
LINK_LOCAL.addSubnet('fe80::', 10, 'ipv6');

/** @param host of a URL; a name is judged by `lookUpOutside` @throws when it is a link-local address */
export const refuseLinkLocal = (host: string): void => {
  const address = host.replace(/^\[|\]$/g, '');
  const version = isIP(address);
  if (version !== 0 && LINK_LOCAL.check(address, version === 6 ? 'ipv6' : 'ipv4')) {
    throw new Error(`${address} is a link-local address: none is asked`);
  }
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
