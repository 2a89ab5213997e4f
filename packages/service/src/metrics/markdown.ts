import { metricRows } from './table.js';
import type { Metric } from './table.js';

const cell = (value: string): string => value.replaceAll('|', '\\|');

const labels = (metric: Metric): string =>
  Object.entries(metric.labels)
    .map(
      ([label, values]) =>
        `\`${label}\`: ${typeof values === 'string' ? values : values.map((value) => `\`${value}\``).join(', ')}`,
    )
    .join('; ');

/** The table of docs/metrics.md, one row a metric, generated from `METRICS`. Ends with a line feed. */
export const metricsMarkdown = (): string => {
  const head = ['Metric', 'Type', 'App', 'Labels', 'Meaning'];
  const rows = metricRows().map(([name, metric]) =>
    [`\`${name}\``, metric.type, metric.apps, labels(metric), metric.help].map(cell).join(' | '),
  );
  return [head.join(' | '), head.map(() => '---').join(' | '), ...rows].map((row) => `| ${row} |\n`).join('');
};
