import { SecretError } from '@pesit-node/service';
import type { SecretBox } from '@pesit-node/service';

/** Where the passwords of a row of `remote_servers` go, and for whom. */
export interface Destination {
  readonly id: number;
  readonly host: string;
  readonly port: number;
  readonly server_id: string;
  readonly client_id: string;
  readonly preconnect_id: string | null;
}

/** The columns that hold sealed passwords. */
export type SealedColumn = 'password' | 'preconnect_password';

/**
 * The destination a password is bound to: the associated data of its seal. Anyone who changes one of these has to give the password again, and
 * who changes them behind the service's back, in the database, gets nothing that can be opened: a password that was entered
 * for one host is never shown to another.
 */
const BOUND_TO = {
  password: ({ host, port, server_id: serverId, client_id: clientId }) => [host, port, serverId, clientId],
  preconnect_password: ({ host, port, preconnect_id: identifier }) => [host, port, identifier],
} as const satisfies Record<SealedColumn, (to: Destination) => readonly (string | number | null)[]>;

/** The owners of seals that were made before they were bound to a destination. */
const UNBOUND = {
  password: (id: number) => `remote-server/${id}/password`,
  preconnect_password: (id: number) => `remote-server/${id}/preconnect-password`,
} as const satisfies Record<SealedColumn, (id: number) => string>;

const contextOf = (column: SealedColumn, to: Destination): string =>
  JSON.stringify(['remote-server', to.id, column, ...BOUND_TO[column](to)]);

/** Whether a password for the one destination may not be used for the other. */
export const leadsElsewhere = (column: SealedColumn, before: Destination, after: Destination): boolean =>
  contextOf(column, before) !== contextOf(column, after);

/** A password, to be stored with its destination. */
export const sealFor = (secrets: SecretBox, column: SealedColumn, to: Destination, password: string): string =>
  secrets.seal(password, contextOf(column, to));

/** @throws {SecretError} when it was sealed for another destination, or its key is not there */
export const openFor = (secrets: SecretBox, column: SealedColumn, to: Destination, sealed: string): string =>
  secrets.open(sealed, contextOf(column, to));

/**
 * The same password sealed anew: when its seal is not bound to the destination yet, or, with `rotate`, when an older key made
 * it. Undefined when the seal is as it should be.
 * @throws {SecretError} when it cannot be opened either way
 */
export const sealedAnew = (
  secrets: SecretBox,
  column: SealedColumn,
  to: Destination,
  sealed: string,
  rotate: boolean,
): string | undefined => {
  const seal = (password: string): string => sealFor(secrets, column, to, password);
  try {
    const password = openFor(secrets, column, to, sealed);
    return rotate && secrets.isStale(sealed) ? seal(password) : undefined;
  } catch (error) {
    if (!(error instanceof SecretError)) throw error;
    return seal(secrets.open(sealed, UNBOUND[column](to.id)));
  }
};
