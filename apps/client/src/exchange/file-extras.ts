import { DEFAULT_CODE_PAGE } from '@pesit-node/protocol';
import type { CodePage, FileRequest } from '@pesit-node/protocol';
import { readBytes } from '@pesit-node/service';
import { compressionMode } from '@pesit-node/transfers';
import type { WantedCodePage } from '@pesit-node/transfers';

import type { TransferSettings } from '../transfers/fields.js';
import type { Job } from '../transfers/row.js';

type Settings = Pick<TransferSettings, 'ebcdic' | 'codePage'>;
type Server = Pick<Job['server'], 'ebcdic' | 'code_page'>;

export const codePageOf = (settings: Settings, server: Server): WantedCodePage => ({
  codePage: settings.codePage ?? server.code_page ?? DEFAULT_CODE_PAGE,
  always: settings.ebcdic ?? server.ebcdic ?? false,
});

/** The code page in which a text file is sent, if it is to be EBCDIC. */
export const ebcdicOf = (settings: Settings, server: Server): { readonly codePage?: CodePage } => {
  const { codePage, always } = codePageOf(settings, server);
  return always ? { codePage } : {};
};

/** Parameters that CREATE and SELECT both carry, beside the names: PI 17, 21 of ORF, 61, 62, 99. */
export const extrasOf = ({
  settings,
  server,
}: Job): Pick<FileRequest, 'priority' | 'compression' | 'originalSender' | 'finalReceiver' | 'freeMessage'> => {
  const { originalSender, finalReceiver, freeMessage } = settings;
  return {
    priority: settings.pesitPriority ?? settings.priority ?? 0,
    compression: compressionMode(settings.compression ?? server.compression ?? 'none'),
    originalSender,
    finalReceiver,
    freeMessage: freeMessage === undefined ? undefined : readBytes(freeMessage),
  };
};
