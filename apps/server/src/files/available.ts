import { settledWithin } from '@pesit-node/ground';
import { PesitError } from '@pesit-node/protocol';
import { conflict, notFound, unavailable } from '@pesit-node/service';
import type { Config } from '@pesit-node/service';
import type { SendableFile } from '@pesit-node/storage';

import { virtualFileFor } from '../admission/access.js';
import { mayUseListener } from '../admission/grants.js';
import type { Files, Records } from '../exchange/parts.js';
import type { ListenerStore } from '../listeners/store.js';
import type { PartnerStanding } from '../partners/fields.js';
import type { PartnerStore } from '../partners/store.js';
import { listToSend } from './file-to-send.js';

export interface AvailableFilesDeps {
  readonly files: Pick<Files, 'virtualFiles' | 'directories' | 'stores' | 'outgoing' | 'volumes'>;
  readonly config: Pick<Config<'server'>, 'access.default' | 'storage.answer-timeout'>;
  readonly journal: Pick<Records['journal'], 'sentAmong'>;
  readonly partners: Pick<PartnerStore, 'get'>;
  readonly listeners: Pick<ListenerStore, 'get'>;
}

export interface AvailableQuery {
  readonly partnerId: string;
  /** Listener whose sendDirectory counts where the virtual file has none. Default: `to-partners`. */
  readonly serverId?: string | undefined;
  readonly size: number;
}

export interface AvailableFile extends Pick<SendableFile, 'name' | 'size' | 'modified'> {
  /** Why a SELECT that comes to this file would be refused, in words. */
  readonly fault: string | null;
}

export interface AvailableFiles {
  readonly content: readonly AvailableFile[];
  /** There are others behind them. */
  readonly more: boolean;
}

export type ListAvailable = (fileId: string, query: AvailableQuery) => Promise<AvailableFiles>;

/** The files that a partner would be sent, one SELECT after the other, by the same rules and the same look as those. */
export const availableFiles = (deps: AvailableFilesDeps): ListAvailable => {
  const { files, config, journal, partners, listeners } = deps;

  const look = async (fileId: string, { partnerId, serverId, size }: AvailableQuery): Promise<AvailableFiles> => {
    if ((await files.virtualFiles.get(fileId)) === undefined) {
      throw notFound('Virtual file', fileId, '/api/v1/config/files');
    }
    const partner = await partners.get(partnerId);
    const noPartner = notFound('Partner', partnerId, '/api/v1/config/partners');
    if (partner === undefined) throw noPartner;
    if (!partner.enabled) throw conflict(`The partner ${partnerId} is disabled: it is refused every session`);
    const listener = serverId === undefined ? undefined : await listeners.get(serverId);
    if (serverId !== undefined) {
      if (listener === undefined) throw notFound('Listener', serverId, '/api/v1/servers');
      if (!mayUseListener(partner, serverId, config['access.default'])) {
        throw conflict(`The partner ${partnerId} is not allowed on the listener ${serverId}: see its allowedListeners`);
      }
    }
    const stands = (now: PartnerStanding | undefined): PartnerStanding => {
      if (now === undefined) throw noPartner;
      return now;
    };
    const { file } = await virtualFileFor({ partner, stands }, { ...files, config }, 'READ', fileId, 0);
    const proven = { partner, listener: listener ?? { send_directory: null } };
    const { directory, found } = await listToSend(proven, { files, journal }, file, size + 1);
    const content = found.slice(0, size).map(async ({ name, path, size: bytes, modified }) => {
      const fault = await files.directories.faultOf(directory, path);
      return { name, size: bytes, modified, fault: fault ?? null };
    });
    return { content: await Promise.all(content), more: found.length > size };
  };

  /**
   * @throws {ApiError} 404; 409 when a SELECT would be refused, with its diagnostic; 503 when a volume does not answer
   */
  return async (fileId, query) => {
    if (files.volumes.fault !== undefined) {
      throw unavailable(`The volumes cannot be used: ${files.volumes.fault.reason}`);
    }
    const seconds = config['storage.answer-timeout'];
    const settled = await settledWithin(look(fileId, query), seconds * 1000);
    if (settled.kind === 'done') return settled.value;
    if (settled.kind === 'late') {
      throw unavailable(
        `The files of ${fileId} could not be looked at in ${seconds} s (storage.answer-timeout): try again`,
      );
    }
    const { error } = settled;
    if (!(error instanceof PesitError)) throw error;
    const { message, diagnostic, condition } = error;
    if (condition === 'database away') throw unavailable('The database is not available: try again', 5, error);
    throw conflict(`A SELECT would be refused: ${message}`, { diagnostic, cause: error });
  };
};
