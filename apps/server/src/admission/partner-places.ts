/** Sessions of each partner on this node: `maxConnections` of a partner counts over all listeners. */
export class PartnerPlaces {
  readonly #taken = new Map<string, number>();

  /** @returns false when the partner has as many sessions as it may. */
  take(partnerId: string, max: number): boolean {
    const taken = this.#taken.get(partnerId) ?? 0;
    if (taken >= max) return false;
    this.#taken.set(partnerId, taken + 1);
    return true;
  }

  giveBack(partnerId: string): void {
    const taken = this.#taken.get(partnerId) ?? 0;
    if (taken > 1) this.#taken.set(partnerId, taken - 1);
    else this.#taken.delete(partnerId);
  }
}
