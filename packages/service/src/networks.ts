import { BlockList, isIP } from 'node:net';

const familyOf = (address: string): 'ipv4' | 'ipv6' | undefined => {
  const version = isIP(address);
  return version === 0 ? undefined : version === 4 ? 'ipv4' : 'ipv6';
};

const parse = (text: string) => {
  const [, address = '', length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = familyOf(address);
  if (family === undefined) return undefined;
  const longest = family === 'ipv4' ? 32 : 128;
  const prefix = length === undefined ? longest : Number(length);
  return prefix > longest ? undefined : { address, family, prefix };
};

/** An address (`192.0.2.7`, `::1`) or a CIDR range (`10.0.0.0/8`). */
export const isNetwork = (text: string): boolean => parse(text) !== undefined;

/**
 * Whether an address lies in one of the networks; IPv4 addresses also when they are written as IPv6 (`::ffff:10.0.0.1`). A text that is no
 * address lies in none.
 */
export const networkMatcher = (networks: readonly string[]): ((address: string) => boolean) => {
  // Asked several times a request, and most often there are none.
  if (networks.length === 0) return () => false;
  const list = new BlockList();
  for (const text of networks) {
    const network = parse(text);
    if (network !== undefined) list.addSubnet(network.address, network.prefix, network.family);
  }
  return (address) => {
    const family = familyOf(address);
    return family !== undefined && list.check(address, family);
  };
};

/** `networkMatcher` of networks that may change. */
export const liveNetworkMatcher = (networks: () => readonly string[]): ((address: string) => boolean) => {
  let of: readonly string[] | undefined;
  let matches = networkMatcher([]);
  return (address) => {
    const now = networks();
    if (now !== of) [of, matches] = [now, networkMatcher(now)];
    return matches(address);
  };
};

const inLoopback = networkMatcher(['127.0.0.0/8', '::1']);

/** Whether what listens on this host is out of reach of other machines. */
export const isLoopback = (host: string): boolean => host === 'localhost' || inLoopback(host);
