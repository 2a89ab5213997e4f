import type { StoredPoint } from '@pesit-node/storage';
import type { Knex } from 'knex';

import type { RecordHandle } from './record.js';

/** The points of files that are read compressed, each written before it leaves. */
export class SentPoints {
  readonly #knex: Knex;

  constructor(knex: Knex) {
    this.#knex = knex;
  }

  async find({ id }: RecordHandle, number: number): Promise<StoredPoint | undefined> {
    return this.#knex('sent_points')
      .where({ transfer: id, number })
      .first<StoredPoint | undefined>('number', 'file_offset as fileOffset', 'data_bytes as dataBytes', 'articles');
  }

  /** Nothing is written for a transfer that another has taken meanwhile. */
  async add({ id, fence }: RecordHandle, { number, fileOffset, dataBytes, articles }: StoredPoint): Promise<void> {
    await this.#knex.raw(
      `insert into sent_points (transfer, number, file_offset, data_bytes, articles)
       select id, :number, :fileOffset, :dataBytes, :articles from transfers where id = :id and fence = :fence
       on conflict (transfer, number) do update
         set file_offset = excluded.file_offset, data_bytes = excluded.data_bytes, articles = excluded.articles`,
      { id, fence, number, fileOffset, dataBytes, articles },
    );
  }

  /** An attempt begins at this point: what earlier ones placed behind it is gone; nothing when another has taken the transfer. */
  async forgetAfter({ id, fence }: RecordHandle, number: number): Promise<void> {
    await this.#knex.raw(
      `delete from sent_points p using transfers t
       where t.id = p.transfer and t.id = :id and t.fence = :fence and p.number > :number`,
      { id, fence, number },
    );
  }

  /** Removes the points of transfers that nobody can restart. @param knex in whose transaction. Default: none */
  async forgetOld(retentionDays: number, knex = this.#knex): Promise<void> {
    await knex.raw(
      `delete from sent_points where not exists (
         select from transfers where id = transfer and (restartable or status in ('PENDING', 'IN_PROGRESS')
           or status = 'COMPLETED' and end_time > now() - make_interval(days => ?)))`,
      [retentionDays],
    );
  }
}
