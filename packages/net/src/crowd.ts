import { networkOf } from './network.js';

/**
 * Callers that have proved nothing yet, by where they come from: when there is no room for all, the network that has most gives way,
 * so that no stranger can keep a partner of another network out.
 */
export class Crowd<T> {
  /** In the order of arrival. */
  readonly #members = new Map<T, { readonly address: string; readonly network: string }>();
  readonly #counts = new Map<string, number>();

  get size(): number {
    return this.#members.size;
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#members.keys();
  }

  add(member: T, address: string): void {
    const network = networkOf(address);
    this.#members.set(member, { address, network });
    this.#counts.set(network, this.#countOf(network) + 1);
  }

  delete(member: T): void {
    const network = this.#members.get(member)?.network;
    if (network === undefined) return;
    this.#members.delete(member);
    const left = this.#countOf(network) - 1;
    if (left === 0) this.#counts.delete(network);
    else this.#counts.set(network, left);
  }

  addressOf(member: T): string | undefined {
    return this.#members.get(member)?.address;
  }

  /** The oldest of a network that has most. */
  oldest(): T | undefined {
    return this.#ofLargest()[0];
  }

  /** The newest of a network that has most; undefined when one more from `address` would then have as much. */
  newestBefore(address: string): T | undefined {
    return this.#most() - this.#countOf(networkOf(address)) > 1 ? this.#ofLargest().at(-1) : undefined;
  }

  #countOf(network: string): number {
    return this.#counts.get(network) ?? 0;
  }

  #most(): number {
    return Math.max(0, ...this.#counts.values());
  }

  #ofLargest(): readonly T[] {
    const most = this.#most();
    return [...this.#members].filter(([, { network }]) => this.#countOf(network) === most).map(([member]) => member);
  }
}
