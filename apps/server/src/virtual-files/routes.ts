import { fieldRoutes } from '@pesit-node/service';
import type { EventStream, Routes } from '@pesit-node/service';

import type { Directories } from '../files/directories.js';
import { VIRTUAL_FILE } from './fields.js';
import type { VirtualFileStore } from './store.js';

export const virtualFileRoutes = (
  routes: Routes,
  store: VirtualFileStore,
  directories: Directories,
  events: EventStream,
): void => {
  fieldRoutes(routes, {
    path: '/api/v1/config/files',
    fields: VIRTUAL_FILE,
    store,
    computed: () => ({}),
    admit: ({ receiveDirectory, sendDirectory, sendFile }) =>
      directories.admit([
        { field: 'receiveDirectory', path: receiveDirectory, create: true },
        { field: 'sendDirectory', path: sendDirectory, create: sendFile === undefined },
        // It may name one file, which need not be there yet.
        { field: 'sendFile', path: sendFile, create: false },
      ]),
    answers: { 422: 'A field whose behaviour this version does not have.' },
    events,
  });
};
