import type { CommonConfig } from '../config/keys.js';
import type { Reloaded } from '../config/live.js';
import { ConfigError } from '../config/load.js';
import type { Logger } from '../logging.js';

/** The part of `process` that this needs. */
export interface ReloadSource {
  on(event: 'SIGHUP', listener: () => void): unknown;
}

export interface ReloadOptions {
  readonly live: { readonly config: Pick<CommonConfig, 'log.level'>; reload(): Reloaded };
  readonly logger: Logger;
  readonly source: ReloadSource;
}

/**
 * From now on SIGHUP reads the configuration again, and never ends the process. The log names the keys that changed, without values: a
 * value may be a secret. A configuration that cannot be used changes nothing.
 */
export const reloadOnSignal = ({ live, logger, source }: ReloadOptions): void => {
  source.on('SIGHUP', () => {
    try {
      const { changed, needRestart, withoutEffect } = live.reload();
      logger.level = live.config['log.level'];
      logger.info({ changed }, 'SIGHUP: configuration and license file read again');
      for (const { key, reason } of withoutEffect) logger.warn(`${key} is not used: ${reason}`);
      if (needRestart.length > 0) logger.warn({ keys: needRestart }, 'these keys changed and need a restart');
    } catch (error) {
      if (error instanceof ConfigError) {
        logger.error({ problems: error.problems }, 'SIGHUP: the configuration is not usable, nothing changed');
      } else logger.error({ err: error }, 'SIGHUP: the configuration could not be read again, nothing changed');
    }
  });
};
