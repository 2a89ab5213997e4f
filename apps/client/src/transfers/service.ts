import { randomUUID } from 'node:crypto';
import { basename } from 'node:path';

import { ApiError, conflict, validation } from '@pesit-node/service';
import type { HistoryPage } from '@pesit-node/service';
import type { ReadableFile } from '@pesit-node/storage';
import { TRANSFER_ASIDE } from '@pesit-node/transfers';
import type { z } from 'zod';

import type { ReceivedTree } from '../exchange/received-tree.js';
import { contentRequests, requireContent } from './content-requests.js';
import { createEntrance } from './entrance.js';
import type { Caller, EntranceDeps, Wait } from './entrance.js';
import { fitsInPi12, NO_ROOM_FOR_NAME } from './file-name.js';
import { nameToReceive, newTransfer, serverOf } from './new-transfer.js';
import type { Asked } from './new-transfer.js';
import { toDetail, toPageRecord, toRecord } from './record.js';
import type { PageRecord, TransferRecord } from './record.js';
import type { TransferSettings } from './fields.js';
import type { NewTransfer } from './row.js';
import type {
  HistoryFilter,
  HistoryQuery,
  messageBody,
  receiveBody,
  sendBody,
  StatisticsQuery,
  uploadQuery,
} from './schema.js';
import { decodeBase64 } from './send-tree.js';
import type { SendTree } from './send-tree.js';
import type { Sendable } from './sendable.js';

export interface TransferServiceDeps extends EntranceDeps {
  readonly sendTree: SendTree;
  readonly receivedTree: ReceivedTree;
}

/** Requests for transfers, and what became of them. */
export const transferService = (deps: TransferServiceDeps) => {
  const { store, servers, sendTree, receivedTree, queue, events } = deps;
  const entrance = createEntrance(deps);
  const { existing, requireEnabled, admit, withWait, enqueue } = entrance;
  const contents = contentRequests({ store, spool: sendTree.spool, entrance });

  const requireFreeName = async ({ localName, overwrite = false }: TransferSettings): Promise<void> => {
    if (localName === undefined || overwrite || !(await receivedTree.has(localName))) return;
    throw conflict(
      `${JSON.stringify(localName)} exists in the received tree: choose another localName, or set overwrite`,
    );
  };

  /** Where it is the remote server that wants the name in PI 12; the schema knows of the request alone. */
  const requireRoomForName = async (body: Asked): Promise<void> => {
    if (body.selectByName !== undefined || fitsInPi12(body)) return;
    const server = await servers.find(serverOf(body));
    if (server?.select_by_name === true) throw validation([{ field: 'remoteFilename', message: NO_ROOM_FOR_NAME }]);
  };

  const serverIsGone = (name: string): ApiError =>
    conflict(`Remote server ${JSON.stringify(name)} was removed: make a new request with another one`);

  return {
    /** Both forms of the send payload: a file of the send tree, or a content in base64. */
    send: async (body: z.output<typeof sendBody>, caller: Caller): Promise<TransferRecord> => {
      const { filename, fileContent } = body;
      if (fileContent !== undefined) return contents.send(body, [decodeBase64(fileContent)], caller);
      const source = await sendTree.find(filename as string);
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
      return contents.send(query, content, caller);
    },

    receive: async (body: z.output<typeof receiveBody>, caller: Caller): Promise<TransferRecord> => {
      await requireFreeName(body);
      await requireRoomForName(body);
      const filename = nameToReceive(body);
      return enqueue(newTransfer(randomUUID(), 'RECEIVE', body, { filename }), caller);
    },

    /** A caller that says nothing on waiting waits for the answer of the partner: a message is sent for that. */
    message: (body: z.output<typeof messageBody>, caller: Caller): Promise<TransferRecord> =>
      enqueue(
        newTransfer(randomUUID(), 'SEND', { ...body, remoteFilename: undefined }, { filename: body.virtualFile }),
        caller,
      ),

    /** The same transfer again, from where it was interrupted: a FAILED one, or one that waits for its next attempt. */
    retry: (id: string, wait?: Wait): Promise<TransferRecord> =>
      withWait(id, wait, async () => {
        const row = await existing(id);
        const { status, server_id: serverId, server_name: server } = row;
        if (status !== 'FAILED' && status !== 'PENDING') {
          throw conflict(`Transfer ${id} is ${status}: only one that FAILED, or that waits, can be tried again`);
        }
        if (serverId === null) throw serverIsGone(server);
        requireContent(row);
        await (status === 'FAILED' ? admit(serverId) : requireEnabled(serverId));
        const again = await store.again(id);
        if (again === undefined)
          throw conflict(`Transfer ${id} has changed meanwhile and can no longer be tried again: see its status`);
        const facts = { restartable: again.restartable };
        events.publish(TRANSFER_ASIDE, { session: undefined, id, aside: 'tried again', facts });
        queue.arrived(again);
        return again;
      }),

    /** A new transfer from the request of one that has ended. */
    replay: async (id: string, wait?: Wait, actor?: string): Promise<TransferRecord> => {
      const row = await existing(id);
      const { status, direction, server_id: server, server_name: name, settings } = row;
      if (status === 'PENDING' || status === 'IN_PROGRESS') {
        throw conflict(`Transfer ${id} is ${status}: only one that has ended can be replayed`);
      }
      if (server === null) throw serverIsGone(name);
      await requireFreeName(settings);
      const replayed = randomUUID();
      const hasContent = row.content !== null;
      const again = (): Promise<Sendable | undefined> =>
        row.source_path === null ? Promise.resolve(undefined) : sendTree.find(row.source_path);
      const source = await (hasContent ? contents.again(row, replayed) : again());
      const names = { remoteFilename: row.remote_filename ?? undefined, virtualFile: row.virtual_file ?? undefined };
      const transfer: NewTransfer = {
        // Its time was that of the first one.
        ...{ settings: { ...settings, notBefore: undefined, expiresAt: undefined } },
        ...{ id: replayed, type: row.type, direction, server, hasContent },
        ...{ partnerId: row.partner_id, ...names },
        // The record of a received file has the name that the first one got.
        filename: direction === 'RECEIVE' ? nameToReceive({ ...names, ...settings }) : row.filename,
        ...{ sourcePath: source?.path, sourceVersion: source?.version, size: source?.size },
      };
      return (hasContent ? contents : entrance).enqueue(transfer, { wait, actor });
    },

    /** Those that wait for a FAILED transfer of their order wait for it no longer. */
    release: async (id: string): Promise<TransferRecord> => {
      const row = await store.release(id);
      if (row === undefined) {
        const { status } = await existing(id);
        throw conflict(
          `Transfer ${id} is ${status} and holds no order: only an ordered one that FAILED can be released`,
        );
      }
      events.publish(TRANSFER_ASIDE, { session: undefined, id, aside: 'order released', facts: {} });
      queue.release();
      return toRecord(row);
    },

    /** Ends a transfer that has not ended: at once when it waits, as soon as the partner knows when it runs. */
    cancel: (id: string, wait?: Wait): Promise<TransferRecord> =>
      withWait(id, wait, async () => {
        const row = await store.cancel(id, 'cancelled on request');
        if (row === undefined) {
          throw conflict(
            `Transfer ${id} is ${(await existing(id)).status}: only one that has not ended can be cancelled`,
          );
        }
        const facts = { status: row.status };
        events.publish(TRANSFER_ASIDE, { session: undefined, id, aside: 'cancel requested', facts });
        if (row.status === 'CANCELLED') {
          if (row.direction === 'RECEIVE') await receivedTree.forget(id);
          queue.over(row);
        } else {
          queue.cancel(id);
        }
        return row;
      }),

    get: async (id: string) => toDetail(await existing(id), queue.progressOf(id)),

    history: (query: HistoryQuery): Promise<HistoryPage<PageRecord>> =>
      store.page(query, (row) => toPageRecord(row, queue.progressOf(row.id))),

    batches: (filter: HistoryFilter) => store.batches(filter, (row) => toPageRecord(row, queue.progressOf(row.id))),

    statistics: (query: StatisticsQuery) => store.statistics(query),

    /** A received file: its path, and the name to offer. */
    content: async (id: string): Promise<{ readonly file: ReadableFile; readonly name: string }> => {
      const { direction, status, local_path: path } = await existing(id);
      if (direction !== 'RECEIVE') throw conflict(`Transfer ${id} is a SEND: only received files can be downloaded`);
      if (status !== 'COMPLETED' || path === null)
        throw conflict(`Transfer ${id} is ${status}: its file can be downloaded when it is COMPLETED`);
      const file = await receivedTree.open(path).catch((cause: unknown) => {
        throw new ApiError('FILE_NOT_FOUND', `The file of transfer ${id} is no longer in the received tree`, { cause });
      });
      return { file, name: basename(path) };
    },
  };
};

export type TransferService = ReturnType<typeof transferService>;
