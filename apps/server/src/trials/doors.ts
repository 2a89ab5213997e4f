/** The way into a listener of this node for a session that it opens with itself. */
import { PesitError } from '@pesit-node/protocol';

import { isBound } from '../admission/certificate.js';
import { portsOf, tlsPortOf } from '../listeners/fields.js';
import type { ListenerRow } from '../listeners/fields.js';
import type { PartnerRow } from '../partners/fields.js';

export interface TrialDoor {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

/** Where a process reaches what listens on all addresses (`listener.host`). */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1', '': '127.0.0.1' };

const cannot = (text: string): PesitError => new PesitError(text, { fault: 'transport', diagnostic: '3-310' });

/** @throws {PesitError} 3-310 in words where this node cannot come in, though a partner perhaps can */
export const trialDoor = (partner: PartnerRow, listener: ListenerRow, host: string): TrialDoor => {
  const { partner_id: id, tls_required: isRequired } = partner;
  const { server_id: name, port, proxy_protocol: proxy, ssl_client_auth: clientAuth } = listener;
  if (proxy === 'required') {
    const text = `the listener ${name} takes connections from its balancers alone (proxyProtocol required), which a test from this node is not`;
    throw cannot(`${text}: let ${id} try, by the balancer`);
  }
  const at = { host: LOOPBACK[host] ?? host };
  const needsTls = isRequired || isBound(partner);
  if (port !== null && !needsTls) return { ...at, port, isTls: false };
  const tlsPort = tlsPortOf(listener);
  if (tlsPort === null) {
    const why = isRequired ? 'its tlsRequired is true' : 'it is bound to a certificate';
    throw cannot(
      `${id} has to come over TLS (${why}), and the listener ${name} has ${portsOf(listener)} alone: set sslEnabled of the listener, or name another one`,
    );
  }
  if (clientAuth === 'NEED') {
    throw cannot(
      `the listener ${name} takes nobody without a certificate (sslClientAuth NEED), and this node has none that stands for ${id}: let ${id} try itself`,
    );
  }
  return { ...at, port: tlsPort, isTls: true };
};

/** Sentences about what a test cannot show of this partner. */
export const notTried = (partner: PartnerRow, serverId: string, isTls: boolean): readonly string[] => {
  const { partner_id: id, allowed_addresses: addresses, preconnect_id: preconnection } = partner;
  const shown = addresses?.slice(0, 5).join(', ');
  const more = (addresses?.length ?? 0) > 5 ? ' …' : '';
  return [
    `The way from ${id} to this node, its names, firewalls and balancers: the test came from this node itself.`,
    ...(shown === undefined ? [] : [`Whether ${id} comes from one of its allowedAddresses (${shown}${more}).`]),
    ...(isTls ? [`Whether ${id} trusts the certificate of ${serverId}.`] : []),
    ...(isBound(partner) ? [`The certificate to which ${id} is bound: only its password was tried.`] : []),
    ...(preconnection === null ? [] : [`The pre-connection ${preconnection} that is asked of ${id}.`]),
  ];
};
