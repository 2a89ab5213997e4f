import { isDatabaseUnavailable } from '@pesit-node/service';
import type {
  AppName,
  CommonConfig,
  DatabaseSupervisor,
  HealthRegistry,
  Logger,
  PeriodicHandle,
  PeriodicWork,
} from '@pesit-node/service';
import { markChecker, VolumeWatch } from '@pesit-node/storage';
import type { FileOperations, VolumeFault, VolumeMarks } from '@pesit-node/storage';

/** Between two looks at the volumes, milliseconds. */
const LOOK_MS = 5000;

export interface WatchVolumesOptions {
  readonly app: AppName;
  readonly config: Pick<
    CommonConfig,
    'data.directory' | 'storage.roots' | 'storage.answer-timeout' | 'storage.shared' | 'cluster.enabled'
  >;
  /** Name of this pod. */
  readonly node: string;
  /** Whether the pods of this app may share their directories. Default: they may. */
  readonly mayShare?: boolean;
  readonly marks: VolumeMarks;
  readonly supervisor: Pick<DatabaseSupervisor, 'ready'>;
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly health: Pick<HealthRegistry, 'register'>;
  readonly logger: Logger;
  /** Between two looks, milliseconds. Default 5000. */
  readonly lookMs?: number | undefined;
  /** Default: the real file system. */
  readonly files?: FileOperations | undefined;
}

export interface VolumesFollowed {
  readonly watch: VolumeWatch;
  readonly looks: PeriodicHandle;
}

/**
 * Looks at the volumes of an app again and again, and says what is found: in the log when it changes, and as the
 * component `volumes`, on which readiness depends.
 */
export const watchVolumes = (options: WatchVolumesOptions): VolumesFollowed => {
  const { config, node, periodic, health, logger, files, lookMs = LOOK_MS } = options;
  const watch = new VolumeWatch({
    node,
    directories: () => ({ main: config['data.directory'], others: config['storage.roots'] }),
    limitMs: () => config['storage.answer-timeout'] * 1000,
    checkMark: markCheck(options),
    ...(files === undefined ? {} : { files }),
  });
  watch.on('change', (fault) => {
    if (fault === undefined) logger.info({}, 'the volumes of this pod can be used again: it takes files');
    else logger.error(detailsOf(fault), 'this pod takes no files, for a volume cannot be used');
  });
  health.register(
    'volumes',
    () => {
      const { fault, answerMs } = watch;
      if (fault !== undefined) return { status: 'DOWN', details: detailsOf(fault) };
      return { status: 'UP', details: answerMs === undefined ? {} : { answerMs: Math.round(answerMs) } };
    },
    { readiness: true },
  );
  const looks = periodic.add({
    ...{ name: 'look at the volumes', intervalMs: lookMs, jitter: 0.1 },
    // The app makes its directories first.
    first: 'after an interval',
    run: () => watch.look(),
  });
  return { watch, looks };
};

/** Nothing is asked of a database that is away: a volume is not to blame for it. */
const markCheck = (options: WatchVolumesOptions): ((directory: string) => Promise<void>) => {
  const { app, config, marks, supervisor, files, mayShare = true } = options;
  if (!config['cluster.enabled'] || !config['storage.shared'] || !mayShare) return () => Promise.resolve();
  const check = markChecker(marks, app, files);
  return async (directory) => {
    if (!supervisor.ready) return;
    await check(directory).catch((error: unknown) => {
      if (!isDatabaseUnavailable(error)) throw error;
    });
  };
};

const detailsOf = ({ kind, directory, reason, since }: VolumeFault) => ({
  ...{ reason, kind, directory },
  since: since.toISOString(),
});

/** As gauges. */
export const volumeReadings = ({ fault, answerMs }: Pick<VolumeWatch, 'fault' | 'answerMs'>) => ({
  pesit_volumes_up: Number(fault === undefined),
  ...(answerMs === undefined ? {} : { pesit_volumes_answer_seconds: answerMs / 1000 }),
});

/** One look at a time, whoever asks: on a volume that does not answer each would keep a thread. */
export const oneAtATime = <T>(look: () => Promise<T>): (() => Promise<T>) => {
  let underWay: Promise<T> | undefined;
  return () => (underWay ??= look().finally(() => (underWay = undefined)));
};
