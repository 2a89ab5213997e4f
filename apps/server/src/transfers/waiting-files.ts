import type { FileStores } from '@pesit-node/storage';
import type { Knex } from 'knex';

/** Bytes and files of a partner that lie here, or are about to. */
export interface Usage {
  readonly bytes: number;
  readonly files: number;
}

interface WaitingRow {
  readonly transfer: number;
  readonly directory: string;
  readonly path: string;
}

/** Files that are looked at in one go. */
const LOOK_AT = 500;
const LOOKS_AT_A_TIME = 16;

/**
 * Changes that transfers commit beside COMPLETED: a statement of `Completions`. A file that replaces another is there once, also
 * when both are in `done`, of which the last of a path counts.
 */
export const WAITING_CTES = `replaced as (
    delete from waiting_files w using done where w.path = done.path and done.direction = 'RECEIVE'
  ), waiting as (
    insert into waiting_files (transfer, partner_id, directory, path, size)
    select distinct on (done.path) done.id, done.partner_id, done.directory, done.path, done.size
    from done join partners p on p.partner_id = done.partner_id
    where done.direction = 'RECEIVE' and done.directory is not null and (p.quota_bytes is not null or p.quota_files is not null)
    order by done.path, done.n desc
    on conflict (transfer) do update set path = excluded.path, size = excluded.size
  )`;

/** Received files that count towards the quota of their partner, until somebody has fetched them. */
export class WaitingFiles {
  readonly #knex: Knex;
  readonly #stores: FileStores;

  constructor(knex: Knex, stores: FileStores) {
    this.#knex = knex;
    this.#stores = stores;
  }

  /**
   * Files that wait, those that are being received, and, for a new one, those that are staged for a restart: of two that were
   * interrupted for each other's sake, each could continue only without the other. Each part is found by an index that serves
   * something else, too: one more would cost every transfer of every partner.
   * @param except a transfer that the partner restarts
   */
  async usage(partnerId: string, except: number | undefined, db: Knex = this.#knex): Promise<Usage> {
    const { rows } = await db.raw<{ rows: [Usage] }>(
      `select (coalesce(sum(bytes), 0))::bigint as bytes, count(*)::int as files from (
         select size as bytes from waiting_files where partner_id = :partnerId
         union all
         select greatest(bytes_transferred, announced) from transfers
         where status in ('PENDING', 'IN_PROGRESS') and not restartable
           and partner_id = :partnerId and direction = 'RECEIVE' and id <> :except
         union all
         select bytes_transferred from transfers
         where restartable and sync_point > 0 and :except = 0 and partner_id = :partnerId and direction = 'RECEIVE'
       ) one`,
      { partnerId, except: except ?? 0 },
    );
    return rows[0];
  }

  /** Locks the quota of this partner until the end of the transaction: two files that begin at a time do not both take the last place. */
  async lock(transaction: Knex.Transaction, partnerId: string): Promise<void> {
    await transaction.raw(`select pg_advisory_xact_lock(hashtextextended(?, 0))`, [`pesit quota of ${partnerId}`]);
  }

  /**
   * A file that is being received has become so large: from now on it counts so, for all pods.
   * @param accept asked with what else there is, while no other file of the partner can claim anything; what it throws is thrown
   */
  async claim(partnerId: string, record: number, size: number, accept: (others: Usage) => void): Promise<void> {
    await this.#knex.transaction(async (transaction) => {
      await this.lock(transaction, partnerId);
      accept(await this.usage(partnerId, record, transaction));
      await transaction.raw('update transfers set announced = greatest(announced, ?) where id = ?', [size, record]);
    });
  }

  /**
   * Looks at the files that were looked at longest ago, and forgets those that are gone.
   * @param partnerId of this one alone
   */
  async look(partnerId?: string): Promise<void> {
    const rows = await this.#knex('waiting_files')
      .where((all) => {
        // A file that was just looked at is looked at again only for somebody who waits.
        if (partnerId === undefined) void all.whereRaw(`looked_at < now() - interval '1 minute'`);
        else void all.where('partner_id', partnerId);
      })
      .orderBy('looked_at')
      .limit(LOOK_AT)
      .select<WaitingRow[]>('transfer', 'directory', 'path');
    const gone: number[] = [];
    for (let from = 0; from < rows.length; from += LOOKS_AT_A_TIME) {
      const some = rows.slice(from, from + LOOKS_AT_A_TIME);
      const looks = await Promise.all(some.map((row) => this.#isGone(row)));
      gone.push(...some.filter((_, index) => looks[index]).map(({ transfer }) => transfer));
    }
    if (rows.length === 0) return;
    await this.#knex.raw(
      `with gone as (delete from waiting_files where transfer = any (:gone::bigint[]))
       update waiting_files set looked_at = now() where transfer = any (:all::bigint[]) and not transfer = any (:gone::bigint[])`,
      { gone, all: rows.map(({ transfer }) => transfer) },
    );
  }

  /** Whether somebody has fetched it. A directory that is away took nothing with it. */
  async #isGone({ directory, path }: WaitingRow): Promise<boolean> {
    const store = this.#stores.at(directory);
    try {
      return (await store.version(path)) === undefined && (await store.locate('.')).kind === 'directory';
    } catch {
      return false;
    }
  }

  /** Forgets files of partners that no longer have a quota, or do not exist. */
  async forgetUnlimited(): Promise<void> {
    await this.#knex.raw(
      `delete from waiting_files w where not exists (select from partners p
         where p.partner_id = w.partner_id and (p.quota_bytes is not null or p.quota_files is not null))`,
    );
  }
}
