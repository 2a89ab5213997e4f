import type { ServerConnection } from '@pesit-node/net';
import type { PesitError } from '@pesit-node/protocol';

import type { FileTransfer } from '../exchange/file-transfer.js';
import { taken } from '../transfers/completions.js';
import type { TransferContexts } from '../transfers/contexts.js';

interface Running {
  readonly file: FileTransfer;
  readonly connection: Pick<ServerConnection, 'abort'>;
}

/** The transfers that sessions of this process have. */
export class RunningTransfers {
  readonly #running = new Map<number, Running>();

  get count(): number {
    return this.#running.size;
  }

  add(file: FileTransfer, connection: Running['connection']): void {
    this.#running.set(file.record.id, { file, connection });
  }

  remove({ record }: FileTransfer): void {
    this.#running.delete(record.id);
  }

  /** Changes as long as the transfer moves; undefined when no session of this process has it. */
  motionOf(id: number): string | undefined {
    const progress = this.#running.get(id)?.file.progress();
    return progress && `${progress.dataBytes}/${progress.syncPoint}`;
  }

  /** Ends the sessions whose transfers another process has taken. @throws when the database cannot be asked */
  async endLost(contexts: Pick<TransferContexts, 'lostAmong'>): Promise<void> {
    const records = [...this.#running.values()].map(({ file }) => file.record);
    for (const id of await contexts.lostAmong(records)) this.abort(id, taken(id));
  }

  /** Ends the sessions of all. */
  abortAll(reason: PesitError): void {
    for (const id of [...this.#running.keys()]) this.abort(id, reason);
  }

  /** Ends the session that has the transfer. */
  abort(id: number, reason: PesitError): void {
    this.#running.get(id)?.connection.abort(reason);
  }
}
