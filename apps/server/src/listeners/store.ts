import type { Knex } from 'knex';

import { ConfiguredStore } from '../configured-store.js';
import type { TcpipHeader } from './schema.js';

/** A listener as configured; null: the default of the configuration. */
export interface ListenerRow {
  readonly server_id: string;
  readonly port: number;
  readonly auto_start: boolean;
  readonly max_connections: number;
  /** Milliseconds. */
  readonly read_timeout: number;
  readonly receive_directory: string | null;
  readonly send_directory: string | null;
  readonly strict_server_id: boolean;
  readonly tcpip_header: TcpipHeader;
  readonly max_entity_size: number | null;
  /** KB; 0 = no sync points. */
  readonly sync_interval: number | null;
  readonly sync_window: number | null;
  /** Transfers completed on it, ever. */
  readonly total_transfers: number;
}

export type ListenerValues = Omit<ListenerRow, 'server_id' | 'total_transfers'>;

export class ListenerStore extends ConfiguredStore<ListenerRow, ListenerValues> {
  constructor(knex: Knex) {
    super(knex, { table: 'listeners', key: 'server_id' });
  }
}
