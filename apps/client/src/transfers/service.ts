import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { basename } from 'node:path';

import { ApiError, conflict, isUniqueViolation, notFound, unavailable, validation } from '@pesit-node/service';
import type { Logger, Page } from '@pesit-node/service';
import type { z } from 'zod';

import type { TransferQueue } from '../exchange/transfer-queue.js';
import type { ReceivedTree } from '../exchange/received-tree.js';
import { serverNotFound } from '../remote-servers/service.js';
import type { RemoteServerStore } from '../remote-servers/store.js';
import { fitsInPi12, NO_ROOM_FOR_NAME } from './file-name.js';
import { requestHash } from './idempotency.js';
import { toRecord } from './record.js';
import type { TransferRecord } from './record.js';
import type { HistoryFilter, HistoryQuery, messageBody, receiveBody, sendBody, uploadQuery } from './schema.js';
import { decodeBase64 } from './send-tree.js';
import type { SendTree } from './send-tree.js';
import { isOver } from './row.js';
import type { NewTransfer, StoredVersion, TransferRow, TransferSettings } from './row.js';
import type { TransferStore } from './store.js';

type Names = Pick<z.output<typeof sendBody>, 'serverId' | 'server' | 'partnerId' | 'virtualFile' | 'remoteFilename'>;

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
}

export interface TransferServiceDeps {
  readonly store: TransferStore;
  readonly servers: RemoteServerStore;
  readonly sendTree: SendTree;
  readonly receivedTree: ReceivedTree;
  readonly queue: TransferQueue;
  readonly logger: Logger;
}

/** Seconds after which a full queue is worth another try. */
const RETRY_AFTER = 5;

const settingsOf = (body: TransferSettings): TransferSettings => {
  const { maxEntitySize, syncPointsEnabled, syncInterval, syncWindow, text, recordLength, recordFormat } = body;
  const { label, freeMessage, originalSender, finalReceiver, creationDate, localName, overwrite } = body;
  const { compression, crc, resync, ebcdic, codePage, message, expectReply, fileType, pesitTransferId, selectByName } =
    body;
  return {
    ...{ maxEntitySize, syncPointsEnabled, syncInterval, syncWindow, text, recordLength, recordFormat },
    ...{ label, freeMessage, originalSender, finalReceiver, creationDate, localName, overwrite },
    ...{ compression, crc, resync, ebcdic, codePage, message, expectReply, fileType, pesitTransferId, selectByName },
  };
};

const serverOf = ({ serverId, server }: Names): number | string => serverId ?? (server as string);
/** What a transfer without a local file name is called. */
const nameOf = ({ remoteFilename, virtualFile }: Names): string => remoteFilename ?? (virtualFile as string);

/** Requests for transfers, and what became of them. */
export const transferService = (deps: TransferServiceDeps) => {
  const { store, servers, sendTree, receivedTree, queue, logger } = deps;

  /** @throws {ApiError} 404 or 409 */
  const requireEnabled = async (ref: number | string): Promise<void> => {
    const server = await servers.find(ref);
    if (server === undefined) throw serverNotFound(ref);
    if (!server.enabled) {
      throw conflict(`Remote server ${JSON.stringify(server.name)} is disabled: set enabled to true first`);
    }
  };

  /** @throws {ApiError} why a transfer with this server cannot be queued now: 404, 409 or 503 */
  const admit = async (ref: number | string): Promise<void> => {
    await requireEnabled(ref);
    const waiting = await store.countDue();
    if (waiting >= queue.room) {
      throw unavailable(`The queue is full: ${waiting} transfers wait (executor.queue-capacity)`, RETRY_AFTER);
    }
  };

  /** @throws {ApiError} when it cannot be queued; any other error may come after it was */
  const insert = async (transfer: NewTransfer): Promise<TransferRow> => {
    const row = await store.insert(transfer, queue.room);
    if (row === undefined) {
      await admit(transfer.server);
      throw unavailable('The queue was full: try again', RETRY_AFTER);
    }
    const { id, direction, server_name: server, filename } = row;
    logger.info({ transferId: id, direction, server, filename }, 'transfer queued');
    return row;
  };

  /** Does something to a transfer, and waits for its end when the caller does. */
  const withWait = async (
    id: string,
    wait: Wait | undefined,
    act: () => Promise<TransferRow>,
  ): Promise<TransferRecord> => {
    const ended = wait && queue.whenEnded(id, wait.seconds * 1000, wait.signal);
    const row = await act();
    return toRecord(ended === undefined || isOver(row) ? row : ((await ended) ?? (await store.find(id)) ?? row));
  };

  const enqueueNew = (transfer: NewTransfer, wait: Wait | undefined): Promise<TransferRecord> =>
    withWait(transfer.id, wait, async () => {
      const row = await insert(transfer);
      queue.arrived(row);
      return row;
    });

  /** @param hasContent the request brought a content of `transfer.size` bytes */
  const enqueue = async (transfer: NewTransfer, { wait, key }: Caller, hasContent = false): Promise<TransferRecord> => {
    if (key === undefined) return enqueueNew(transfer, wait);
    const hash = requestHash(transfer, hasContent);
    try {
      return await enqueueNew({ ...transfer, idempotency: { key, hash } }, wait);
    } catch (error) {
      // A queue that is full now was not when the request came first.
      if (!(error instanceof ApiError) && !isUniqueViolation(error, 'transfers_idempotency_key')) throw error;
      const earlier = await store.findByKey(key);
      if (earlier === undefined) throw error;
      if (earlier.request_hash !== hash) throw conflict('This Idempotency-Key was used for another request');
      return withWait(earlier.id, wait, () => existing(earlier.id));
    }
  };

  /** Queues a content that came with the request; the content goes when its transfer cannot be queued. */
  const sendContent = async (
    body: Names & TransferSettings,
    content: AsyncIterable<Buffer> | Iterable<Buffer>,
    caller: Caller,
  ): Promise<TransferRecord> => {
    const id = randomUUID();
    const spooled = await sendTree.spool(id, content);
    const unused = () => rm(spooled.path, { force: true });
    try {
      const transfer = newTransfer(id, 'SEND', body, { filename: nameOf(body), ...spooled });
      const record = await enqueue(transfer, caller, true);
      if (record.id !== id) await unused();
      return record;
    } catch (error) {
      // After any other error the transfer may be in the queue, and needs its content.
      if (error instanceof ApiError) await unused();
      throw error;
    }
  };

  const newTransfer = (
    id: string,
    direction: 'SEND' | 'RECEIVE',
    body: Names & TransferSettings,
    local: {
      readonly filename: string;
      readonly path?: string;
      readonly size?: number;
      readonly version?: StoredVersion;
    },
  ): NewTransfer => ({
    id,
    type: body.message === undefined ? 'FILE' : 'MESSAGE',
    direction,
    server: serverOf(body),
    partnerId: body.partnerId,
    filename: local.filename,
    remoteFilename: body.remoteFilename,
    virtualFile: body.virtualFile,
    sourcePath: local.path,
    sourceVersion: local.version,
    size: local.size,
    settings: settingsOf(body),
  });

  const requireFreeName = async ({ localName, overwrite = false }: TransferSettings): Promise<void> => {
    if (localName === undefined || overwrite || !(await receivedTree.has(localName))) return;
    throw conflict(
      `${JSON.stringify(localName)} exists in the received tree: choose another localName, or set overwrite`,
    );
  };

  /** Where it is the remote server that wants the name in PI 12; the schema knows of the request alone. */
  const requireRoomForName = async (body: Names & TransferSettings): Promise<void> => {
    if (body.selectByName !== undefined || fitsInPi12(body)) return;
    const server = await servers.find(serverOf(body));
    if (server?.select_by_name === true) throw validation([{ field: 'remoteFilename', message: NO_ROOM_FOR_NAME }]);
  };

  const serverIsGone = (name: string): ApiError =>
    conflict(`Remote server ${JSON.stringify(name)} was removed: make a new request with another one`);

  const existing = async (id: string): Promise<TransferRow> => {
    const row = await store.find(id);
    if (row === undefined) throw notFound('Transfer', id);
    return row;
  };

  return {
    /** Both forms of the send payload: a file of the send tree, or a content in base64. */
    send: async (body: z.output<typeof sendBody>, caller: Caller): Promise<TransferRecord> => {
      const { filename, fileContent } = body;
      if (fileContent !== undefined) return sendContent(body, [decodeBase64(fileContent)], caller);
      const source = await sendTree.findNamed(filename as string);
      return enqueue(newTransfer(randomUUID(), 'SEND', body, { filename: filename as string, ...source }), caller);
    },

    /** A content as the body of the request, of any size. */
    upload: async (
      query: z.output<typeof uploadQuery>,
      content: AsyncIterable<Buffer>,
      caller: Caller,
    ): Promise<TransferRecord> => {
      // Before the first byte is taken: a large file should not travel for nothing.
      const isAgain = caller.key !== undefined && (await store.findByKey(caller.key)) !== undefined;
      if (!isAgain) await admit(serverOf(query));
      return sendContent(query, content, caller);
    },

    receive: async (body: z.output<typeof receiveBody>, caller: Caller): Promise<TransferRecord> => {
      await requireFreeName(body);
      await requireRoomForName(body);
      const filename = body.localName ?? nameOf(body);
      return enqueue(newTransfer(randomUUID(), 'RECEIVE', body, { filename }), caller);
    },

    /** Whoever asks without a word on waiting waits for the answer of the partner: that is what a message is sent for. */
    message: (body: z.output<typeof messageBody>, caller: Caller): Promise<TransferRecord> =>
      enqueue(
        newTransfer(randomUUID(), 'SEND', { ...body, remoteFilename: undefined }, { filename: body.virtualFile }),
        caller,
      ),

    /** The same transfer again, from where it was interrupted: a FAILED one, or one that waits for its next attempt. */
    retry: (id: string, wait?: Wait): Promise<TransferRecord> =>
      withWait(id, wait, async () => {
        const { status, server_id: serverId, server_name: server } = await existing(id);
        if (status !== 'FAILED' && status !== 'PENDING') {
          throw conflict(`Only a transfer that FAILED, or waits, can be tried again: this one is ${status}`);
        }
        if (serverId === null) throw serverIsGone(server);
        await (status === 'FAILED' ? admit(serverId) : requireEnabled(serverId));
        const row = await store.again(id);
        if (row === undefined) throw conflict('The transfer cannot be tried again any more: see its status');
        logger.info({ transferId: id, restartable: row.restartable }, 'transfer tried again on request');
        queue.arrived(row);
        return row;
      }),

    /** A new transfer from the request of one that has ended. */
    replay: async (id: string, wait?: Wait): Promise<TransferRecord> => {
      const row = await existing(id);
      const { status, direction, server_id: server, server_name: name, settings } = row;
      if (status === 'PENDING' || status === 'IN_PROGRESS') {
        throw conflict(`Only a transfer that has ended can be replayed: this one is ${status}`);
      }
      if (server === null) throw serverIsGone(name);
      await requireFreeName(settings);
      const source = row.source_path === null ? undefined : await sendTree.find(row.source_path);
      return enqueue(
        {
          ...{ id: randomUUID(), type: row.type, direction, server, settings },
          ...{ partnerId: row.partner_id, filename: row.filename },
          ...{ remoteFilename: row.remote_filename ?? undefined, virtualFile: row.virtual_file ?? undefined },
          ...{ sourcePath: source?.path, sourceVersion: source?.version, size: source?.size },
        },
        { wait },
      );
    },

    /** Ends a transfer that has not ended: at once when it waits, as soon as the partner knows when it runs. */
    cancel: (id: string, wait?: Wait): Promise<TransferRecord> =>
      withWait(id, wait, async () => {
        const row = await store.cancel(id, 'cancelled on request');
        if (row === undefined) {
          throw conflict(
            `Only a transfer that has not ended can be cancelled: this one is ${(await existing(id)).status}`,
          );
        }
        logger.info({ transferId: id, status: row.status }, 'transfer cancelled on request');
        if (row.status === 'CANCELLED') {
          if (row.direction === 'RECEIVE') await receivedTree.forget(id);
          queue.over(row);
        } else {
          queue.cancel(id);
        }
        return row;
      }),

    get: async (id: string): Promise<TransferRecord> => toRecord(await existing(id), queue.progressOf(id)),

    history: (query: HistoryQuery): Promise<Page<TransferRecord>> =>
      store.page(query, (row) => toRecord(row, queue.progressOf(row.id))),

    statistics: (filter: HistoryFilter) => store.statistics(filter),

    /** A received file: its path, and the name to offer. */
    content: async (id: string): Promise<{ readonly path: string; readonly name: string }> => {
      const { direction, status, local_path: path } = await existing(id);
      if (direction !== 'RECEIVE') throw conflict('Only received files can be downloaded: this transfer is a SEND');
      if (status !== 'COMPLETED' || path === null) throw conflict(`The file is not there: the transfer is ${status}`);
      const real = await receivedTree.find(path).catch((cause: unknown) => {
        throw new ApiError('FILE_NOT_FOUND', 'The received file is not in the received tree any more', { cause });
      });
      return { path: real, name: basename(path) };
    },
  };
};

export type TransferService = ReturnType<typeof transferService>;
