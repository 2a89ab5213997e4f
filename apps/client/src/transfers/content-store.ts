import type { Knex } from 'knex';

import type { TransferRow } from './row.js';

/** How long a claim on a key lasts that nobody renews: who made it is dead, or slower than another may be. */
const CLAIM_SECONDS = 60;

/** The request with this key is the first, or the one before it is taken for dead. */
const CLAIM = `
  insert into requests_under_way (idempotency_key, request, until)
  values (:key, cast(:request as uuid), now() + make_interval(secs => ${CLAIM_SECONDS}))
  on conflict (idempotency_key) do update set request = excluded.request, until = excluded.until
  where requests_under_way.until < now()
  returning request`;

const RENEW = `
  update requests_under_way set until = now() + make_interval(secs => ${CLAIM_SECONDS})
  where idempotency_key = :key and request = :request`;

/**
 * Marked before it is removed, under the lock of its row: a transfer that is being tried again at the same time either keeps
 * its content, or is refused.
 */
const EXPIRE = `
  update transfers set content = 'REMOVED'
  where id = any (cast(:ids as uuid[])) and content = 'KEPT'
    and status in ('COMPLETED', 'FAILED', 'CANCELLED')
    and end_time <= now() - make_interval(secs => case status
      when 'COMPLETED' then cast(:completed as double precision) else cast(:failed as double precision) end)`;

/** Contents that came with requests, in the database: whose they are, and which are on their way. */
export const contentStore = (knex: Knex) => ({
  /**
   * Until the request is answered no other with this key is taken in, on any pod.
   * @param request its id
   * @returns false when another is being taken in
   */
  claimKey: async (key: string, request: string): Promise<boolean> =>
    (await knex.raw<{ rows: unknown[] }>(CLAIM, { key, request })).rows.length > 0,

  /** The content of the request is still coming in. */
  renewClaim: async (key: string, request: string): Promise<void> => {
    await knex.raw(RENEW, { key, request });
  },

  releaseKey: async (key: string, request: string): Promise<void> => {
    await knex('requests_under_way').where({ idempotency_key: key, request }).delete();
  },

  /** Claims of processes that died. */
  forgetClaims: async (): Promise<void> => {
    await knex('requests_under_way').whereRaw("until < now() - interval '1 day'").delete();
  },

  /**
   * Gives up the contents of transfers that are over for so long (milliseconds).
   * @returns whose content is to be there, or not, of those ids that are known
   */
  expireContents: async (
    ids: readonly string[],
    after: { readonly completed: number; readonly failed: number },
  ): Promise<ReadonlyMap<string, TransferRow['content']>> => {
    const seconds = { completed: after.completed / 1000, failed: after.failed / 1000 };
    await knex.raw(EXPIRE, { ids: [...ids], ...seconds });
    const rows: readonly Pick<TransferRow, 'id' | 'content'>[] = await knex('transfers')
      .whereRaw('id = any (cast(? as uuid[]))', [[...ids]])
      .select('id', 'content');
    return new Map(rows.map(({ id, content }) => [id, content]));
  },
});
