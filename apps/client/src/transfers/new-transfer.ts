import type { z } from 'zod';

import { TRANSFER_REQUEST } from './fields.js';
import type { TransferSettings } from './fields.js';
import type { NewTransfer, StoredVersion } from './row.js';
import type { sendBody } from './schema.js';

export type Names = Pick<
  z.output<typeof sendBody>,
  'serverId' | 'server' | 'partnerId' | 'virtualFile' | 'remoteFilename'
>;

/** The transfer that a request asks for. */
export type Asked = Names & TransferSettings;

/** The file of a SEND, or the name that one is to have. */
export interface LocalFile {
  readonly filename: string;
  readonly path?: string;
  readonly size?: number;
  readonly version?: StoredVersion;
  /** It came with the request. */
  readonly hasContent?: boolean;
}

/** Id or name of the remote server, as the request has it. */
export const serverOf = ({ serverId, server }: Names): number | string => serverId ?? (server as string);

/** Name of a transfer without a local file name. */
export const nameOf = ({ remoteFilename, virtualFile }: Pick<Names, 'remoteFilename' | 'virtualFile'>): string =>
  remoteFilename ?? (virtualFile as string);

/** Name of a file to receive until it has one. */
export const nameToReceive = (asked: Parameters<typeof nameOf>[0] & Pick<TransferSettings, 'localName'>): string =>
  asked.localName ?? nameOf(asked);

/** The transfer that a request asks for. */
export const newTransfer = (id: string, direction: 'SEND' | 'RECEIVE', body: Asked, local: LocalFile): NewTransfer => ({
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
  hasContent: local.hasContent ?? false,
  settings: TRANSFER_REQUEST.kept(body),
});
