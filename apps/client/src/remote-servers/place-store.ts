import type { Knex } from 'knex';

/** A process, and the name that the one after it has too. */
export interface PlaceOwner {
  readonly node: string;
  /** UUID. */
  readonly instance: string;
}

/** A session, and the server that has a place for it. */
export interface PlaceAsked {
  /** UUID. */
  readonly session: string;
  readonly serverId: number;
  /** `maxConnections` of the server. */
  readonly limit: number;
  readonly leaseSeconds: number;
}

export interface PlaceKept {
  readonly session: string;
  readonly serverId: number;
  /** A pod has found no place with this server in the last seconds. */
  readonly wanted: boolean;
}

/** A session that waits for a place says so again before this time is over. */
const WISH_SECONDS = 5;

/** How often one `take` asks again when others are quicker. */
const MAX_LOOKS = 5;

/**
 * The lowest free place, as long as fewer are taken than the limit. Two that see the same place free are told apart by the key:
 * no lock is held, and who comes second looks again. Places that ran out are taken over.
 */
const TAKE = `
  with living as (
    select place from session_places where server_id = :serverId and until > now()
  ), free as (
    select n as place from generate_series(1, cast(:limit as integer)) n
    where n not in (select place from living) and (select count(*) from living) < :limit
    order by n limit 1
  ), taken as (
    insert into session_places as p (server_id, place, session, node, instance, until)
    select :serverId, place, :session, :node, :instance, now() + make_interval(secs => :leaseSeconds) from free
    on conflict (server_id, place) do update set session = excluded.session, node = excluded.node,
      instance = excluded.instance, until = excluded.until where p.until <= now()
    returning place
  ), wished as (
    insert into session_wishes as w (server_id, until)
    select :serverId, now() + make_interval(secs => :wishSeconds) where not exists (select from taken)
    on conflict (server_id) do update set until = excluded.until
  ), fulfilled as (
    delete from session_wishes where server_id = :serverId and exists (select from taken)
  )
  select exists (select from free) as free, exists (select from taken) as taken`;

const RENEW = `
  with renewed as (
    update session_places set until = now() + make_interval(secs => :leaseSeconds)
    where session = any (cast(:sessions as uuid[])) returning session, server_id
  )
  select session, server_id as "serverId",
    exists (select from session_wishes w where w.server_id = renewed.server_id and w.until > now()) as wanted
  from renewed`;

const GIVE = `
  with given as (
    delete from session_places where session = :session returning server_id
  )
  select exists (
    select from session_wishes w join given using (server_id) where w.until > now()
  ) as wanted`;

/** Places for sessions in the database, of all pods. One statement each. */
export const placeStore = (knex: Knex, owner: PlaceOwner) => ({
  /** @returns false when all are taken: then it is written down that one is wanted */
  take: async (asked: PlaceAsked): Promise<boolean> => {
    for (let look = 1; ; look++) {
      const { rows } = await knex.raw<{ rows: { readonly free: boolean; readonly taken: boolean }[] }>(TAKE, {
        ...{ ...asked, ...owner, wishSeconds: WISH_SECONDS },
      });
      const [row] = rows as [(typeof rows)[number]];
      if (row.taken || !row.free || look === MAX_LOOKS) return row.taken;
    }
  },

  /** @returns those that are held still */
  renew: async (sessions: readonly string[], leaseSeconds: number): Promise<readonly PlaceKept[]> =>
    (await knex.raw<{ rows: PlaceKept[] }>(RENEW, { sessions: [...sessions], leaseSeconds })).rows,

  /** @returns whether somebody waits for it */
  give: async (session: string): Promise<boolean> =>
    (await knex.raw<{ rows: { readonly wanted: boolean }[] }>(GIVE, { session })).rows[0]?.wanted === true,

  /** Those of an earlier process of this name: it is dead. */
  forgetEarlier: async (): Promise<void> => {
    await knex('session_places').where({ node: owner.node }).whereNot({ instance: owner.instance }).delete();
  },
});

export type PlaceStore = ReturnType<typeof placeStore>;
