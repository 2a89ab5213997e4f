import { conflict, FieldStore, SecretError, validation } from '@pesit-node/service';
import type { AuditChange, CommonConfig, Rotation, SecretBox, SecretColumn, Uses, ValuesOf } from '@pesit-node/service';
import type { Knex } from 'knex';

import { executableOf, HOOK } from './fields.js';
import type { HookFields, HookRow } from './fields.js';
import { mayBeAsked } from './hosts.js';

export type HookConfig = Pick<
  CommonConfig,
  | 'hooks.webhooks'
  | 'hooks.directory'
  | 'hooks.allowed-hosts'
  | 'hooks.allow-http'
  | 'hooks.webhook-timeout'
  | 'hooks.executable-timeout'
  | 'hooks.concurrency'
  | 'hooks.concurrency-per-hook'
  | 'hooks.give-up-after'
  | 'hooks.retention-days'
  | 'hooks.max-deliveries'
>;

/** Each outcome asks all hooks whether it is for them. */
const MOST_HOOKS = 100;

/** A seal opens for the hook alone that it was made for. */
const contextOf = (hookId: string): string => JSON.stringify(['hook', hookId, 'secret']);

/** The secret of a hook. @throws {SecretError} when its key is not in `secrets.key` */
export const openSecret = (secrets: SecretBox, hookId: string, sealed: string): string =>
  secrets.open(sealed, contextOf(hookId));

/** Hooks in the database; their secrets are sealed on the way in. */
export class HookStore extends FieldStore<HookFields> {
  readonly #secrets: SecretBox;
  readonly #config: HookConfig;
  readonly #changed: () => void;

  /** @param changed told of each change */
  constructor(knex: Knex, secrets: SecretBox, config: HookConfig, changed: () => void = () => undefined) {
    super(knex, HOOK);
    this.#secrets = secrets;
    this.#config = config;
    this.#changed = changed;
  }

  override async create(
    id: string,
    values: Partial<ValuesOf<HookFields>>,
    audited?: AuditChange<HookRow>,
  ): Promise<HookRow | undefined> {
    this.#check({ ...HOOK.defaults, ...values });
    const [counted] = await this.knex(HOOK.table).count<{ total: number }[]>({ total: '*' });
    if ((counted?.total ?? 0) >= MOST_HOOKS) {
      throw conflict(`There are ${MOST_HOOKS} hooks already, and each outcome looks at all: delete one first`);
    }
    const row = await super.create(id, this.#sealed(id, values), audited);
    this.#changed();
    return row;
  }

  override async update(
    id: string,
    values: Partial<ValuesOf<HookFields>>,
    beside: Readonly<Record<string, Knex.Raw>> = {},
    audited?: AuditChange<HookRow>,
  ): Promise<HookRow | undefined> {
    const before = await this.get(id);
    if (before === undefined) return undefined;
    this.#check({ ...before, ...values }, values);
    const enabled = values.enabled === true ? { disabled_reason: this.knex.raw('null') } : {};
    const row = await super.update(id, this.#sealed(id, values), { ...beside, ...enabled }, audited);
    this.#changed();
    return row;
  }

  #sealed(id: string, values: Partial<ValuesOf<HookFields>>): Partial<ValuesOf<HookFields>> {
    const { secret } = values;
    return typeof secret === 'string' ? { ...values, secret: this.#secrets.seal(secret, contextOf(id)) } : values;
  }

  /** @param changes of it, by which the configuration is asked; default: all are new */
  #check(whole: Partial<ValuesOf<HookFields>>, changes = whole): void {
    const config = this.#config;
    const { target = '', secret = null, enabled } = whole;
    const isRun = executableOf(target) !== undefined;
    if (!isRun && secret === null)
      throw validation([{ field: 'secret', message: 'expected beside the URL of target' }]);
    if (!isRun && changes.target !== undefined) {
      const message = mayBeAsked(target, config);
      if (message !== undefined) throw validation([{ field: 'target', message }]);
    }
    if (enabled !== true || (changes.target === undefined && changes.enabled !== true)) return;
    if (isRun && config['hooks.directory'] === '') {
      throw conflict('Hooks may not run executables here: set hooks.directory first, or create the hook disabled');
    }
    if (!isRun && !config['hooks.webhooks']) {
      throw conflict('Hooks may not send requests here: set hooks.webhooks first, or create the hook disabled');
    }
  }
}

/** The deliveries of a hook that wait. */
export const HOOK_USES: Uses<HookRow> = {
  of: async (knex, { hook_id: id }) => {
    const { rows } = await knex.raw<{ rows: [{ total: number }] }>(
      'select count(*)::int as total from hook_deliveries where hook_id = ? and due_at is not null',
      [id],
    );
    const [{ total }] = rows;
    return total === 0 ? [] : [`${total} ${total === 1 ? 'delivery waits' : 'deliveries wait'}`];
  },
  forced: 'its deliveries are given up.',
};

/** Where secrets of hooks are stored. */
export const HOOK_SECRETS = [
  { table: 'hooks', column: 'secret', kind: 'sealed', owner: 'hook_id' },
] as const satisfies readonly SecretColumn[];

/** For `npm run rotate-secrets`: seals anew what an older key has sealed. May run beside anything else, and again. */
export const sealHooksAnew = async (
  knex: Knex,
  secrets: SecretBox,
): Promise<Pick<Rotation, 'sealed' | 'unreadable'>> => {
  let sealed = 0;
  const unreadable: string[] = [];
  for (const { hook_id: id, secret: before } of await new FieldStore(knex, HOOK).list()) {
    if (before === null || !secrets.isStale(before)) continue;
    try {
      const after = secrets.seal(openSecret(secrets, id, before), contextOf(id));
      // Who gave another one meanwhile has the last word.
      sealed += await knex(HOOK.table).where({ hook_id: id, secret: before }).update({ secret: after });
    } catch (error) {
      if (!(error instanceof SecretError)) throw error;
      unreadable.push(`hook ${id}`);
    }
  }
  return { sealed, unreadable };
};
