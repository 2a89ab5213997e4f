import { validation } from '@pesit-node/service';

import { tlsPortOf } from './fields.js';
import type { ListenerRow } from './fields.js';

type Together = Pick<ListenerRow, 'port' | 'tls_port' | 'ssl_enabled' | 'proxy_protocol' | 'trusted_proxies'>;

/**
 * Looks at fields that are good or bad together, of a listener as it is to be.
 * @throws {ApiError} 400 where it would have no port, or one for both; or believe balancers of which none is named
 */
export const admitTogether = (listener: Together): void => {
  const refuse = (field: string, message: string): never => {
    throw validation([{ field, message }]);
  };
  const { port, ssl_enabled: takesTls, proxy_protocol: mode, trusted_proxies: trusted } = listener;
  if (port === null && !takesTls) refuse('port', 'null is for TLS alone: set sslEnabled to true');
  if (port !== null && tlsPortOf(listener) === port) refuse('tlsPort', 'expected another port than port');
  if (mode !== 'off' && trusted.length === 0) {
    refuse(
      'trustedProxies',
      `proxyProtocol ${mode} needs the addresses of the balancers: name them here, or set proxyProtocol to off`,
    );
  }
};
