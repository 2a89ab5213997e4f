import { randomInt } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { basename, resolve } from 'node:path';

import type { PesitRequester } from '@pesit-node/net';
import type { CreateRequest, PesitError } from '@pesit-node/protocol';
import { FileSource, formatOf } from '@pesit-node/storage';
import type { FileVersion, RecordFormat } from '@pesit-node/storage';
import {
  dataCodeOf,
  keepsTrust,
  outcomeOf,
  pesitDate,
  refusesRestart,
  RestartableSource,
  SentPoints,
} from '@pesit-node/transfers';

import type { Environment, Given } from '../frame/command.js';
import { CliError } from '../frame/exit-codes.js';
import { rate, size, time } from '../frame/figures.js';
import { Progress } from '../frame/progress.js';
import { mayBeContinued, overAttempts, TransferFailure } from './attempts.js';
import { codePageIn, entitySizeIn, extrasIn, retryPolicy } from './file-settings.js';
import { negotiatedIn, report, saidIn, tlsIn } from './report.js';
import { targetOf } from './target.js';
import type { Target } from './target.js';
import { stateDirectory, transferKey, UnfinishedStore } from './unfinished.js';
import type { UnfinishedSend } from './unfinished.js';

/** PI 13 has three bytes. */
const newTransferId = (): number => randomInt(1, 2 ** 24);
/** A hash that runs beside the sending is waited for so long, milliseconds: the partner has the file already. */
const HASH_MS = 600_000;

const formatIn = (given: Given): RecordFormat =>
  formatOf({
    recordFormat: given.has('fixed') ? 0 : given.has('variable') ? 128 : undefined,
    recordLength: given.number('record-length'),
    text: given.has('text'),
    ...(given.has('ebcdic') ? { codePage: codePageIn(given).codePage } : {}),
  });

const isSame = (one: FileVersion, other: FileVersion): boolean =>
  one.size === other.size && one.mtimeNs === other.mtimeNs;

/** @throws CliError local */
const sourcePath = async (given: Given, directory: string): Promise<string> => {
  const path = resolve(directory, given.required('FILE'));
  return realpath(path).catch((error: unknown) => {
    throw new CliError('local', `${path} cannot be read (${(error as Error).message})`, { cause: error });
  });
};

/** One file on its way out, over all its attempts and, where one was cut off before, those of earlier processes. */
class Sending {
  readonly #given: Given;
  readonly #environment: Environment;
  readonly #format: RecordFormat;
  readonly #file: FileSource;
  readonly #store: UnfinishedStore;
  readonly #source: RestartableSource;
  readonly #progress: Progress;
  #state: UnfinishedSend;
  #restarted: boolean;
  #from = 0;

  constructor(
    given: Given,
    environment: Environment,
    format: RecordFormat,
    file: FileSource,
    store: UnfinishedStore,
    earlier: UnfinishedSend | undefined,
  ) {
    this.#given = given;
    this.#environment = environment;
    this.#format = format;
    this.#file = file;
    this.#store = store;
    this.#restarted = earlier !== undefined;
    this.#state = earlier ?? { transferId: newTransferId(), version: file.version, pacings: [] };
    const keeper = { keepPacings: (pacings: UnfinishedSend['pacings']) => this.#keep({ pacings }) };
    this.#source = new RestartableSource(file, this.#state.pacings, keeper, new SentPoints(store.pointsPath));
    this.#progress = new Progress(environment.terminal, basename(file.path));
  }

  async run({ options }: Target) {
    const { terminal, signal } = this.#environment;
    if (this.#restarted) terminal.note(`continuing transfer ${this.#state.transferId}, which was cut off`);
    const { result, attempts } = await overAttempts({
      ...{ options, policy: retryPolicy(this.#given), signal, terminal },
      run: (session, interrupted) => this.#attempt(session, interrupted),
      failed: (error) => this.#failed(error),
    });
    await this.#store.remove();
    return { ...result, attempts };
  }

  /** Nothing of it is to be continued when the partner has not taken it, or will not. */
  async giveUp({ error }: TransferFailure): Promise<void> {
    if (!mayBeContinued(error) || !this.#restarted || !keepsTrust(error.diagnostic, 'SEND')) await this.#store.remove();
  }

  async #attempt(session: PesitRequester, signal: AbortSignal) {
    const source = this.#forgetStart();
    const request = this.#request();
    await this.#keep({});
    await this.#source.begin(session);
    this.#from = 0;
    const unwatch = this.#watch(session);
    try {
      const { dataBytes, articles } = await session.sendFile({
        request,
        source: this.#source,
        pointOf: async (number) => {
          const point = await this.#source.goTo(number, signal);
          this.#from = point?.number ?? 0;
          return point;
        },
        signal,
      });
      await this.#file.hashed(HASH_MS);
      return this.#done(session, dataBytes, articles);
    } catch (error) {
      const refusal = error as PesitError;
      // The partner has the file: only its confirmation was lost.
      const isDelivered = this.#restarted && refusal.fault === 'refused' && outcomeOf(refusal.diagnostic).delivered;
      if (isDelivered) return this.#done(session, this.#file.size, 0);
      if (source.started) this.#restarted = true;
      throw error;
    } finally {
      unwatch();
    }
  }

  /** Each attempt finds out for itself whether the partner has taken data. */
  #forgetStart(): RestartableSource {
    this.#source.started = false;
    return this.#source;
  }

  #request(): CreateRequest {
    const given = this.#given;
    const name = given.text('remote') ?? basename(this.#file.path);
    const virtualFile = given.text('virtual-file');
    return {
      fileIdentifier: { fileType: 0, fileName: virtualFile ?? name },
      transferId: this.#state.transferId,
      restarted: this.#restarted,
      maxEntitySize: entitySizeIn(given),
      dataCode: dataCodeOf(this.#format),
      recordFormat: this.#format.recordFormat,
      recordLength: this.#format.recordLength,
      fileLabel: given.text('label') ?? (virtualFile === undefined ? basename(this.#file.path) : name),
      maxReservationKb: Math.ceil(this.#file.size / 1024),
      creationDate: pesitDate(this.#file.modified),
      ...extrasIn(given),
    };
  }

  #watch(session: PesitRequester): () => void {
    return this.#progress.watch(
      () => session.totals.dataBytes,
      () => this.#file.size,
    );
  }

  #done(session: PesitRequester, bytesTransferred: number, articles: number) {
    return {
      ...{ direction: 'SEND', transferId: this.#state.transferId, file: this.#file.path, size: this.#file.size },
      ...{ bytesTransferred, articles, checksum: this.#file.checksum ?? null, restartPoint: this.#from },
      duration: Math.round(this.#progress.elapsed),
      ...{ negotiated: negotiatedIn(session), tls: tlsIn(session), ...saidIn(session) },
    };
  }

  async #failed(error: PesitError): Promise<boolean> {
    if (!this.#restarted || this.#source.started || !refusesRestart(error, 'SEND')) return false;
    this.#restarted = false;
    await this.#source.forget();
    await this.#keep({ transferId: newTransferId(), pacings: [] });
    return true;
  }

  async #keep(change: Partial<UnfinishedSend>): Promise<void> {
    this.#state = { ...this.#state, ...change };
    await this.#store.write(this.#state);
  }
}

const transfer = async (given: Given, environment: Environment) => {
  const target = await targetOf(given, environment, 0);
  const path = await sourcePath(given, environment.directory);
  const names = [given.text('remote'), given.text('virtual-file')];
  const key = transferKey(['send', ...target.identity, path, ...names]);
  const store = await UnfinishedStore.take(stateDirectory(given, environment), key);
  try {
    const format = formatIn(given);
    const file = await FileSource.open(path, format);
    try {
      const earlier = await store.read();
      const isUsable = earlier !== undefined && isSame(earlier.version, file.version);
      if (earlier !== undefined && !isUsable) {
        environment.terminal.note(
          `${path} has changed since its transfer ${earlier.transferId} was cut off: it is sent as a new one`,
        );
        await store.remove();
      }
      const sending = new Sending(given, environment, format, file, store, isUsable ? earlier : undefined);
      try {
        return await sending.run(target);
      } catch (error) {
        if (error instanceof TransferFailure) await sending.giveUp(error);
        throw error;
      }
    } finally {
      await file.close();
    }
  } finally {
    await store.release();
  }
};

/** `pesit send`. */
export const send = (given: Given, environment: Environment): Promise<number> =>
  report(
    given,
    environment,
    () => transfer(given, environment),
    (done) => [
      `${basename(done.file)} sent: ${size(done.size)} in ${time(done.duration)}, ${rate(done.size, done.duration)}` +
        (done.attempts > 1 ? `, ${done.attempts} attempts, the last from point ${done.restartPoint}` : ''),
      ...(done.checksum === null ? [] : [done.checksum]),
      ...(done.partnerSaid === undefined ? [] : [`the partner says: ${done.partnerSaid}`]),
    ],
  );
