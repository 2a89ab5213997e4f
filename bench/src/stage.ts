/** Where rows run: a folder on one medium, the files to move, and the pair of apps, each made when a row first needs it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { access, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256, writeRandomFile } from './files.js';
import type { Measurement } from './figures.js';
import { HistoryBench } from './history.js';
import type { Direction } from './client-app.js';
import { LARGE_FILE, NodePair, type PairOptions } from './node-pair.js';
import type { Options } from './options.js';
import { PLAIN, type Target } from './pair-setup.js';
import { issuePapers, type Papers } from './papers.js';
import { rawCopy, writeAndFlush } from './raw.js';
import { VARIATIONS, type Variation, type VariationName } from './variations.js';

const SMALL_SIZE = 4096;
/** Files of the row of many large ones: each is this part of the large file. */
const PART = 32;
const PART_FILE = 'part.bin';
/** Transfers at a time while V8 compiles what small files need. */
const WARM_UP_AT_ONCE = 32;

export class Stage {
  readonly #directory: string;
  readonly #options: Options;
  readonly #how: PairOptions;
  #papers: Promise<Papers> | undefined;
  #large: string | undefined;
  #small: string | undefined;
  #pair: NodePair | undefined;
  #history: HistoryBench | undefined;
  #hash: string | undefined;
  #checked = new Set<Direction>();
  #partners: Promise<readonly Target[]> | undefined;
  #crowd: Promise<Target> | undefined;
  #varied = new Map<VariationName, Target>();
  #isWarm = false;

  constructor(medium: string, how: PairOptions, options: Options) {
    this.#directory = mkdtempSync(join(medium, 'pesit-bench-'));
    this.#how = how;
    this.#options = options;
  }

  async #largeFile(): Promise<string> {
    if (this.#large === undefined) {
      const path = join(this.#directory, 'large.bin');
      await writeRandomFile(path, this.#options.size);
      this.#large = path;
    }
    return this.#large;
  }

  async #smallFile(): Promise<string> {
    if (this.#small === undefined) {
      const path = join(this.#directory, 'small.bin');
      await writeRandomFile(path, SMALL_SIZE);
      this.#small = path;
    }
    return this.#small;
  }

  async #startedPair(files: { readonly large?: string; readonly small?: string }): Promise<NodePair> {
    this.#pair ??= await NodePair.start(this.#directory, this.#how, this.#options, {
      ...files,
      papers: await this.#ownPapers(),
    });
    return this.#pair;
  }

  async #ownPapers(): Promise<Papers | undefined> {
    if (this.#how.tls !== true) return undefined;
    this.#papers ??= issuePapers();
    return this.#papers;
  }

  async raw(hashing: 'plain' | 'hashed' = 'plain'): Promise<Measurement> {
    const target = join(this.#directory, 'copy.bin');
    const measurement = await rawCopy(await this.#largeFile(), target, hashing, await this.#ownPapers());
    await rm(target);
    return measurement;
  }

  async writeAndFlush(): Promise<Measurement> {
    const target = join(this.#directory, 'written.bin');
    const measurement = await writeAndFlush(target, this.#options.size);
    await rm(target);
    return measurement;
  }

  /** Moves the large file; the first time in each direction its SHA-256 is compared (outside the measurement). */
  async transfer(direction: Direction): Promise<Measurement> {
    const large = await this.#largeFile();
    const pair = await this.#startedPair({ large });
    this.#hash ??= await sha256(large);
    const measurement = await pair.large(direction, this.#checked.has(direction) ? undefined : this.#hash);
    this.#checked.add(direction);
    return measurement;
  }

  /** Sends what `VARIATIONS` says; the first time the SHA-256 of what arrived is compared (outside the measurement). */
  async variation(name: VariationName): Promise<Measurement> {
    const { file, inbox, request, counts }: Variation = VARIATIONS[name];
    const pair = await this.#startedPair({ large: await this.#largeFile() });
    const filename = file?.name ?? LARGE_FILE;
    const path = join(pair.sendDirectory, filename);
    if (file !== undefined && !(await exists(path))) await file.write(path, this.#options.size);
    let target = this.#varied.get(name);
    const hash = target === undefined ? await sha256(path) : undefined;
    if (target === undefined) {
      const fileId = `IN-${name}`;
      if (inbox !== undefined) await pair.setup.addInbox(fileId, inbox);
      target = { ...PLAIN, ...(inbox === undefined ? {} : { inbox: fileId }), request };
      this.#varied.set(name, target);
    }
    const { records, wireBytes, ...measurement } = await pair.push(filename, target, hash);
    return {
      ...measurement,
      ...(counts === 'records' ? { records } : {}),
      ...(counts === 'compression' ? { wireBytes } : {}),
    };
  }

  async small(concurrency: number): Promise<Measurement> {
    const pair = await this.#warmPair({ small: await this.#smallFile() });
    return pair.small(this.#options.smallCount, concurrency);
  }

  /** As `#startedPair`; the first time small files are sent before, which nobody measures. */
  async #warmPair(files: { readonly large?: string; readonly small: string }): Promise<NodePair> {
    const pair = await this.#startedPair(files);
    if (!this.#isWarm) await pair.small(this.#options.warmUp, WARM_UP_AT_ONCE);
    this.#isWarm = true;
    return pair;
  }

  /** So many files at once, large ones. */
  async largeAtOnce(count: number): Promise<Measurement> {
    const pair = await this.#startedPair({ small: await this.#smallFile() });
    const path = join(pair.sendDirectory, PART_FILE);
    if (!(await exists(path))) await writeRandomFile(path, Math.ceil(this.#options.size / PART));
    this.#crowd ??= pair.setup.addCrowd(this.#options);
    return pair.atOnce(PART_FILE, await this.#crowd, count);
  }

  /** Small files one after the other while the large one is sent, again and again. */
  async smallBesideLarge(): Promise<Measurement> {
    const pair = await this.#warmPair({ large: await this.#largeFile(), small: await this.#smallFile() });
    return pair.small(this.#options.smallCount, 1, { beside: true });
  }

  /** Small files of many partners, each of which has one under way; five of each at least. */
  async smallOfPartners(count: number): Promise<Measurement> {
    const pair = await this.#warmPair({ small: await this.#smallFile() });
    this.#partners ??= pair.setup.addPartners(count, this.#options);
    const targets = await this.#partners;
    return pair.small(Math.max(5 * count, this.#options.smallCount), count, { targets });
  }

  /** Sessions of one listener: so many that do nothing, and so many that send small files. Latencies are those of REST beside them. */
  async crowd(idle: number, sending: number): Promise<Measurement> {
    const pair = await this.#startedPair({ small: await this.#smallFile() });
    this.#crowd ??= pair.setup.addCrowd(this.#options);
    return pair.crowd(await this.#crowd, idle, sending, sending === 0 ? 0 : this.#options.smallCount);
  }

  /** Sessions over TLS, without files; its transfers are sessions. */
  async tlsSessions(resumes: boolean): Promise<Measurement> {
    const pair = await this.#startedPair({});
    const papers = await this.#ownPapers();
    if (papers === undefined) throw new Error('sessions over TLS need a stage with TLS');
    return pair.tlsSessions(papers, this.#options.smallCount, resumes);
  }

  /** Lists and totals of a large history; its transfers are requests. */
  async history(): Promise<Measurement> {
    this.#history ??= await HistoryBench.start(this.#directory, this.#options);
    return this.#history.run();
  }

  /** The console before that history; its transfers are what an operator does. */
  async console(): Promise<Measurement> {
    this.#history ??= await HistoryBench.start(this.#directory, this.#options);
    return this.#history.runConsole();
  }

  async close(): Promise<void> {
    await this.#history?.stop();
    await this.#pair?.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Leaves nothing behind when the benchmark is interrupted. */
  abandon(): void {
    this.#history?.kill();
    this.#pair?.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
