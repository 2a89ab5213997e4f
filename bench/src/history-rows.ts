/** A history as a busy node has it, made in the database itself: skewed partners, rare failures, rarer messages, 90 days. */
import pg from 'pg';

/** Days that the rows are spread over: what `history.retention-days` keeps. */
export const HISTORY_DAYS = 90;

/** `n` is the number of the row; what is unevenly spread is so by powers of a hash of it. */
const CHANCE = (salt: number): string => `((hashint8(n::bigint * 7919 + ${salt})::bigint + 2147483648) / 4294967296.0)`;
const TIME = `now() - interval '${HISTORY_DAYS} days' * (1 - n / :rows::float8)`;
const STATUS = `case when c1 < 0.92 then 'COMPLETED' when c1 < 0.99 then 'FAILED' else 'CANCELLED' end`;
const DIAGNOSTIC = `case when c1 < 0.92 then '0-000' when c1 < 0.98 then '2-205' when c1 < 0.99 then '3-304' else '2-216' end`;
const SIZE = `(power(10, 2 + 7 * c2))::bigint`;

const ROWS = `
  select n, ${TIME} as began, ${CHANCE(1)} as c1, ${CHANCE(2)} as c2, ${CHANCE(3)} as c3, ${CHANCE(4)} as c4, ${CHANCE(5)} as c5
  from generate_series(1, :rows) n`;

/** The statements that fill the history of an app; `:rows` stands for their number. */
export const HISTORY_ROWS = {
  server: `
    insert into transfers (type, partner_id, direction, virtual_file_id, filename, path, size, status, start_time, end_time,
      transfer_id, listener, node, instance, session_id, remote_address, bytes_transferred, articles, sync_point, checksum,
      diagnostic, error_message, label, context)
    select case when c5 < 0.01 then 'MESSAGE' else 'FILE' end, 'PARTNER' || lpad((power(c3, 3) * 300)::int::text, 4, '0'),
      case when c5 < 0.7 then 'RECEIVE' else 'SEND' end, 'FILE' || (power(c4, 2) * 60)::int,
      'invoice_' || n || '.dat', '/data/received/invoice_' || n || '.dat', ${SIZE}, ${STATUS}, began,
      began + interval '1 second' * (0.05 + 30 * power(c2, 6)), n % 16777215 + 1, 'LISTENER' || (power(c4, 4) * 6)::int,
      'pod-' || (n % 3), gen_random_uuid(), gen_random_uuid()::text, '10.0.0.' || (n % 250), ${SIZE}, 1000, 4,
      'sha256:' || repeat(md5(n::text), 2), ${DIAGNOSTIC}, case when c1 >= 0.92 then 'the file was not found' end,
      'INVOICES ' || n, gen_random_uuid()
    from (${ROWS}) r`,
  client: `
    insert into transfers (id, type, status, direction, server_id, server_name, partner_id, filename, remote_filename, virtual_file,
      settings, created_time, start_time, end_time, size, bytes_transferred, articles, checksum, diagnostic, error_code, error_message,
      pesit_transfer_id, attempts, node)
    select gen_random_uuid(), case when c5 < 0.01 then 'MESSAGE' else 'FILE' end, ${STATUS},
      case when c5 < 0.7 then 'SEND' else 'RECEIVE' end, s.id, s.name, 'PARTNER' || lpad((power(c3, 3) * 300)::int::text, 4, '0'),
      'invoice_' || n || '.dat', 'INVOICES ' || n, 'FILE' || (power(c4, 2) * 60)::int, '{}', began, began + interval '1 second',
      began + interval '1 second' * (1.05 + 30 * power(c2, 6)), ${SIZE}, ${SIZE}, 1000, 'sha256:' || repeat(md5(n::text), 2),
      ${DIAGNOSTIC}, case when c1 >= 0.92 then 'TRANSFER_FAILED' end, case when c1 >= 0.92 then 'the file was not found' end,
      n % 16777215 + 1, 1, 'pod-' || (n % 3)
    from (${ROWS}) r join remote_servers s on s.name = 'server-' || (power(r.c4, 2) * 20)::int`,
} as const;

/** Remote servers that the rows of the client app name. */
export const REMOTE_SERVERS = `
  insert into remote_servers (name, host, port, server_id, client_id, enabled, dialect)
  select 'server-' || n, '127.0.0.1', 6502, 'REMOTE' || n, 'BENCH', true, 'raw' from generate_series(0, 20) n`;

/** Fills the history of an app that has migrated its database. @param url of that database */
export const fillHistory = async (app: 'server' | 'client', url: string, rows: number): Promise<void> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`set search_path to pesit_${app}`);
    // They begin as records of the past: the statuses that a transfer goes through do not matter.
    await client.query('alter table transfers disable trigger user');
    const { rows: indexes } = await client.query<{ name: string; definition: string }>(
      `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
       from pg_index where indrelid = 'transfers'::regclass and not indisunique`,
    );
    for (const { name } of indexes) await client.query(`drop index ${name}`);
    if (app === 'client') await client.query(REMOTE_SERVERS);
    await client.query(HISTORY_ROWS[app].replaceAll(':rows', String(rows)));
    for (const { definition } of indexes) await client.query(definition);
    await client.query('alter table transfers enable trigger user');
    await client.query('vacuum analyze transfers');
  } finally {
    await client.end();
  }
};
