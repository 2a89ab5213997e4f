import type { CaseResult } from './figures.js';
import type { Machine } from './machine.js';

export interface Report {
  readonly machine: Machine;
  readonly cases: readonly CaseResult[];
}

type ProcessResult = CaseResult['processes'][number];

/** One figure of each process that has it, by the name of the process. */
const ofProcesses = (processes: readonly ProcessResult[], figure: (process: ProcessResult) => number | null): string =>
  processes
    .filter((process) => figure(process) !== null)
    .map((process) => `${process.name} ${figure(process)}`)
    .join(', ') || '-';

const COLUMNS: readonly (readonly [title: string, cell: (result: CaseResult) => string])[] = [
  ['case', ({ name }) => name],
  ['MB/s', ({ mbPerSecond }) => String(mbPerSecond)],
  ['ratio to raw', ({ ratioToRaw }) => ratioToRaw?.toFixed(2) ?? '-'],
  ['to hashed', ({ ratioToHashed }) => ratioToHashed?.toFixed(2) ?? '-'],
  ['to plain', ({ ratioToPlain }) => ratioToPlain?.toFixed(2) ?? '-'],
  ['CPU s/GB', ({ cpuSecondsPerGb }) => cpuSecondsPerGb?.toString() ?? '-'],
  ['transfers/s', ({ transfersPerSecond }) => transfersPerSecond?.toString() ?? '-'],
  ['p50/p99 ms', ({ latencyMs }) => (latencyMs === null ? '-' : `${latencyMs.p50}/${latencyMs.p99}`)],
  ['CPU ms each', ({ processes }) => ofProcesses(processes, ({ cpuMsPerTransfer }) => cpuMsPerTransfer)],
  ['loop p99 ms', ({ processes }) => ofProcesses(processes, ({ loopDelayMs }) => loopDelayMs)],
  ['records/s', ({ recordsPerSecond }) => recordsPerSecond?.toString() ?? '-'],
  ['compressed', ({ compressionRatio }) => (compressionRatio === null ? '-' : `${compressionRatio} : 1`)],
  [
    'peak memory MB (above idle)',
    ({ processes }) =>
      processes
        .flatMap(({ name, peakRssMb, idleRssMb }) =>
          peakRssMb === null
            ? []
            : `${name} ${peakRssMb}${idleRssMb === null ? '' : ` (+${Math.max(0, peakRssMb - idleRssMb)})`}`,
        )
        .join(', '),
  ],
];

/** The report as people read it. */
export const formatTable = (results: readonly CaseResult[]): string => {
  const rows = [COLUMNS.map(([title]) => title), ...results.map((result) => COLUMNS.map(([, cell]) => cell(result)))];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) => {
      const cells = row.map((cell, column) =>
        column === 0 || column === row.length - 1 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
      );
      return cells.join('  ').trimEnd();
    })
    .join('\n');
};

/** The machine in one line. */
export const formatMachine = (machine: Machine): string => {
  const media = Object.entries(machine.fileSystems).map(([medium, type]) => `${medium} ${type}`);
  return `${machine.cpus} × ${machine.cpuModel}, ${machine.memoryGb} GB, ${machine.system}, Node ${machine.node}, ${media.join(', ')}`;
};
