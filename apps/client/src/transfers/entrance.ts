import { ApiError, conflict, isUniqueViolation, notFound, unavailable, unprocessable } from '@pesit-node/service';
import type { EventStream } from '@pesit-node/service';
import { TRANSFER_ASIDE } from '@pesit-node/transfers';

import type { ExchangeSettings } from '../exchange/settings.js';
import type { TransferQueue } from '../queue/transfer-queue.js';
import { serverNotFound } from '../remote-servers/service.js';
import type { RemoteServerRow } from '../remote-servers/fields.js';
import type { RemoteServerStore } from '../remote-servers/store.js';
import { requestHash } from './idempotency.js';
import { toRecord } from './record.js';
import type { TransferRecord } from './record.js';
import { isOver } from './row.js';
import type { NewTransfer, TransferDetailRow, TransferRow } from './row.js';
import type { KeyedRow, TransferStore } from './store.js';

/** How long the caller waits for the end; `signal` is aborted when it waits no more. */
export interface Wait {
  readonly seconds: number;
  readonly signal: AbortSignal;
}

/** How a request was made, beside what it asks for. */
export interface Caller {
  readonly wait?: Wait | undefined;
  /** `Idempotency-Key`: the same request with the same key makes no second transfer. */
  readonly key?: string | undefined;
  /** Name of who makes it. */
  readonly actor?: string | undefined;
}

export interface EntranceDeps {
  readonly store: TransferStore;
  readonly servers: RemoteServerStore;
  readonly queue: TransferQueue;
  readonly events: Pick<EventStream, 'publish'>;
  readonly settings: Pick<ExchangeSettings, 'holdsOrder'>;
}

/** Seconds after which a full queue is worth another try. */
const RETRY_AFTER = 5;

/** The way of a request into the queue: whether it may, whether it came before, and who waits for its end. */
export const createEntrance = ({ store, servers, queue, events, settings }: EntranceDeps) => {
  const existing = async (id: string): Promise<TransferDetailRow> => {
    const row = await store.find(id);
    if (row === undefined) throw notFound('Transfer', id, '/api/v1/transfers');
    return row;
  };

  /** @throws {ApiError} 404 or 409 */
  const requireEnabled = async (ref: number | string): Promise<RemoteServerRow> => {
    const server = await servers.find(ref);
    if (server === undefined) throw serverNotFound(ref);
    if (!server.enabled) {
      throw conflict(`Remote server ${JSON.stringify(server.name)} is disabled: set enabled to true first`);
    }
    return server;
  };

  /** @throws {ApiError} why a transfer with this server cannot be queued now: 404, 409 or 503 */
  const admit = async (ref: number | string): Promise<void> => {
    const { id, name, circuit_until: openUntil } = await requireEnabled(ref);
    const isOpen = openUntil !== null;
    const { total, delayed } = await store.countQueued(isOpen ? id : undefined);
    if (total < queue.room) return;
    const waiting = `${total} transfers wait, ${delayed} of them for their next attempt`;
    const which = isOpen ? `The queue of remote server ${JSON.stringify(name)}, whose circuit is open,` : 'The queue';
    throw unavailable(
      `${which} is full: ${waiting}. Try again later, or raise transfer.executor.queue-capacity`,
      RETRY_AFTER,
    );
  };

  /** @throws {ApiError} when it cannot be queued; any other error may come after it was */
  const insert = async (transfer: NewTransfer): Promise<TransferRow> => {
    const row = await store.insert(transfer, queue.room);
    if (row === undefined) {
      await admit(transfer.server);
      throw unavailable('The queue was full a moment ago: try again', RETRY_AFTER);
    }
    const { id, direction, server_name: server, filename } = row;
    const facts = { direction, server, filename };
    events.publish(TRANSFER_ASIDE, { session: undefined, id, aside: 'queued', facts });
    return row;
  };

  /** Does something to a transfer, and waits for its end when the caller does. */
  const withWait = async (
    id: string,
    wait: Wait | undefined,
    act: () => Promise<TransferRow>,
  ): Promise<TransferRecord> => {
    if (wait === undefined) return toRecord(await act());
    const waitForEnd = () => queue.whenEnded(id, wait.seconds * 1000, wait.signal);
    const ended = waitForEnd();
    const row = await act();
    if (isOver(row)) return toRecord(row);
    const told = await Promise.race([ended, Promise.resolve('not yet' as const)]);
    if (told === 'not yet' || told === undefined) return toRecord((await ended) ?? (await store.find(id)) ?? row);
    // Perhaps of the end that the transfer had before this was done to it.
    const again = waitForEnd();
    const now = await existing(id);
    return toRecord(isOver(now) ? now : ((await again) ?? (await store.find(id)) ?? now));
  };

  const enqueueNew = (transfer: NewTransfer, wait: Wait | undefined, queued?: () => Promise<void>) =>
    withWait(transfer.id, wait, async () => {
      const row = await insert(transfer);
      queue.arrived(row);
      await queued?.();
      return row;
    });

  /** The record of the request that came first with a key. @throws {ApiError} 422 when this is another one */
  const first = ({ id, request_hash: before }: KeyedRow, hash: string, wait: Wait | undefined) => {
    if (before === hash) return withWait(id, wait, () => existing(id));
    throw unprocessable(
      `This Idempotency-Key was used for another request, which made transfer ${id}: expected the same fields and content, or another key`,
    );
  };

  /**
   * @param checksum of the content that the request brought
   * @param queued called as soon as it is in the queue
   */
  const enqueue = async (
    asked: NewTransfer,
    { wait, key, actor }: Caller,
    checksum?: string,
    queued?: () => Promise<void>,
  ): Promise<TransferRecord> => {
    const transfer = { ...asked, createdBy: actor, holdsOrder: settings.holdsOrder };
    if (key === undefined) return enqueueNew(transfer, wait, queued);
    const hash = requestHash(transfer, checksum);
    try {
      return await enqueueNew({ ...transfer, idempotency: { key, hash } }, wait, queued);
    } catch (error) {
      // A queue that is full now was not when the request came first.
      if (!(error instanceof ApiError) && !isUniqueViolation(error, 'transfers_idempotency_key')) throw error;
      const earlier = await store.findByKey(key);
      if (earlier === undefined) throw error;
      return first(earlier, hash, wait);
    }
  };

  return { existing, requireEnabled, admit, withWait, enqueue, first };
};

export type Entrance = ReturnType<typeof createEntrance>;
