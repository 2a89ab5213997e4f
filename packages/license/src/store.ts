import { createHash, randomUUID } from 'node:crypto';

import type { AuditWrite } from '@pesit-node/service';
import type { Knex } from 'knex';

import { mergeRecords } from './clock.js';
import type { ClockRecord, SeenTimes } from './clock.js';
import type { Extension } from './state.js';
import type { License } from './verify.js';

export type LicenseSource = 'API' | 'FILE' | 'CONTENT';

export interface Installation {
  readonly source: LicenseSource;
  /** Who did it, for the audit. */
  readonly actor: string;
  /** Milliseconds. */
  readonly at: number;
  /** It alone counts from now on: all others are marked as replaced. */
  readonly replace: boolean;
}

export interface StoredClock {
  readonly record: ClockRecord | undefined;
  /** Whether both witnesses are there and say the same. */
  readonly whole: boolean;
  /** UUID of this installation, made at the first start; a copy of the database has the same. */
  readonly installation: string | undefined;
}

/** Where the keeper keeps what must outlive the process. All pods and both apps may share it. */
export interface LicenseStore {
  clock(): Promise<StoredClock>;
  /** Merges what this process knows into both witnesses, atomically; creates them where they are missing. */
  mergeClock(known: ClockRecord, actor: string): Promise<ClockRecord>;
  /** Texts of the licenses that were not replaced. */
  licenses(): Promise<readonly string[]>;
  extensions(): Promise<readonly Extension[]>;
  /** @returns false when it is there already (one from a file stays replaced once it was). */
  install(license: License, installation: Installation, audited?: AuditWrite): Promise<boolean>;
  extend(extension: Extension, actor: string, audited?: AuditWrite): Promise<void>;
  /** Times that the audit remembers. */
  seen(): Promise<SeenTimes>;
}

interface ClockRow {
  readonly installation: string | null;
  readonly started_at: Date;
  readonly counted: Date;
  readonly highest: Date;
}

const WITNESSES = ['license_evaluation', 'license_witness'] as const;

const toRecord = (row: ClockRow): ClockRecord => ({
  startedAt: row.started_at.getTime(),
  counted: row.counted.getTime(),
  highest: row.highest.getTime(),
});

const toRow = ({ startedAt, counted, highest }: ClockRecord): Omit<ClockRow, 'installation'> => ({
  started_at: new Date(startedAt),
  counted: new Date(counted),
  highest: new Date(highest),
});

const same = (one: ClockRecord, other: ClockRecord): boolean =>
  one.startedAt === other.startedAt && one.counted === other.counted && one.highest === other.highest;

/** The store in schema `pesit_common`, whatever the search path. */
export class KnexLicenseStore implements LicenseStore {
  readonly #knex: Knex;

  constructor(knex: Knex) {
    this.#knex = knex;
  }

  async clock(): Promise<StoredClock> {
    const rows: ClockRow[] = [];
    for (const table of WITNESSES) {
      const row = await this.#table(table).first<ClockRow | undefined>();
      if (row !== undefined) rows.push(row);
    }
    const installation = await this.#installation(rows);
    const [one, other] = rows.map(toRecord);
    if (one === undefined) return { record: undefined, whole: false, installation };
    if (other === undefined) return { record: one, whole: false, installation };
    const whole =
      same(one, other) && rows.every((row) => row.installation !== null && row.installation === installation);
    return { record: mergeRecords(one, other), whole, installation };
  }

  async mergeClock(known: ClockRecord, actor: string): Promise<ClockRecord> {
    return this.#knex.transaction(async (trx) => {
      const rows: ClockRow[] = [];
      let created = 0;
      for (const table of WITNESSES) {
        const inserted = await this.#table(table, trx)
          .insert({ id: 1, ...toRow(known) })
          .onConflict('id')
          .ignore()
          .returning('id');
        created += inserted.length;
        const row = await this.#table(table, trx).forUpdate().first<ClockRow | undefined>();
        if (row !== undefined) rows.push(row);
      }
      const merged = rows.map(toRecord).reduce(mergeRecords, known);
      const installation = (await this.#installation(rows, trx)) ?? randomUUID();
      for (const table of WITNESSES) await this.#table(table, trx).update({ ...toRow(merged), installation });
      if (created === WITNESSES.length) {
        await this.#table('license_events', trx).insert({
          at: new Date(merged.startedAt),
          action: 'EVALUATION_STARTED',
          actor,
          installation,
        });
      }
      return merged;
    });
  }

  async licenses(): Promise<readonly string[]> {
    return this.#table('licenses').whereNull('replaced_at').orderBy('digest').pluck<string[]>('text');
  }

  async extensions(): Promise<readonly Extension[]> {
    const rows = await this.#table('license_events')
      .where({ action: 'EVALUATION_EXTENDED' })
      .orderBy('id')
      .select<{ days: number; at: Date; counted: Date }[]>('days', 'at', 'counted');
    return rows.map(({ days, at, counted }) => ({ days, at: at.getTime(), counted: counted.getTime() }));
  }

  async install(
    license: License,
    { source, actor, at, replace }: Installation,
    audited?: AuditWrite,
  ): Promise<boolean> {
    const digest = createHash('sha256').update(license.text).digest('hex');
    const when = new Date(at);
    return this.#knex.transaction(async (trx) => {
      if (replace) {
        await this.#table('licenses', trx)
          .whereNull('replaced_at')
          .andWhereNot({ digest })
          .update({ replaced_at: when });
      }
      const row = {
        license_id: license.licenseId,
        text: license.text,
        source,
        installed_at: when,
        installed_by: actor,
      };
      const insert = this.#table('licenses', trx)
        .insert({ digest, ...row })
        .onConflict('digest');
      // A license that an operator installs again counts again; a file that still lies there does not undo a replacement.
      const written = await (
        source === 'API' ? insert.merge({ replaced_at: null }).whereNotNull('licenses.replaced_at') : insert.ignore()
      ).returning('digest');
      if (written.length === 0 && !replace) return false;
      await this.#table('license_events', trx).insert({
        at: when,
        action: 'LICENSE_INSTALLED',
        actor,
        license_id: license.licenseId,
        forced: replace,
      });
      await audited?.(trx);
      return true;
    });
  }

  async extend({ days, at, counted }: Extension, actor: string, audited?: AuditWrite): Promise<void> {
    const times = { at: new Date(at), counted: new Date(counted) };
    await this.#knex.transaction(async (trx) => {
      await this.#table('license_events', trx).insert({ action: 'EVALUATION_EXTENDED', actor, days, ...times });
      await audited?.(trx);
    });
  }

  async seen(): Promise<SeenTimes> {
    const row = await this.#table('license_events')
      .min({ earliest: 'at' })
      .max({ latest: 'at' })
      .first<{ earliest: Date | null; latest: Date | null } | undefined>();
    return { earliest: row?.earliest?.getTime(), latest: row?.latest?.getTime() };
  }

  /** Kept three times, as the clock is. */
  async #installation(rows: readonly ClockRow[], knex: Knex = this.#knex): Promise<string | undefined> {
    const own = rows.map(({ installation }) => installation).find((installation) => installation !== null);
    if (own !== undefined) return own;
    const event = await this.#table('license_events', knex)
      .whereNotNull('installation')
      .orderBy('id')
      .first<{ installation: string } | undefined>('installation');
    return event?.installation;
  }

  #table(name: string, knex: Knex = this.#knex) {
    return knex.withSchema('pesit_common').from<Record<string, unknown>>(name);
  }
}
