import { lstat, rm } from 'node:fs/promises';

import { isDatabaseUnavailable } from '@pesit-node/service';
import type { EventStream, Logger, PeriodicHandle, PeriodicWork } from '@pesit-node/service';
import { DeliveryNotes, FIRST_FENCE, listLeftovers, removeLeftover } from '@pesit-node/storage';
import { TRANSFER_ASIDE } from '@pesit-node/transfers';
import type { TransferAside } from '@pesit-node/transfers';

import type { SendTree } from '../transfers/send-tree.js';
import type { TransferStore } from '../transfers/store.js';
import type { ReceivedTree } from '../exchange/received-tree.js';
import type { SpoolRetention } from '../exchange/settings.js';

const HOUR_MS = 3_600_000;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface LeftoversOptions {
  readonly store: Pick<TransferStore, 'statusesOf'>;
  /** Makes what the leader alone writes. */
  readonly asLeader: <T>(
    work: (store: Pick<TransferStore, 'notRestartable' | 'expireContents' | 'forgetClaims'>) => Promise<T>,
  ) => Promise<T>;
  readonly receivedTree: ReceivedTree;
  readonly sendTree: SendTree;
  /** Milliseconds since the last write after which what nobody waits for is removed. */
  readonly retention: number;
  /** Asked each time: it may change while the service runs. */
  readonly spoolRetention: () => SpoolRetention;
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly events: Pick<EventStream, 'publish'>;
  readonly logger: Logger;
}

/** Removes files that interrupted transfers and requests left and nobody will come back for, a log line each. */
export class Leftovers {
  readonly #options: LeftoversOptions;
  #sweeps: PeriodicHandle | undefined;
  #sweeping = Promise.resolve();

  constructor(options: LeftoversOptions) {
    this.#options = options;
  }

  /** Looks now, and every hour. May be called again. */
  start(): void {
    if (this.#sweeps !== undefined) {
      void this.#sweeps.runNow();
      return;
    }
    this.#sweeps = this.#options.periodic.add({
      name: 'removal of leftovers of transfers and requests',
      intervalMs: HOUR_MS,
      jitter: 0.1,
      runsOn: 'leader',
      run: () => this.sweep(),
    });
  }

  async stop(): Promise<void> {
    await this.#sweeps?.remove();
    await this.#sweeping;
  }

  /** Looks again an hour later at files that it could not remove. @throws why, when everything else was looked at */
  sweep(): Promise<void> {
    const sweep = this.#sweeping.then(() => this.#sweepAll());
    this.#sweeping = sweep.catch(() => undefined);
    return sweep;
  }

  async #sweepAll(): Promise<void> {
    const parts = [
      ...[() => this.#received(), () => this.#staged(), () => this.#sentPoints(), () => this.#spooled()],
      () => this.#options.asLeader((store) => store.forgetClaims()),
    ];
    const failures: Error[] = [];
    for (const part of parts) await part().catch((error: unknown) => failures.push(error as Error));
    // The supervisor reports a database that is away.
    const own = failures.filter((failure) => !isDatabaseUnavailable(failure));
    if (own.length > 0) throw new AggregateError(own, [...new Set(own.map(({ message }) => message))].join('; '));
    if (failures[0] !== undefined) throw failures[0];
  }

  #aside(id: string, aside: TransferAside): void {
    this.#options.events.publish(TRANSFER_ASIDE, { session: undefined, id, aside, facts: {} });
  }

  #isOld(modified: Date): boolean {
    return modified.getTime() <= Date.now() - this.#options.retention;
  }

  /** The ids of `old` that no transfer which may still run owns. */
  async #ownerless(old: readonly string[]): Promise<readonly string[]> {
    const statuses = await this.#options.store.statusesOf(old.filter((id) => UUID.test(id)));
    return old.filter((id) => !['PENDING', 'IN_PROGRESS'].includes(statuses.get(id) ?? ''));
  }

  async #received(): Promise<void> {
    const { asLeader, receivedTree } = this.#options;
    const { root } = receivedTree;
    const staged = await listLeftovers(root);
    const notes = new DeliveryNotes(root);
    const noted = await notes.list();
    await this.#recorded(noted.map(({ key }) => key));
    const old = [...staged, ...noted].filter(({ modified }) => this.#isOld(modified));
    for (const id of await this.#ownerless([...new Set(old.map(({ key }) => key))])) {
      if (UUID.test(id) && !(await asLeader((store) => store.notRestartable(id)))) continue;
      // Up to the claim that was listed: an attempt that has begun since keeps its file, also when this leader is late.
      const upTo = staged.find(({ key }) => key === id)?.fence ?? FIRST_FENCE;
      if (!(await removeLeftover(root, id, { upTo }))) continue;
      await notes.remove(id);
      this.#aside(id, 'staging removed');
    }
  }

  /** Notes of deliveries whose record is COMPLETED: the process died before it removed them. */
  async #recorded(noted: readonly string[]): Promise<void> {
    const { store, receivedTree } = this.#options;
    const statuses = await store.statusesOf(noted.filter((id) => UUID.test(id)));
    for (const id of noted) if (statuses.get(id) === 'COMPLETED') await receivedTree.forget(id);
  }

  /** Uploads that were cut off. */
  async #staged(): Promise<void> {
    const { root } = this.#options.sendTree;
    for (const { key, fence, modified } of await listLeftovers(root)) {
      if (this.#isOld(modified) && (await removeLeftover(root, key, { upTo: fence }))) {
        this.#options.logger.info({ key }, 'removed an upload that was cut off');
      }
    }
  }

  /** Tables of points of transfers that are over. */
  async #sentPoints(): Promise<void> {
    const { sendTree } = this.#options;
    const old: (readonly [id: string, path: string])[] = [];
    for (const [id, path] of await sendTree.sentPoints()) {
      const facts = await lstat(path).catch(() => undefined);
      if (facts !== undefined && this.#isOld(facts.mtime)) old.push([id, path]);
    }
    const ownerless = new Set(await this.#ownerless(old.map(([id]) => id)));
    for (const [id, path] of old) {
      if (!ownerless.has(id)) continue;
      await rm(path, { force: true });
      this.#aside(id, 'points removed');
    }
  }

  /**
   * Contents that came with requests: of transfers that ended long enough ago, and of none. A content that a process gave up in
   * the database, and was killed before it removed it, goes here too.
   */
  async #spooled(): Promise<void> {
    const { asLeader, sendTree, spoolRetention, logger } = this.#options;
    const ids = await sendTree.spool.ids();
    const known = await asLeader((store) => store.expireContents(ids, spoolRetention()));
    for (const id of ids) {
      const content = known.get(id);
      if (content === 'REMOVED') {
        await sendTree.spool.remove(id);
        this.#aside(id, 'content removed');
      } else if (content === undefined && this.#isOld(await sendTree.spool.changedAt(id))) {
        await sendTree.spool.remove(id);
        logger.info({ transferId: id }, 'removed an upload that belongs to no transfer');
      }
    }
  }
}
