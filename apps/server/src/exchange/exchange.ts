import { dataLimits, PesitListener, serveTcpBehind, serveTls, TLS_FAILURES } from '@pesit-node/net';
import type { ListenerOptions, ProxyServing, Serve, TlsFailureCode } from '@pesit-node/net';
import { liveNetworkMatcher } from '@pesit-node/service';
import { SESSION_REFUSED } from '@pesit-node/transfers';

import { Doors } from '../listeners/doors.js';
import type { WantedDoor } from '../listeners/doors.js';
import { tlsPortOf } from '../listeners/fields.js';
import type { BindPort, PortOwner } from '../listeners/running.js';
import type { ConnectionTimes } from '../observers/connection-times.js';
import type { ExchangeParts } from './parts.js';
import { PartnerSession } from './partner-session.js';
import { admitPreconnection } from '../admission/preconnection.js';

interface Door {
  readonly port: number;
  readonly transport: Serve;
  /** Sessions of the listener on its other ports. */
  readonly elsewhere: () => number;
}

/** Where partners meet the configuration, the files and the history: opens ports, and knows what still runs. */
export class Exchange {
  readonly #parts: ExchangeParts;
  readonly #times: Pick<ConnectionTimes, 'settled'>;
  readonly #pending = new Set<Promise<void>>();

  constructor(parts: ExchangeParts, times: Pick<ConnectionTimes, 'settled'>) {
    this.#parts = parts;
    this.#times = times;
  }

  readonly bind: BindPort = async (owner, before) => {
    const row = owner.settings();
    const doors: WantedDoor[] = [];
    const open = (port: number, transport: Serve) => async (): Promise<PesitListener> => {
      const known: { door?: PesitListener } = {};
      const elsewhere = (): number => owner.sessions() - (known.door?.activeConnections ?? 0);
      const door = await PesitListener.listen(this.#optionsOf(owner, { port, transport, elsewhere }));
      known.door = door;
      return door;
    };
    const proxy = proxyOf(owner);
    if (row.port !== null) doors.push({ kind: 'tcp', port: row.port, open: open(row.port, serveTcpBehind(proxy)) });
    const tlsPort = tlsPortOf(row);
    if (tlsPort !== null) {
      const terms = () => this.#parts.tls.terms(owner.settings());
      // Rather than a port where nobody is let in.
      await terms();
      doors.push({ kind: 'tls', port: tlsPort, open: open(tlsPort, serveTls({ terms, proxy })) });
    }
    return Doors.open(doors, before);
  };

  /** Resolves when what sessions that have ended left to do is done. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
    await this.#times.settled();
  }

  /** Read for each connection: what is changed while the port is open applies to the next session. */
  #optionsOf({ settings, refused }: PortOwner, { port, transport, elsewhere }: Door): ListenerOptions {
    const parts = this.#parts;
    const { config, admitting, observing } = parts;
    const track = (work: Promise<void>): void => {
      const done = work.finally(() => this.#pending.delete(done));
      this.#pending.add(done);
    };
    return {
      host: config['listener.host'],
      port,
      transport,
      get maxConnections() {
        return settings().max_connections - elsewhere();
      },
      get tcpipHeader() {
        return settings().tcpip_header;
      },
      get timers() {
        return { response: settings().read_timeout, write: config['transfer.write-timeout'] };
      },
      get limits() {
        return dataLimits({
          chunk: config['transfer.chunk-size'],
          readBuffer: config['transfer.read-buffer-size'],
          socketBuffer: config['transfer.socket-buffer-size'],
        });
      },
      preconnect: (preconnection, remoteAddress) =>
        admitPreconnection(admitting, observing, preconnection, { listener: settings().server_id, remoteAddress }),
      accept: (connection) =>
        new PartnerSession({ parts, listener: settings(), listenerNow: settings, connection, refused, track }),
      rejected: (remoteAddress, reason, code, error) => {
        refused();
        const session = { facts: { listener: settings().server_id, remoteAddress } };
        observing.events.publish(SESSION_REFUSED, {
          session,
          diagnostic: undefined,
          error,
          ...(isAboutCertificate(code) ? { certificate: reason } : {}),
          facts: { reason, ...(code === undefined ? {} : { code }) },
        });
      },
    };
  }
}

/** @param code see `TLS_FAILURES` */
const isAboutCertificate = (code: string | undefined): boolean =>
  code !== undefined && TLS_FAILURES[code as TlsFailureCode] === 'certificate';

/** Balancers in front of a listener, as it is now. */
const proxyOf = ({ settings }: PortOwner): ProxyServing => ({
  mode: () => settings().proxy_protocol,
  isTrusted: liveNetworkMatcher(() => settings().trusted_proxies),
});
