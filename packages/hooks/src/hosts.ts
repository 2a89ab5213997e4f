import { whyNotAsked } from '@pesit-node/service';
import type { CommonConfig } from '@pesit-node/service';

type Allowed = Pick<CommonConfig, 'hooks.allowed-hosts' | 'hooks.allow-http'>;

const isHost = (host: string, allowed: string): boolean => {
  const wanted = allowed.toLowerCase();
  return wanted.startsWith('*.') ? host.endsWith(wanted.slice(1)) : host === wanted;
};

/** @returns why nothing may be sent to `url`; undefined: it may */
export const mayBeAsked = (url: string, config: Allowed): string | undefined => {
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'https:' && !config['hooks.allow-http']) return 'expected https: hooks.allow-http is false';
  const refused = whyNotAsked(hostname);
  if (refused !== undefined) return refused;
  const hosts = config['hooks.allowed-hosts'];
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (hosts.length === 0 || hosts.some((allowed) => isHost(host, allowed))) return undefined;
  return `hooks.allowed-hosts has no ${host}`;
};
