import { dataLimits, PesitListener } from '@pesit-node/net';
import type { ListenerOptions } from '@pesit-node/net';
import { SESSION_REFUSED } from '@pesit-node/transfers';

import type { BindPort, PortOwner } from '../listeners/running.js';
import type { ConnectionTimes } from '../observers/connection-times.js';
import type { ExchangeParts } from './parts.js';
import { PartnerSession } from './partner-session.js';
import { admitPreconnection } from '../admission/preconnection.js';

/** Where partners meet the configuration, the files and the history: opens ports, and knows what still runs. */
export class Exchange {
  readonly #parts: ExchangeParts;
  readonly #times: Pick<ConnectionTimes, 'settled'>;
  readonly #pending = new Set<Promise<void>>();

  constructor(parts: ExchangeParts, times: Pick<ConnectionTimes, 'settled'>) {
    this.#parts = parts;
    this.#times = times;
  }

  readonly bind: BindPort = (owner) => PesitListener.listen(this.#optionsOf(owner));

  /** Resolves when what sessions that have ended left to do is done. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
    await this.#times.settled();
  }

  /** Read for each connection: what is changed while the port is open applies to the next session. */
  #optionsOf({ settings, sessionsElsewhere, refused }: PortOwner): ListenerOptions {
    const parts = this.#parts;
    const { config, admitting, observing } = parts;
    const track = (work: Promise<void>): void => {
      const done = work.finally(() => this.#pending.delete(done));
      this.#pending.add(done);
    };
    return {
      host: config['listener.host'],
      port: settings().port,
      get maxConnections() {
        return settings().max_connections - sessionsElsewhere();
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
      accept: (connection) => new PartnerSession({ parts, listener: settings(), connection, refused, track }),
      rejected: (remoteAddress, reason) => {
        refused();
        const session = { facts: { listener: settings().server_id, remoteAddress } };
        observing.events.publish(SESSION_REFUSED, {
          session,
          diagnostic: undefined,
          error: undefined,
          facts: { reason },
        });
      },
    };
  }
}
