import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem, type } from 'node:os';

export interface Machine {
  readonly cpus: number;
  readonly cpuModel: string;
  readonly memoryGb: number;
  readonly system: string;
  readonly node: string;
  /** File system type of each folder measured. */
  readonly fileSystems: Readonly<Record<string, string>>;
}

const fileSystemType = (directory: string): string => {
  try {
    const lines = execFileSync('df', ['-PT', directory], { encoding: 'utf8' }).trim().split('\n');
    return lines.at(-1)?.split(/\s+/)[1] ?? 'unknown';
  } catch {
    return 'unknown';
  }
};

/** Describes the machine; `media` names the folders measured. */
export const describeMachine = (media: Readonly<Record<string, string>>): Machine => {
  const processors = cpus();
  return {
    cpus: processors.length,
    cpuModel: processors[0]?.model.trim() ?? 'unknown',
    memoryGb: Math.round(totalmem() / 1e9),
    system: `${type()} ${release()}`,
    node: process.version,
    fileSystems: Object.fromEntries(
      Object.entries(media).map(([medium, directory]) => [medium, fileSystemType(directory)]),
    ),
  };
};
