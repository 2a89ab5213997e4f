import { rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';

import { codeOf } from '@pesit-node/ground';
import type { PesitRequester } from '@pesit-node/net';
import { PesitError, START } from '@pesit-node/protocol';
import type { Parameters, SyncPoint } from '@pesit-node/protocol';
import { LocalFileStore, removeLeftover, STAGING_DIRECTORY, StagedFile } from '@pesit-node/storage';
import type { Delivery, ReceivedFile, ResumedReceiving } from '@pesit-node/storage';
import {
  firstAnswerIn,
  firstAnswerOf,
  formatIn,
  keepsTrust,
  namesFor,
  outcomeOf,
  receivedName,
  refusesRestart,
} from '@pesit-node/transfers';
import type { FirstAnswer } from '@pesit-node/transfers';

import type { Environment, Given } from '../frame/command.js';
import { CliError } from '../frame/exit-codes.js';
import { rate, size, time } from '../frame/figures.js';
import { Progress } from '../frame/progress.js';
import { overAttempts } from './attempts.js';
import { codePageIn, entitySizeIn, extrasIn, retryPolicy } from './file-settings.js';
import { negotiatedIn, report, saidIn, tlsIn } from './report.js';
import { targetOf } from './target.js';
import type { Target } from './target.js';
import { transferKey } from './unfinished.js';

const KILOBYTES = 0;

/** Where the file goes: a directory, and the name in it; undefined: the name that the partner gives it. */
interface Place {
  readonly root: string;
  readonly name: string | undefined;
}

const noDirectory = (path: string): CliError =>
  new CliError('local', `the directory ${path} does not exist: create it, or choose another --file`);

/** @throws CliError local */
const placeOf = async (given: Given, directory: string): Promise<Place> => {
  const asked = given.text('file') ?? '.';
  const path = resolve(directory, asked);
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() === true) return { root: path, name: undefined };
  if (found === undefined && asked.endsWith('/')) throw noDirectory(path);
  if (found !== undefined && !given.has('overwrite')) {
    throw new CliError('local', `${path} exists: choose another --file, or give --overwrite`);
  }
  const root = dirname(path);
  const above = await stat(root).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') throw noDirectory(root);
    const words = `${root} cannot be used (${(error as Error).message}): choose another --file`;
    throw new CliError('local', words, { cause: error });
  });
  if (!above.isDirectory()) throw new CliError('local', `${root} is not a directory: choose another --file`);
  return { root, name: basename(path) };
};

/** One file on its way in. The staged part beside its final place outlives this process: the same command continues it. */
class Receiving {
  readonly #given: Given;
  readonly #environment: Environment;
  readonly #place: Place;
  readonly #key: string;
  readonly #store: LocalFileStore;
  readonly #progress: Progress;
  #staged: ReceivedFile | undefined;
  #resumed: (ResumedReceiving & { readonly first: FirstAnswer }) | undefined;
  /** PI 13 of the transfer that is continued; 0: the partner gives it one. */
  #transferId = 0;
  #answer: Parameters = {};
  #from = 0;

  constructor(given: Given, environment: Environment, place: Place, key: string) {
    this.#given = given;
    this.#environment = environment;
    this.#place = place;
    this.#key = key;
    this.#store = new LocalFileStore(place.root);
    this.#progress = new Progress(environment.terminal, given.required('NAME'));
  }

  async run({ options }: Target) {
    const { terminal, signal } = this.#environment;
    try {
      const { result, attempts } = await overAttempts({
        ...{ options, policy: retryPolicy(this.#given), signal, terminal },
        run: (session, interrupted) => this.#attempt(session, interrupted),
        failed: (error) => this.#failed(error),
      });
      return { ...result, attempts };
    } finally {
      await this.#staged?.release();
      // Gone when nothing of anybody is left in it.
      await rmdir(join(this.#place.root, STAGING_DIRECTORY)).catch(() => undefined);
    }
  }

  async #attempt(session: PesitRequester, signal: AbortSignal) {
    await this.#resume();
    const unwatch = this.#progress.watch(
      () => session.totals.dataBytes,
      () => this.#announced,
    );
    try {
      const { dataBytes, articles } = await session.receiveFile({
        request: {
          fileIdentifier: { fileType: 0, fileName: this.#given.required('NAME') },
          transferId: this.#transferId,
          restarted: this.#transferId !== 0,
          maxEntitySize: entitySizeIn(this.#given),
          ...extrasIn(this.#given),
        },
        open: (answer) => this.#open(answer),
        stored: async () => {
          await this.#staged?.prepareDelivery();
        },
        signal,
      });
      const delivery = await this.#deliver();
      return {
        ...{ direction: 'RECEIVE', transferId: this.#transferId, file: delivery.path, size: delivery.size },
        ...{ bytesTransferred: dataBytes, articles, checksum: delivery.checksum ?? null, restartPoint: this.#from },
        duration: Math.round(this.#progress.elapsed),
        ...{ negotiated: negotiatedIn(session), tls: tlsIn(session), ...saidIn(session) },
      };
    } finally {
      unwatch();
    }
  }

  /** Takes up what an earlier attempt staged, of this process or of another. */
  async #resume(): Promise<void> {
    const first = firstAnswerIn(await StagedFile.peek(this.#place.root, this.#key));
    this.#from = 0;
    // Without a PI 13 the next SELECT cannot be a restart, and a new transfer begins at its first byte (pesit-e.md §5).
    if (first === undefined || first.transferId === 0) {
      this.#resumed = undefined;
      this.#transferId = 0;
      return;
    }
    const resumed = await this.#store.resume({ key: this.#key, format: formatIn(first), memo: JSON.stringify(first) });
    this.#resumed = { ...resumed, first };
    this.#staged = resumed.file;
    this.#transferId = first.transferId;
  }

  async #open(answer: Parameters): Promise<{ from: SyncPoint; sink: ReceivedFile }> {
    this.#answer = answer;
    const given = this.#given;
    const transferId = this.#transferId === 0 ? (answer.transferId ?? 0) : this.#transferId;
    this.#transferId = transferId;
    const first = firstAnswerOf({ ...answer, transferId }, given.has('text') || undefined, codePageIn(given));
    if (this.#resumed?.first.file === first.file) {
      this.#from = this.#resumed.point.number;
      return { from: this.#resumed.point, sink: this.#resumed.file };
    }
    if (this.#resumed !== undefined)
      this.#environment.terminal.note(
        'the partner offers another file than at the first attempt: receiving it from the start',
      );
    await this.#staged?.discard();
    // Without an answer kept nothing can be continued, but something may be staged.
    if (this.#staged === undefined) await removeLeftover(this.#place.root, this.#key);
    this.#staged = await this.#store.receive({ key: this.#key, format: formatIn(first), memo: JSON.stringify(first) });
    return { from: START, sink: this.#staged };
  }

  /** A name that is taken meanwhile is never replaced: the partner has ended the transfer, so the file gets another one. */
  async #deliver(): Promise<Delivery> {
    const overwrite = this.#given.has('overwrite');
    const staged = this.#staged as ReceivedFile;
    const { logicalAttributes, fileIdentifier } = this.#answer;
    const offered = [logicalAttributes?.fileLabel, fileIdentifier?.fileName, this.#given.required('NAME')];
    const [path = '_', other = '_'] = namesFor(this.#place.name ?? receivedName(offered), this.#key);
    const delivered = await staged.deliver({ path, overwrite }).catch((error: unknown) => {
      if (!(error instanceof PesitError) || error.condition !== 'name taken') throw error;
      this.#environment.terminal.note(`${path} exists in ${this.#place.root}: the file is kept as ${other}`);
      return staged.deliver({ path: other, overwrite: false });
    });
    this.#staged = undefined;
    return delivered;
  }

  async #failed(error: PesitError): Promise<boolean> {
    const startsOver = this.#transferId !== 0 && this.#resumed !== undefined && refusesRestart(error, 'RECEIVE');
    if (startsOver || !this.#mayContinue(error)) await this.#staged?.discard();
    else await this.#staged?.release();
    this.#staged = undefined;
    return startsOver;
  }

  #mayContinue({ diagnostic, fault }: PesitError): boolean {
    if (this.#transferId === 0 || !keepsTrust(diagnostic, 'RECEIVE')) return false;
    return fault !== 'refused' || !outcomeOf(diagnostic).unknownPoint;
  }

  /** Bytes; undefined: the partner announces none. */
  get #announced(): number | undefined {
    const { reservationUnit, maxReservation } = this.#answer.physicalAttributes ?? {};
    return reservationUnit === KILOBYTES && maxReservation !== undefined ? maxReservation * 1024 : undefined;
  }
}

const transfer = async (given: Given, environment: Environment) => {
  const target = await targetOf(given, environment, 1);
  const place = await placeOf(given, environment.directory);
  const key = transferKey(['receive', ...target.identity, given.required('NAME'), place.root, place.name ?? null]);
  return new Receiving(given, environment, place, key).run(target);
};

/** `pesit receive`. */
export const receive = (given: Given, environment: Environment): Promise<number> =>
  report(
    given,
    environment,
    () => transfer(given, environment),
    (done) => [
      `${done.file} received: ${size(done.size)} in ${time(done.duration)}, ${rate(done.size, done.duration)}` +
        (done.attempts > 1 ? `, ${done.attempts} attempts, the last from point ${done.restartPoint}` : ''),
      ...(done.checksum === null ? [] : [done.checksum]),
      ...(done.partnerSaid === undefined ? [] : [`the partner says: ${done.partnerSaid}`]),
    ],
  );
