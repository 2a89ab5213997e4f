/**
 * Whether this process may judge the leases of others. While the database was away nobody could renew one, so one that has run
 * out says nothing until its holder has had a whole lease to come back, and this process has watched all the while. Nor does it
 * after this process stood still: others of its machine may have, too.
 */
export class LeaseWatch {
  readonly #leaseMs: number;
  readonly #monotonic: () => number;
  #since: number | undefined;
  #heardAt = 0;

  /** @param leaseMs of the others, milliseconds */
  constructor(leaseMs: number, monotonic: () => number = () => performance.now()) {
    this.#leaseMs = leaseMs;
    this.#monotonic = monotonic;
  }

  get mayJudge(): boolean {
    const now = this.#monotonic();
    return this.#since !== undefined && now - this.#since > this.#leaseMs && now - this.#heardAt < this.#leaseMs;
  }

  /** The database has answered. @param asked when the statement was sent, by the monotonic clock */
  heard(asked: number): void {
    if (this.#since === undefined || asked - this.#heardAt >= this.#leaseMs) this.#since = asked;
    this.#heardAt = asked;
  }

  /** The database could not be asked. */
  failed(): void {
    this.#since = undefined;
  }
}
