import { freeSpace } from './directories.js';
import { StorageError } from './errors.js';
import type { GrowthRules } from './growth.js';
import type { VolumeFault } from './volume-watch.js';

export interface SpaceReserveOptions {
  /** Bytes that must stay free on every volume (`storage.reserve`); looked up each time. 0: none. */
  readonly bytes: () => number;
  /** Bytes that are free on the volume of a directory. Default: as the operating system says. */
  readonly free?: (directory: string) => Promise<number>;
  /** Why no volume is to be asked, for one cannot be used. Default: none. */
  readonly fault?: () => VolumeFault | undefined;
}

/** Size and free space of a volume. */
export interface Space {
  readonly free: number;
  readonly reserve: number;
  /** Bytes that may be written; negative when the reserve is used up in part. */
  readonly usable: number;
}

/** Bytes of a file between two looks at the volume that it is written to. */
const LOOK_EVERY = 16 * 1024 * 1024;

/**
 * Space that received files and uploads leave free: a database, a log or a journal on the same volume keeps working when partners
 * have filled what is theirs.
 */
export class SpaceReserve {
  readonly #options: Required<SpaceReserveOptions>;

  constructor(options: SpaceReserveOptions) {
    this.#options = { free: freeSpace, fault: () => undefined, ...options };
  }

  /** @throws StorageError 2-201: a volume cannot be used for now; nothing is asked of it */
  requireVolumes(): void {
    const fault = this.#options.fault();
    if (fault === undefined) return;
    throw new StorageError(fault.reason, {
      fault: 'local',
      diagnostic: '2-201',
      peerText: 'the storage of this node is not available for now: try again later',
    });
  }

  /** @throws StorageError 2-211 when the directory is not there, 2-201 as `requireVolumes` */
  async look(directory: string): Promise<Space> {
    this.requireVolumes();
    const [free, reserve] = [await this.#options.free(directory), this.#options.bytes()];
    return { free, reserve, usable: free - reserve };
  }

  /**
   * Whether anything new may be written there.
   * @throws StorageError 2-201: to be tried again later
   */
  async admit(directory: string): Promise<Space> {
    const space = await this.look(directory);
    if (!isUsedUp(space)) return space;
    throw new StorageError(`${inWords(directory, space)} before anything new is taken`, {
      fault: 'local',
      diagnostic: '2-201',
      condition: 'disk full',
      peerText: 'too little space is free for now: try again later',
    });
  }

  /** The one of these directories whose volume has least; one that cannot be looked at has a fault of its own. */
  async fullest(directories: readonly string[]): Promise<(Space & { readonly directory: string }) | undefined> {
    const looks = directories.map(async (directory) => ({ directory, ...(await this.look(directory)) }));
    const spaces = (await Promise.allSettled(looks)).flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    return spaces.sort((a, b) => a.free - b.free)[0];
  }

  /** For a file that is written there: it is stopped with 2-219 when the reserve would be used, and can be restarted later. */
  watch(directory: string): NonNullable<GrowthRules['watch']> {
    return {
      everyBytes: LOOK_EVERY,
      check: async () => {
        const space = await this.look(directory);
        if (!isUsedUp(space)) return;
        throw new StorageError(`${inWords(directory, space)}, then restart the transfer`, {
          fault: 'local',
          diagnostic: '2-219',
          condition: 'disk full',
          peerText: 'too little space is free: restart the transfer later',
        });
      },
    };
  }
}

/** A volume without a reserve is used up when the operating system says so. */
export const isUsedUp = ({ reserve, usable }: Space): boolean => reserve > 0 && usable <= 0;

const inWords = (directory: string, { free, reserve }: Space): string =>
  `${free} bytes are free on the volume of ${directory}, and ${reserve} must stay (storage.reserve): free space or enlarge the volume`;
