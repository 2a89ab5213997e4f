import type { Migration } from '@pesit-node/service';

/**
 * How many sessions of a listener, or of a partner, each pod may have: the sum of all pods that live is never more than the
 * limit. `take_places` gives the pod `own` what it asks for (`asked`: owner, limit, used, wanted), as far as others leave it, and
 * never less than it uses; one who wants a place at the same time waits. A pod counts while its lease in `cluster_pods` runs,
 * or while `own` has seen it (`living`). Who got less than he needs has `refused_at`: the others give back what they do not use.
 */
export const sessionPlaces: Migration = {
  name: '0023-session-places',
  up: async (knex) => {
    await knex.raw(`
      create table session_places (
        owner text collate "C" not null,
        instance uuid not null,
        places integer not null check (places >= 0),
        refused_at timestamptz,
        primary key (owner, instance)
      )`);
    await knex.raw(`
      create function take_places(own uuid, living uuid[], lease interval, asked jsonb)
        returns table (owner text, places integer) language plpgsql as $$
      declare
        one record;
        free integer;
      begin
        for one in
          select * from jsonb_to_recordset(asked) as a (owner text, "limit" integer, used integer, wanted integer)
          order by a.owner
        loop
          perform pg_advisory_xact_lock(hashtextextended('pesit session places ' || one.owner, 0));
          select one."limit" - coalesce(sum(s.places), 0) into free from session_places s
          where s.owner = one.owner and s.instance <> own and (s.instance = any (living) or exists (
            select from pesit_common.cluster_pods p where p.instance = s.instance and p.seen_at > now() - lease));
          owner := one.owner;
          places := greatest(one.used, least(one.wanted, free));
          insert into session_places as s (owner, instance, places, refused_at)
          values (one.owner, own, take_places.places, case when take_places.places = one.used and one.wanted > one.used then now() end)
          on conflict on constraint session_places_pkey do update
            set places = excluded.places, refused_at = excluded.refused_at;
          return next;
        end loop;
      end $$`);
  },
};
