import type { Migration } from '@pesit-node/service';

/** The circuit breaker of each remote server: what all pods know of contacts that failed one after the other. */
export const circuits: Migration = {
  name: '0028-circuits',
  up: async (knex) => {
    await knex.raw(`
      alter table remote_servers
        -- Failed contacts since the last good one, and times that the circuit was opened or stayed open after a probe.
        add column circuit_failures integer not null default 0,
        add column circuit_tries integer not null default 0,
        add column circuit_reason text,
        -- Null: closed. Until then nothing of it is begun, then one at a time.
        add column circuit_opened_time timestamptz,
        add column circuit_until timestamptz,
        -- A probe is on its way, at most until then.
        add column circuit_probe_until timestamptz,
        add constraint remote_servers_circuit check ((circuit_opened_time is null) = (circuit_until is null))`);
  },
};
