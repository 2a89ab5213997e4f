import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { basename } from 'node:path';

import { ApiError, conflict, notFound, unavailable } from '@pesit-node/service';
import type { Logger, Page } from '@pesit-node/service';
import type { z } from 'zod';

import type { TransferQueue } from '../exchange/transfer-queue.js';
import type { ReceivedTree } from '../exchange/received-tree.js';
import { refuseUnbuilt } from '../remote-servers/schema.js';
import { serverNotFound } from '../remote-servers/service.js';
import type { RemoteServerStore } from '../remote-servers/store.js';
import { toRecord } from './record.js';
import type { TransferRecord } from './record.js';
import type { HistoryQuery, receiveBody, sendBody, uploadQuery } from './schema.js';
import { decodeBase64 } from './send-tree.js';
import type { SendTree } from './send-tree.js';
import type { NewTransfer, TransferRow, TransferSettings, TransferStore } from './store.js';

type Names = Pick<z.output<typeof sendBody>, 'serverId' | 'server' | 'partnerId' | 'virtualFile' | 'remoteFilename'>;

/** How long the caller waits for the end; `signal` is aborted when it waits no more. */
export interface Wait {
  readonly seconds: number;
  readonly signal: AbortSignal;
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
  const { label, freeMessage, originalSender, finalReceiver, localName, overwrite } = body;
  return {
    ...{ maxEntitySize, syncPointsEnabled, syncInterval, syncWindow, text, recordLength, recordFormat },
    ...{ label, freeMessage, originalSender, finalReceiver, localName, overwrite },
  };
};

const serverOf = ({ serverId, server }: Names): number | string => serverId ?? (server as string);
/** What a transfer without a local file name is called. */
const nameOf = ({ remoteFilename, virtualFile }: Names): string => remoteFilename ?? (virtualFile as string);

/** Requests for transfers, and what became of them. */
export const transferService = (deps: TransferServiceDeps) => {
  const { store, servers, sendTree, receivedTree, queue, logger } = deps;

  /** @throws {ApiError} why a transfer with this server cannot be queued now: 404, 409 or 503 */
  const admit = async (ref: number | string): Promise<void> => {
    const server = await servers.find(ref);
    if (server === undefined) throw serverNotFound(ref);
    if (!server.enabled) {
      throw conflict(`Remote server ${JSON.stringify(server.name)} is disabled: set enabled to true first`);
    }
    const waiting = await store.countPending();
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

  const enqueue = async (transfer: NewTransfer, wait: Wait | undefined): Promise<TransferRecord> => {
    const ended = wait && queue.whenEnded(transfer.id, wait.seconds * 1000, wait.signal);
    const row = await insert(transfer);
    queue.arrived();
    return toRecord(ended === undefined ? row : ((await ended) ?? (await store.find(row.id)) ?? row));
  };

  /** Queues a content that came with the request; the content goes when its transfer cannot be queued. */
  const sendContent = async (
    body: Names & TransferSettings,
    content: AsyncIterable<Buffer> | Iterable<Buffer>,
    wait: Wait | undefined,
  ): Promise<TransferRecord> => {
    const id = randomUUID();
    const spooled = await sendTree.spool(id, content);
    try {
      return await enqueue(newTransfer(id, 'SEND', body, { filename: nameOf(body), ...spooled }), wait);
    } catch (error) {
      // After any other error the transfer may be in the queue, and needs its content.
      if (error instanceof ApiError) await rm(spooled.path, { force: true });
      throw error;
    }
  };

  const newTransfer = (
    id: string,
    direction: 'SEND' | 'RECEIVE',
    body: Names & TransferSettings,
    local: { readonly filename: string; readonly path?: string; readonly size?: number },
  ): NewTransfer => ({
    id,
    direction,
    server: serverOf(body),
    partnerId: body.partnerId,
    filename: local.filename,
    remoteFilename: body.remoteFilename,
    virtualFile: body.virtualFile,
    sourcePath: local.path,
    size: local.size,
    settings: settingsOf(body),
  });

  const existing = async (id: string): Promise<TransferRow> => {
    const row = await store.find(id);
    if (row === undefined) throw notFound('Transfer', id);
    return row;
  };

  return {
    /** Both forms of the send payload: a file of the send tree, or a content in base64. */
    send: async (body: z.output<typeof sendBody>, wait?: Wait): Promise<TransferRecord> => {
      refuseUnbuilt(body);
      const { filename, fileContent } = body;
      if (fileContent !== undefined) return sendContent(body, [decodeBase64(fileContent)], wait);
      const source = await sendTree.find(filename as string);
      return enqueue(newTransfer(randomUUID(), 'SEND', body, { filename: filename as string, ...source }), wait);
    },

    /** A content as the body of the request, of any size. */
    upload: async (
      query: z.output<typeof uploadQuery>,
      content: AsyncIterable<Buffer>,
      wait?: Wait,
    ): Promise<TransferRecord> => {
      refuseUnbuilt(query);
      // Before the first byte is taken: a large file should not travel for nothing.
      await admit(serverOf(query));
      return sendContent(query, content, wait);
    },

    receive: async (body: z.output<typeof receiveBody>, wait?: Wait): Promise<TransferRecord> => {
      refuseUnbuilt(body);
      const { localName, overwrite = false } = body;
      if (localName !== undefined && !overwrite && (await receivedTree.has(localName))) {
        throw conflict(
          `${JSON.stringify(localName)} exists in the received tree: choose another localName, or set overwrite`,
        );
      }
      const filename = localName ?? nameOf(body);
      return enqueue(newTransfer(randomUUID(), 'RECEIVE', body, { filename }), wait);
    },

    get: async (id: string): Promise<TransferRecord> => toRecord(await existing(id), queue.progressOf(id)),

    history: (query: HistoryQuery): Promise<Page<TransferRecord>> =>
      store.page(query, (row) => toRecord(row, queue.progressOf(row.id))),

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
