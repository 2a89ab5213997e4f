/** Alerts and dashboard: each uses metrics and labels that exist; promtool, where the machine has it, tries the rules and reads our metrics. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { describe, expect, test } from '@jest/globals';
import { METRICS, Metrics } from '@pesit-node/service';
import { silentLogger } from '@pesit-node/service/testing';
import { parse } from 'yaml';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(`${root}/${path}`, 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
}
const rules = (parse(read('helm/pesit-node/alerts.yaml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);

interface Panel {
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}
const dashboard = JSON.parse(read('deploy/observability/dashboard.json')) as { readonly panels: readonly Panel[] };
const expressions = [
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ...dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
];

/** Series that come from Prometheus and from Node.js. */
const FOREIGN =
  /^(?:up|process_(?:cpu_seconds_total|resident_memory_bytes|open_fds)|nodejs_eventloop_lag_p99_seconds)$/;
/** Labels that Prometheus adds. */
const ADDED = ['namespace', 'service', 'pod', 'endpoint', 'le'];

const metricOf = (name: string) => {
  const base = name.replace(/_(?:bucket|count|sum)$/, '');
  return Object.hasOwn(METRICS, base) ? METRICS[base as keyof typeof METRICS] : undefined;
};

describe.each(expressions)('%s', (_, expr) => {
  const selectors = [...expr.matchAll(/\b([a-z][a-z0-9_]*_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?(?!\s*[("])/g)]
    .map(([, name = '', labels = '']) => ({
      name,
      labels: [...labels.matchAll(/(\w+)=/g)].map(([, label = '']) => label),
    }))
    .filter(({ name }) => !/^(?:histogram_quantile|label_values|__rate_interval)$/.test(name));

  test('uses metrics that exist, and labels that they have', () => {
    expect(selectors.length).toBeGreaterThan(0);
    for (const { name, labels } of selectors) {
      const metric = metricOf(name);
      expect([name, FOREIGN.test(name) || metric !== undefined]).toEqual([name, true]);
      const own = Object.keys(metric?.labels ?? {});
      expect(labels.filter((label) => !own.includes(label) && !ADDED.includes(label))).toEqual([]);
    }
    const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/,\s*/));
    const known = new Set([...ADDED, ...selectors.flatMap(({ name }) => Object.keys(metricOf(name)?.labels ?? {}))]);
    expect(grouped.filter((label) => !known.has(label))).toEqual([]);
  });
});

test('each alert has a runbook and a test', () => {
  const runbooks = [...read('docs/operations.md').matchAll(/^### (Pesit\w+)$/gm)].map(([, name]) => name);
  const tried = new Set(
    [...read('deploy/observability/alerts.test.yaml').matchAll(/alertname: (\w+)/g)].map(([, name]) => name),
  );
  const names = rules.map(({ alert }) => alert);
  expect(runbooks.toSorted()).toEqual(names.toSorted());
  expect([...tried].toSorted()).toEqual(names.toSorted());
  for (const { labels } of rules) expect(['critical', 'warning']).toContain(labels.severity);
});

test('no two panels of the dashboard lie over each other', () => {
  const taken = new Set<string>();
  for (const { title, gridPos } of dashboard.panels) {
    expect([title, gridPos.x + gridPos.w <= 24]).toEqual([title, true]);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect([title, taken.has(`${x} ${y}`)]).toEqual([title, false]);
        taken.add(`${x} ${y}`);
      }
    }
  }
});

/** Nothing that a peer may choose freely is a label, so each metric has a bound: the product of its values. */
test('labels are bounded', () => {
  const bounded = Object.entries(METRICS).map(([name, { labels }]) => {
    const listed = Object.values(labels as Readonly<Record<string, readonly string[] | string>>).filter(Array.isArray);
    return [name, listed.reduce((product, values) => product * values.length, 1)] as const;
  });
  expect(bounded.filter(([, product]) => product > 50)).toEqual([]);
});

const library = new URL('../lib/promtool.mjs', import.meta.url).href;
const { findPromtool } = (await import(library)) as { readonly findPromtool: () => string | undefined };
const promtool = findPromtool() ?? '';
// Left out where the machine has none: `npm run promtool -- fetch`.
const suite = promtool === '' ? describe.skip : describe;

suite('promtool', () => {
  const run = (args: readonly string[], input?: string) =>
    spawnSync(promtool, [...args], { cwd: root, encoding: 'utf8', ...(input === undefined ? {} : { input }) });

  test('every alert fires with its cause, and none without', () => {
    const { status, stdout, stderr } = run(['test', 'rules', 'deploy/observability/alerts.test.yaml']);
    expect([status, stdout + stderr]).toEqual([0, expect.stringContaining('SUCCESS')]);
  });

  test.each(['server', 'client'] as const)(
    'the names of the metrics of the %s app are as they should be',
    async (app) => {
      const metrics = new Metrics({ app, version: '1', logger: silentLogger });
      const scraped = await metrics.scrape();
      const counters = new Set([...scraped.matchAll(/^# TYPE (\S+) counter$/gm)].map(([, name]) => name));
      // promtool reads the older text format: counters are described under their whole name, and nothing says where the end is.
      const text = scraped
        .replace(/^# (HELP|TYPE) (\S+)/gm, (line, _, name: string) => (counters.has(name) ? `${line}_total` : line))
        .replace(/# EOF\n$/, '');
      const { status, stdout, stderr } = run(['check', 'metrics'], text);
      expect([status, stdout + stderr]).toEqual([0, '']);
    },
  );
});
