import type { Knex } from 'knex';

const nothing = (): void => undefined;

/**
 * knex prints each connection that it finds dead in its pool, on the console and as often as it finds one. The supervisor
 * says it once, in the log, with the reason.
 */
export const quietKnex: Knex.Logger = { warn: nothing, error: nothing, deprecate: nothing, debug: nothing };
