import { randomBytes } from 'node:crypto';

import { SecretError } from '@pesit-node/service';
import type { Rotation, SecretBox, SecretColumn } from '@pesit-node/service';
import type { Knex } from 'knex';

/** For which time a secret is: the `number`th period of its length since 1970. */
export interface Period {
  readonly periodMs: number;
  readonly number: number;
}

/** The secret of a period, the same on all pods. */
export interface PeriodSecret {
  readonly number: number;
  readonly bytes: Buffer;
}

interface Row {
  readonly period_ms: string;
  readonly number: string;
  readonly secret: string;
}

const SECRET_BYTES = 32;
const TABLE = 'ticket_keys';

/** Where the secrets are stored. */
export const TICKET_SECRETS = [
  { table: TABLE, column: 'secret', kind: 'sealed', owner: 'number' },
] as const satisfies readonly SecretColumn[];

const ownerOf = ({ periodMs, number }: Period): string => `ticket-keys/${periodMs}/${number}`;

const periodOf = ({ period_ms: periodMs, number }: Row): Period => ({
  ...{ periodMs: Number(periodMs), number: Number(number) },
});

/** The secrets in the database. The first pod that needs one makes it. */
export class TicketKeyStore {
  readonly #knex: Knex;
  readonly #secrets: SecretBox;

  constructor(knex: Knex, secrets: SecretBox) {
    this.#knex = knex;
    this.#secrets = secrets;
  }

  /** The clock of the database, milliseconds since 1970. */
  async time(): Promise<number> {
    const { rows } = await this.#knex.raw<{ rows: { now: Date }[] }>('select clock_timestamp() as now');
    const [row] = rows;
    if (row === undefined) throw new Error('the database did not say what time it is');
    return row.now.getTime();
  }

  /**
   * The secrets of this period, the one before, where there was one, and the next one.
   * @throws {SecretError} when another pod sealed one with a key that is not in `secrets.key`; errors of the database
   */
  async take(period: Period): Promise<readonly PeriodSecret[]> {
    const { number } = period;
    let rows = await this.#around(period);
    const missing = [number, number + 1].filter((wanted) => !rows.some((row) => Number(row.number) === wanted));
    if (missing.length > 0) {
      await this.#make(missing.map((wanted) => ({ ...period, number: wanted })));
      rows = await this.#around(period);
    }
    return rows.map((row) => ({ number: Number(row.number), bytes: this.#open(row) }));
  }

  /** Seals anew what an older key has sealed; what no key opens is removed, and made anew by the next pod that needs it. May run beside anything else, and again. */
  async sealAnew(): Promise<Pick<Rotation, 'sealed' | 'unreadable'>> {
    let sealed = 0;
    for (const row of await this.#knex<Row>(TABLE).select('period_ms', 'number', 'secret')) {
      if (!this.#secrets.isStale(row.secret)) continue;
      const here = this.#knex(TABLE).where(row);
      try {
        sealed += await here.update({ secret: this.#seal(periodOf(row), this.#open(row)) });
      } catch (error) {
        if (!(error instanceof SecretError)) throw error;
        await here.delete();
      }
    }
    return { sealed, unreadable: [] };
  }

  #around({ periodMs, number }: Period): Promise<Row[]> {
    return this.#knex<Row>(TABLE)
      .where({ period_ms: String(periodMs) })
      .whereBetween('number', [number - 1, number + 1])
      .select('period_ms', 'number', 'secret');
  }

  async #make(periods: readonly Period[]): Promise<void> {
    const rows = periods.map((period) => ({
      ...{ period_ms: period.periodMs, number: period.number },
      secret: this.#seal(period, randomBytes(SECRET_BYTES)),
      ends_at: new Date((period.number + 2) * period.periodMs),
    }));
    await this.#knex(TABLE).insert(rows).onConflict(['period_ms', 'number']).ignore();
    await this.#knex(TABLE).where('ends_at', '<', this.#knex.raw('now()')).delete();
  }

  #seal(period: Period, secret: Buffer): string {
    return this.#secrets.seal(secret.toString('base64'), ownerOf(period));
  }

  #open(row: Row): Buffer {
    return Buffer.from(this.#secrets.open(row.secret, ownerOf(periodOf(row))), 'base64');
  }
}
