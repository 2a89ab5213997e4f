import type { Caller } from '../audit/entry.js';
import type { DeclaredList } from './declared-list.js';

type Body = Readonly<Record<string, unknown>>;

/** How things of one kind are created and changed, by the same ways as through REST: same checks, same entries of the audit. */
export interface DeclaredResource {
  readonly list: DeclaredList;
  /** Those that exist, with their names in the file. */
  existing(ids: readonly string[]): Promise<readonly (readonly [id: string, row: object])[]>;
  /** @throws {ApiError} */
  create(body: Body, by: Caller): Promise<unknown>;
  /** @param body of a request that changes it: what is as it was counts for nothing @throws {ApiError} */
  change(row: object, body: Body, by: Caller): Promise<unknown>;
  /** Whether the secret that is stored in `column` of the row is this one. */
  matches(row: object, column: string, secret: string): Promise<boolean>;
  /** Whether a secret has to be given again beside these changes, though it is the same. Default: none has. */
  goesWith?(row: object, column: string, changes: object): boolean;
}
