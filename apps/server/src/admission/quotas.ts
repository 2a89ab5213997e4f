import type { PesitError } from '@pesit-node/protocol';
import type { Knex } from 'knex';

import type { Usage, WaitingFiles } from '../transfers/waiting-files.js';
import { asking, refusal } from '../exchange/refusal.js';

/** Limits of a partner, as configured; null: none. */
export interface Quota {
  readonly quota_bytes: number | null;
  readonly quota_files: number | null;
}

/** A file that is about to be received. */
export interface Claim {
  readonly partnerId: string;
  /** Bytes that it will have at least. */
  readonly announced: number;
  /** Its record, when the partner restarts it. */
  readonly record?: number;
}

/** The room that a partner with a quota has for one file. */
export interface QuotaRoom {
  /** Asks once more, where no other file of the partner can begin meanwhile. @throws PesitError 2-202 */
  readonly admit: (transaction: Knex.Transaction) => Promise<void>;
  /** While it grows, and at its end, with its size. @throws PesitError 2-202 when it has become too much */
  readonly check: (record: number, size: number) => Promise<void>;
  /** Bytes that the file may have by what else is there now. */
  readonly bytes: number;
  /** It has become larger than that. */
  readonly exceeded: () => PesitError;
}

/** Between two looks at the files of one partner, milliseconds: who asks again and again reads no directories with it. */
const LOOK_EVERY_MS = 1000;

/**
 * How much of a partner may lie here (`quotaBytes`, `quotaFiles`): what was received and is still there, what is being received,
 * and what is staged for a restart. The database knows the sum, for all pods; whether a file was fetched is seen by looking.
 */
export class Quotas {
  readonly #waiting: WaitingFiles;
  /** When the files of each partner with a quota were looked at last. */
  readonly #looked = new Map<string, number>();

  constructor(waiting: WaitingFiles) {
    this.#waiting = waiting;
  }

  /**
   * @returns undefined when the partner has no quota
   * @throws PesitError 2-202, to be tried again later, when it is used up
   */
  async roomFor(quota: Quota, claim: Claim): Promise<QuotaRoom | undefined> {
    if (quota.quota_bytes === null && quota.quota_files === null) return undefined;
    const { partnerId, record } = claim;
    const ask = () => asking('2-201', () => this.#waiting.usage(partnerId, record));
    let usage = await ask();
    if (refusalOf(quota, usage, claim) !== undefined && this.#mayLook(partnerId)) {
      await asking('2-201', () => this.#waiting.look(partnerId));
      usage = await ask();
    }
    refuseFor(refusalOf(quota, usage, claim));
    const usedUp = (now: Usage) => bytesUsedUp(quota, now, claim);
    return {
      bytes: (quota.quota_bytes ?? Infinity) - usage.bytes,
      exceeded: () => usedUp(usage),
      admit: async (transaction) => {
        await this.#waiting.lock(transaction, partnerId);
        refuseFor(refusalOf(quota, await this.#waiting.usage(partnerId, record, transaction), claim));
      },
      check: async (id, size) => {
        const { quota_bytes: bytes } = quota;
        if (bytes === null) return;
        const accept = (others: Usage): void => {
          if (others.bytes + size > bytes) throw usedUp(others);
        };
        await asking('2-201', () => this.#waiting.claim(partnerId, id, size, accept));
      },
    };
  }

  #mayLook(partnerId: string): boolean {
    const now = performance.now();
    if (now - (this.#looked.get(partnerId) ?? -Infinity) < LOOK_EVERY_MS) return false;
    this.#looked.set(partnerId, now);
    return true;
  }
}

const refuseFor = (refused: PesitError | undefined): void => {
  if (refused !== undefined) throw refused;
};

const refusalOf = (quota: Quota, usage: Usage, claim: Claim): PesitError | undefined => {
  const { quota_bytes: bytes, quota_files: files } = quota;
  if (files !== null && usage.files >= files) {
    return usedUpOf(claim, `${usage.files} of ${files} files (quotaFiles)`);
  }
  return bytes !== null && (usage.bytes >= bytes || usage.bytes + claim.announced > bytes)
    ? bytesUsedUp(quota, usage, claim)
    : undefined;
};

const bytesUsedUp = ({ quota_bytes: bytes }: Quota, usage: Usage, claim: Claim): PesitError => {
  const more = claim.announced > 0 ? `, and the file announces ${claim.announced} more` : '';
  return usedUpOf(claim, `${usage.bytes} of ${bytes ?? 0} bytes (quotaBytes)${more}`);
};

/** Not for good (annex D): the partner comes again when its files were fetched. */
const usedUpOf = ({ partnerId }: Claim, used: string): PesitError =>
  refusal(
    '2-202',
    `the quota of the partner ${partnerId} is used up, ${used}: fetch what it has sent, or raise the quota`,
    `quota used up, ${used}: try again when files were fetched here`,
  );
