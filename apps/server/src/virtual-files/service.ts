import { FieldService } from '@pesit-node/service';
import type { ChangeAudit, EventStream } from '@pesit-node/service';

import type { Directories } from '../files/directories.js';
import { VIRTUAL_FILE } from './fields.js';
import type { VirtualFileRow } from './fields.js';
import type { VirtualFileStore } from './store.js';

export interface VirtualFileServiceDeps {
  readonly virtualFiles: VirtualFileStore;
  readonly directories: Pick<Directories, 'admit'>;
  readonly events: EventStream;
  readonly audit: ChangeAudit;
}

/** Where the interface has them. */
export const VIRTUAL_FILES = { path: '/api/v1/config/files', fields: VIRTUAL_FILE } as const;

export type VirtualFileService = FieldService<typeof VIRTUAL_FILE.rows, VirtualFileRow>;

/** Creates and changes virtual files; their directories are looked at, and made, before. */
export const virtualFileService = ({
  virtualFiles: store,
  directories,
  events,
  audit,
}: VirtualFileServiceDeps): VirtualFileService =>
  new FieldService({
    ...VIRTUAL_FILES,
    store,
    admit: ({ receiveDirectory, sendDirectory, sendFile }) =>
      directories.admit([
        { field: 'receiveDirectory', path: receiveDirectory, create: true },
        { field: 'sendDirectory', path: sendDirectory, create: sendFile === undefined },
        // It may name one file, which need not be there yet.
        { field: 'sendFile', path: sendFile, create: false },
      ]),
    ...{ events, audit },
  });
