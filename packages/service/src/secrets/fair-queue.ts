/** Where waiting work comes from. */
export interface Origin {
  /** Network address that asks. */
  readonly address: string;
  /** The partner that it claims to be: several of them may share one address, behind a proxy for example. */
  readonly name: string;
}

/**
 * Bounded work of strangers, so that nobody can wait behind the work of another: addresses take turns, and the names of one
 * address do. When all places are taken, those who have most give way: the newest work of the name that has most, at the
 * address that has most, unless the newcomer would then have as much.
 */
export class FairQueue<T> {
  readonly #capacity: number;
  /** In the order of their turns. No list is empty. */
  readonly #addresses = new Map<string, Map<string, T[]>>();
  #size = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#size;
  }

  /** @returns what has no place: `item` itself, or what gave way to it; undefined when there was room. */
  add(item: T, origin: Origin): T | undefined {
    if (this.#size < this.#capacity) {
      this.#push(item, origin);
      return undefined;
    }
    const loser = this.#loserFor(origin);
    if (loser === undefined) return item;
    this.#push(item, origin);
    return this.#remove(loser, 'newest');
  }

  /** The next one in turn. */
  take(): T | undefined {
    const [first] = this.#addresses;
    if (first === undefined) return undefined;
    const [address, names] = first;
    const [name = ''] = names.keys();
    const item = this.#remove({ address, name }, 'oldest');
    moveToEnd(names, name);
    moveToEnd(this.#addresses, address);
    return item;
  }

  #push(item: T, { address, name }: Origin): void {
    const names = this.#addresses.get(address) ?? new Map<string, T[]>();
    this.#addresses.set(address, names);
    const items = names.get(name) ?? [];
    names.set(name, items);
    items.push(item);
    this.#size += 1;
  }

  #remove({ address, name }: Origin, which: 'oldest' | 'newest'): T | undefined {
    const names = this.#addresses.get(address);
    const items = names?.get(name);
    const item = which === 'oldest' ? items?.shift() : items?.pop();
    this.#size -= 1;
    if (items?.length === 0) names?.delete(name);
    if (names?.size === 0) this.#addresses.delete(address);
    return item;
  }

  /** The origin whose newest work gives way to one more of `origin`; undefined: nobody has clearly more than it. */
  #loserFor(origin: Origin): Origin | undefined {
    const own = this.#addresses.get(origin.address);
    const [address, most] = largest(this.#addresses, countOf);
    const within = most - (own === undefined ? 0 : countOf(own)) > 1 ? address : origin.address;
    const names = this.#addresses.get(within) ?? new Map<string, T[]>();
    const [name, items] = largest(names, lengthOf);
    if (within !== origin.address) return { address: within, name };
    return items - (names.get(origin.name)?.length ?? 0) > 1 ? { address: within, name } : undefined;
  }
}

const lengthOf = (items: readonly unknown[]): number => items.length;
const countOf = (names: ReadonlyMap<string, readonly unknown[]>): number =>
  [...names.values()].reduce((sum, items) => sum + items.length, 0);

const largest = <V>(
  map: ReadonlyMap<string, V>,
  sizeOf: (value: V) => number,
): readonly [key: string, size: number] => {
  let best: readonly [string, number] = ['', 0];
  for (const [key, value] of map) {
    const size = sizeOf(value);
    if (size > best[1]) best = [key, size];
  }
  return best;
};

const moveToEnd = <V>(map: Map<string, V>, key: string): void => {
  const value = map.get(key);
  if (value === undefined) return;
  map.delete(key);
  map.set(key, value);
};
