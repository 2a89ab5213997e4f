import type { DatabaseSupervisor } from '@pesit-node/service';
import { LocalFileStores, SpaceReserve, useSynchronousIo } from '@pesit-node/storage';
import type { VolumeWatch } from '@pesit-node/storage';
import { oneAtATime } from '@pesit-node/transfers';

import { Directories } from '../files/directories.js';
import type { ListenerStore } from '../listeners/store.js';
import type { VirtualFileStore } from '../virtual-files/store.js';
import type { NodeOptions } from './options.js';

/** Where files lie, and the space that is left there. */
export const createFiles = (
  { config, stores = new LocalFileStores(), freeSpace }: NodeOptions,
  configured: { readonly virtualFiles: VirtualFileStore; readonly listeners: ListenerStore },
  supervisor: DatabaseSupervisor,
  volumes: VolumeWatch,
) => {
  const directories = new Directories(config);
  const receiveDirectories = async (): Promise<readonly string[]> => {
    const rows = [...(await configured.virtualFiles.list()), ...(await configured.listeners.list())];
    const paths = rows.map(({ receive_directory: path }) => path).filter((path) => path !== null);
    return [...new Set([directories.received, ...paths.map((path) => directories.resolve(path))])];
  };
  useSynchronousIo(config['storage.synchronous-io']);
  const reserve = new SpaceReserve({
    bytes: () => config['storage.reserve'],
    fault: () => volumes.fault,
    ...(freeSpace === undefined ? {} : { free: freeSpace }),
  });
  const space = oneAtATime(async () =>
    reserve.fullest(supervisor.ready ? await receiveDirectories() : [directories.received]),
  );
  return { directories, stores, receiveDirectories, reserve, space };
};
