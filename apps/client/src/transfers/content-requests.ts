import { createHash, randomUUID } from 'node:crypto';

import { ApiError, conflict } from '@pesit-node/service';

import type { Caller, Entrance } from './entrance.js';
import { requestHash } from './idempotency.js';
import { nameOf, newTransfer } from './new-transfer.js';
import type { Asked } from './new-transfer.js';
import type { TransferRecord } from './record.js';
import type { NewTransfer, TransferRow } from './row.js';
import type { Sendable } from './sendable.js';
import type { Spool } from './spool.js';
import type { TransferStore } from './store.js';

type Content = AsyncIterable<Buffer> | Iterable<Buffer>;

export interface ContentRequestsDeps {
  readonly store: TransferStore;
  readonly spool: Spool;
  readonly entrance: Entrance;
}

/** A claim is renewed so often while data come: a third of what it lasts. */
const RENEW_MS = 20_000;

/** The content as it comes; `renew` is called now and then between two pieces. */
async function* renewing(content: Content, renew: () => Promise<void>): AsyncGenerator<Buffer> {
  let renewed = performance.now();
  for await (const piece of content) {
    if (performance.now() - renewed > RENEW_MS) {
      renewed = performance.now();
      // A claim that has run out lets another request in: which of them is queued the database decides.
      await renew().catch(() => undefined);
    }
    yield piece;
  }
}

const checksumOf = async (content: Content): Promise<string> => {
  const hash = createHash('sha256');
  for await (const piece of content) hash.update(piece);
  return `sha256:${hash.digest('hex')}`;
};

const contentIsGone = (): ApiError =>
  conflict(
    'The content that came with the request was removed when its transfer was over (spool.retention, spool.retention-failed): send it again with a new request',
  );

/** @throws {ApiError} 409 when what would be sent is gone */
export const requireContent = ({ content }: Pick<TransferRow, 'content'>): void => {
  if (content === 'REMOVED') throw contentIsGone();
};

/** Requests that bring the file with them, and the contents that they leave in the spool. */
export const contentRequests = ({ store, spool, entrance }: ContentRequestsDeps) => {
  /** Queues a transfer whose content is in the spool; the content goes when it cannot be queued. */
  const enqueue = async (
    transfer: NewTransfer,
    caller: Caller,
    checksum?: string,
    queued?: () => Promise<void>,
  ): Promise<TransferRecord> => {
    try {
      const record = await entrance.enqueue(transfer, caller, checksum, queued);
      if (record.id !== transfer.id) await spool.remove(transfer.id);
      return record;
    } catch (error) {
      // After any other error the transfer may be in the queue, and needs its content.
      if (error instanceof ApiError) await spool.remove(transfer.id);
      throw error;
    }
  };

  const takeIn = async (id: string, body: Asked, content: Content, caller: Caller, queued?: () => Promise<void>) => {
    const { checksum, ...source } = await spool.store(id, content, caller.key !== undefined);
    const transfer = newTransfer(id, 'SEND', body, { filename: nameOf(body), hasContent: true, ...source });
    return enqueue(transfer, caller, checksum, queued);
  };

  return {
    /**
     * Queues a content that came with the request.
     * @throws {ApiError} with a key: 422 when it came before with another request or content, 409 while that is still coming in
     */
    send: async (body: Asked, content: Content, caller: Caller): Promise<TransferRecord> => {
      const { key, wait } = caller;
      const id = randomUUID();
      if (key === undefined) return takeIn(id, body, content, caller);
      const earlier = await store.findByKey(key);
      if (earlier !== undefined) {
        const transfer = newTransfer(id, 'SEND', body, { filename: nameOf(body), hasContent: true });
        return entrance.first(earlier, requestHash(transfer, await checksumOf(content)), wait);
      }
      if (!(await store.claimKey(key, id))) {
        throw conflict(
          'The first request with this Idempotency-Key is still being taken in: ask again when it has come',
        );
      }
      // One that cannot be given back runs out by itself.
      const release = () => store.releaseKey(key, id).catch(() => undefined);
      try {
        const coming = renewing(content, () => store.renewClaim(key, id));
        return await takeIn(id, body, coming, caller, release);
      } finally {
        await release();
      }
    },

    /** The content of a transfer that is replayed, for the new one. @throws {ApiError} 409 when it is gone */
    again: async (row: TransferRow, id: string): Promise<Sendable> => {
      requireContent(row);
      const shared = await spool.share(row.id, id);
      if (shared === undefined) throw contentIsGone();
      return shared;
    },

    enqueue,
  };
};
