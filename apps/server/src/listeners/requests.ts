import type { Certificates } from '@pesit-node/certificates';
import type { Caller, CreateOf } from '@pesit-node/service';

import type { Directories } from '../files/directories.js';
import { LISTENER } from './fields.js';
import type { ListenerChange } from './fields.js';
import type { ListenerService, ListenerView } from './service.js';

export interface ListenerRequestsDeps {
  readonly listeners: ListenerService;
  readonly directories: Pick<Directories, 'admit'>;
  readonly certificates: Pick<Certificates, 'require'>;
}

/** Creates and changes listeners as they are configured, whoever asks: what one names has to be there. */
export const listenerRequests = ({ listeners, directories, certificates }: ListenerRequestsDeps) => {
  const admit = async (change: ListenerChange): Promise<void> => {
    await certificates.require(change);
    await directories.admit([
      { field: 'receiveDirectory', path: change.receiveDirectory, create: true },
      { field: 'sendDirectory', path: change.sendDirectory, create: true },
    ]);
  };
  return {
    /** @param start false: it is not started, whatever `autoStart` says @throws {ApiError} */
    create: async (body: CreateOf<typeof LISTENER.rows>, start: boolean, by?: Caller): Promise<ListenerView> => {
      const asked = LISTENER.asked(body);
      await admit(asked);
      return listeners.create(body.serverId, await LISTENER.values(asked), start && asked.autoStart !== false, by);
    },

    /** @throws {ApiError} */
    change: async (id: string, body: ListenerChange, by?: Caller): Promise<ListenerView> => {
      const before = await listeners.get(id);
      const change = LISTENER.changes(body, before.row);
      await admit(change);
      if (Object.keys(change).length === 0) return before;
      return listeners.update(id, await LISTENER.values(change), by);
    },
  };
};

export type ListenerRequests = ReturnType<typeof listenerRequests>;
