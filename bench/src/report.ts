import type { CaseResult } from './figures.js';
import type { Machine } from './machine.js';

export interface Report {
  readonly machine: Machine;
  readonly cases: readonly CaseResult[];
}

const COLUMNS: readonly (readonly [title: string, cell: (result: CaseResult) => string])[] = [
  ['case', ({ name }) => name],
  ['MB/s', ({ mbPerSecond }) => String(mbPerSecond)],
  ['ratio to raw', ({ ratioToRaw }) => ratioToRaw?.toFixed(2) ?? '-'],
  ['to plain', ({ ratioToPlain }) => ratioToPlain?.toFixed(2) ?? '-'],
  ['CPU s/GB', ({ cpuSecondsPerGb }) => cpuSecondsPerGb?.toString() ?? '-'],
  ['transfers/s', ({ transfersPerSecond }) => transfersPerSecond?.toString() ?? '-'],
  ['records/s', ({ recordsPerSecond }) => recordsPerSecond?.toString() ?? '-'],
  ['compressed', ({ compressionRatio }) => (compressionRatio === null ? '-' : `${compressionRatio} : 1`)],
  [
    'peak memory MB (above idle)',
    ({ processes }) =>
      processes
        .map(
          ({ name, peakRssMb, idleRssMb }) =>
            `${name} ${peakRssMb}${idleRssMb === null ? '' : ` (+${Math.max(0, peakRssMb - idleRssMb)})`}`,
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
