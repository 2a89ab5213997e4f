/** Most connections of one service; both apps, their migrations and an operator's psql stay below `max_connections`. */
export const MAX_POOL = 40;

/**
 * Where this PostgreSQL differs from a default one, given at every start. The settings that make it durable are left alone: fsync,
 * synchronous_commit and full_page_writes are on. The rest is for a database of some ten megabytes beside transfers that want
 * the memory: it reads little that the kernel's cache does not hold, and writes rows of a few hundred bytes.
 */
const SETTINGS: Readonly<Record<string, string | number>> = {
  // Nobody reaches it but over the socket, in a directory that is closed to others. Relative to the data directory: the path of
  // a socket may have about 100 bytes, that of a data directory more.
  listen_addresses: '',
  unix_socket_directories: '../socket',
  unix_socket_permissions: '0700',
  max_connections: 100,
  // Memory that all processes share, touched and never given back; the default is 128 MB.
  shared_buffers: '16MB',
  // For vacuum and for building an index, which run one after the other.
  maintenance_work_mem: '16MB',
  autovacuum_max_workers: 1,
  // Processes that a node never needs: parallel queries, replication, readers ahead of large scans.
  max_parallel_workers_per_gather: 0,
  max_parallel_maintenance_workers: 0,
  max_logical_replication_workers: 0,
  max_wal_senders: 0,
  io_method: 'sync',
  // Bounds of what the log of changes takes on disk; the default is 1 GB.
  max_wal_size: '256MB',
  min_wal_size: '32MB',
  // Starts, stops, crashes. A statement that failed is the service's to tell.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] ',
};

/** Arguments of `postgres` on this data directory. */
export const serverArguments = (data: string): readonly string[] => [
  ...['-D', data],
  ...Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
];
