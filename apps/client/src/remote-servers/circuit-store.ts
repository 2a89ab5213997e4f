import type { Knex } from 'knex';

/** `transfer.circuit.*`; milliseconds. */
export interface CircuitPolicy {
  /** Contacts that fail one after the other until it opens; 0: never. */
  readonly failures: number;
  readonly initialDelay: number;
  readonly maxDelay: number;
}

/** `changed`: the contact has opened or closed the circuit. */
export interface CircuitChange {
  readonly name: string;
  readonly changed: boolean;
}

const OPENS = '(circuit_opened_time is null and circuit_failures + 1 >= :failures)';
/** Failures of what was under way when it opened leave the time of the next probe as it is. */
const PROBED = 'circuit_until <= now()';

const FAILED = `
  update remote_servers set
    circuit_failures = circuit_failures + 1, circuit_reason = :reason,
    circuit_tries = circuit_tries + case when ${OPENS} or ${PROBED} then 1 else 0 end,
    circuit_opened_time = case when ${OPENS} then now() else circuit_opened_time end,
    circuit_until = case
      when ${OPENS} then now() + :initialDelay * interval '1 millisecond'
      when ${PROBED} then now() + least(:maxDelay, :initialDelay * power(2, least(circuit_tries, 30))) * interval '1 millisecond'
      else circuit_until end,
    circuit_probe_until = case when ${PROBED} then null else circuit_probe_until end
  where id = :id and :failures > 0
  returning name, circuit_opened_time is not distinct from now() as changed`;

const CLOSE = `
  update remote_servers s set circuit_failures = 0, circuit_tries = 0, circuit_reason = null, circuit_opened_time = null,
    circuit_until = null, circuit_probe_until = null
  from (select id, circuit_opened_time from remote_servers where id = :id and circuit_failures > 0 for no key update) before
  where s.id = before.id
  returning s.name, before.circuit_opened_time is not null as changed`;

/** The circuits of remote servers in the database, one statement each: all pods see the same. */
export const circuitStore = (knex: Knex) => {
  const change = async (sql: string, values: Readonly<Record<string, string | number>>) =>
    (await knex.raw<{ rows: CircuitChange[] }>(sql, values)).rows[0];
  return {
    /** A contact has failed. @returns undefined when there is no such server, or no breaker */
    failed: (id: number, reason: string, policy: CircuitPolicy): Promise<CircuitChange | undefined> =>
      change(FAILED, { id, reason, ...policy }),

    /** @returns undefined when no contact had failed */
    close: (id: number): Promise<CircuitChange | undefined> => change(CLOSE, { id }),

    /** A probe has ended that says nothing of the server: the next one may begin. */
    probeOver: async (id: number): Promise<void> => {
      await knex('remote_servers').where({ id }).update({ circuit_probe_until: null });
    },
  };
};

export type CircuitStore = ReturnType<typeof circuitStore>;
