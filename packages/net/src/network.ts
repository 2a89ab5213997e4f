/**
 * The network of an address, for shares and limits: an IPv4 address, or the /64 of an IPv6 one, which a single subscriber has whole.
 */
export const networkOf = (address: string): string => {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!address.includes(':')) return address;
  const [before = [], after = []] = address.replace(/%.*$/, '').split('::', 2).map(groupsOf);
  const zeros = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0');
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`;
};

const groupsOf = (half: string): readonly string[] => (half === '' ? [] : half.split(':'));
