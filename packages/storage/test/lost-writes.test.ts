import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { StagedFile, formatOf } from '../src/index.js';
import type { ChecksumKind, Durability } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { ModelDisk, chances, oneHappens } from './support/model-disk.js';

const format = formatOf({ recordLength: 65_535 });
const PART = '/d/.pesit/k.part';
const FINAL = '/d/out';

/** Each life sees the disk under a path of its own: the locks that a process holds go by their paths. */
let lives = 0;

class Killed extends Error {}

/** One transfer over as many lives of the receiving process as it takes, each ended at some step. */
class Transfer {
  readonly disk: ModelDisk;
  readonly #chance: () => number;
  readonly #durability: Durability;
  readonly #checksum: ChecksumKind;
  readonly #articles: readonly Buffer[];
  /** Steps that this life still has. */
  #left = 0;
  #life = 0;
  /** The newest acknowledged point, by the articles before it, that must not be lost. */
  #promised = 0;
  resumedFrom = 0;

  constructor(seed: number, durability: Durability, checksum: ChecksumKind) {
    this.#chance = chances(seed);
    // A disk that is asked through the pool alone, one whose calls are mostly made at once, and a mixture.
    this.disk = new ModelDisk(this.#chance, [0, 0.5, 0.95][Math.floor(this.#chance() * 3)]);
    this.#durability = durability;
    this.#checksum = checksum;
    this.#articles = Array.from({ length: 40 }, (_, i) => {
      const article = Buffer.alloc(1 + Math.floor(this.#chance() * 1500), i + 1);
      article.writeUInt8(Math.floor(this.#chance() * 256), 0);
      return article;
    });
  }

  /** @returns false when the file has its final name */
  async live(steps: number): Promise<boolean> {
    this.#life += 1;
    this.#left = steps;
    const end = await this.#attempt().catch((error: unknown) => {
      if (!(error instanceof Killed)) throw error;
      return 'killed' as const;
    });
    // A point that is acknowledged from here on belongs to no life.
    this.#life += 1;
    const powerIsCut = end !== 'delivered' && this.#chance() < 0.5;
    if (powerIsCut) this.disk.cutPower();
    else if (end === 'killed') this.disk.kill();
    if (end !== 'delivered' && !this.#keepsPromise(powerIsCut && end === 'killed' ? 'power' : end)) this.#promised = 0;
    const delivered = this.disk.content(FINAL);
    if (delivered && !(this.#durability === 'none' && powerIsCut)) {
      expect(delivered.equals(this.#bytesBefore(this.#articles.length))).toBe(true);
    }
    return delivered === undefined;
  }

  async #attempt(): Promise<'released' | 'delivered'> {
    const root = `/life-${++lives}`;
    const { file, point } = await this.#until(
      StagedFile.resume({
        receiveDirectory: root,
        key: 'k',
        format,
        durability: this.#durability,
        checksum: this.#checksum,
        files: this.disk.mountedAt(root),
      }),
    );
    expect(point.articles).toBeGreaterThanOrEqual(this.#promised);
    expect(this.disk.content(PART)?.equals(this.#bytesBefore(point.articles))).toBe(true);
    expect(file).toMatchObject({ articles: point.articles, size: point.fileOffset, dataBytes: point.fileOffset });
    if (point.number > 0) this.resumedFrom += 1;
    this.#promised = point.articles;
    let { number } = point;
    for (const [i, article] of this.#articles.entries()) {
      if (i < point.articles) continue;
      file.write(batchOf(article));
      if (this.#chance() < 0.3) {
        number += 1;
        const life = this.#life;
        const articles = i + 1;
        const stored = file.checkpoint({ number, dataBytes: file.dataBytes, articles });
        stored.then(
          () => life === this.#life && (this.#promised = Math.max(this.#promised, articles)),
          () => undefined,
        );
      }
      while (this.#chance() < 0.6) await this.#step();
      if (this.#chance() < 0.005) {
        await this.#until(file.release());
        return 'released';
      }
    }
    await this.#until(file.deliver({ path: 'out', overwrite: this.#chance() < 0.5 }));
    return 'delivered';
  }

  /** What each durability promises of the points acknowledged: pesit-e.md §7 and `Durability`. */
  #keepsPromise(end: 'killed' | 'released' | 'power'): boolean {
    const keepsPoints = this.#durability === 'checkpoint' || this.#checksum === 'sha256';
    if (end === 'power') return this.#durability === 'checkpoint';
    return end === 'killed'
      ? keepsPoints
      : this.#durability === 'checkpoint' || (this.#durability === 'end' && keepsPoints);
  }

  #bytesBefore(articles: number): Buffer {
    return Buffer.concat(this.#articles.slice(0, articles));
  }

  async #step(): Promise<boolean> {
    if (this.#left-- <= 0) throw new Killed();
    return oneHappens(this.disk, this.#chance);
  }

  async #until<T>(promise: Promise<T>): Promise<T> {
    const end = { reached: false };
    const reach = () => (end.reached = true);
    promise.then(reach, reach);
    for (let idle = 0; !end.reached;) {
      idle = (await this.#step()) ? 0 : idle + 1;
      if (idle > 3) throw new Error('nothing is on its way, and no end reached');
    }
    return promise;
  }
}

test.each<[Durability, ChecksumKind, number]>([
  ['checkpoint', 'sha256', 350],
  ['checkpoint', 'none', 150],
  ['end', 'sha256', 60],
  ['none', 'sha256', 40],
  ['end', 'none', 20],
])(
  '%s, %s: killed or without power at any step, no promise is broken, no byte is wrong',
  async (durability, checksum, numRuns) => {
    let resumed = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.array(fc.integer({ min: 1, max: 90 }), { maxLength: 8 }),
        async (seed, lives) => {
          const transfer = new Transfer(seed, durability, checksum);
          let goesOn = true;
          for (const steps of [...lives, 10_000]) if (goesOn) goesOn = await transfer.live(steps);
          for (let more = 0; goesOn && more < 5; more++) goesOn = await transfer.live(10_000);
          expect(goesOn).toBe(false);
          resumed += transfer.resumedFrom;
        },
      ),
      { numRuns },
    );
    if (durability === 'checkpoint') expect(resumed).toBeGreaterThan(numRuns / 2);
  },
);
