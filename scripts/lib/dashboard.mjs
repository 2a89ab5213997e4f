/** The dashboard for Grafana, panel by panel; `npm run docs` writes deploy/observability/dashboard.json from it. */

const SOURCE = { type: 'prometheus', uid: '${datasource}' };
/** Pods of the chosen namespace and service. */
const CHOSEN = 'namespace=~"$namespace", service=~"$service"';

/** `name` of the chosen pods, with more labels. */
const of = (name, labels = '') => `${name}{${labels === '' ? '' : `${labels}, `}${CHOSEN}}`;
const rate = (name, labels) => `rate(${of(name, labels)}[$__rate_interval])`;
const quantile = (q, name, by) =>
  `histogram_quantile(${q}, sum by (le${by === undefined ? '' : `, ${by}`}) (${rate(`${name}_bucket`)}))`;

const line = (title, unit, targets, description) => ({ kind: 'timeseries', title, unit, targets, description });
const figure = (title, unit, expr, steps, description) => ({
  ...{ kind: 'stat', title, unit, steps, description },
  targets: [['', expr]],
});

const RED = 'red';
const ORANGE = 'orange';
const GREEN = 'green';
/** Colours from a value on. */
const above = (warning, critical) => [
  { color: GREEN, value: null },
  { color: ORANGE, value: warning },
  { color: RED, value: critical },
];
const below = (critical, warning) => [
  { color: RED, value: null },
  { color: ORANGE, value: critical },
  { color: GREEN, value: warning },
];

const ROWS = [
  {
    title: 'Now',
    height: 4,
    panels: [
      figure('Running', 'none', `sum(${of('pesit_transfers_running')})`, above(1e9, 1e9), 'Transfers that run now.'),
      figure('Sessions', 'none', `sum(${of('pesit_sessions_open')})`, above(1e9, 1e9), 'PeSIT sessions that are open.'),
      figure(
        'Failing',
        'percentunit',
        `sum(${rate('pesit_transfer_errors_total')}) / (sum(${rate('pesit_transfers_started_total')}) > 0)`,
        above(0.02, 0.1),
        'Share of the transfers that end badly. Runbook: PesitTransfersFailing.',
      ),
      figure(
        'Oldest due',
        's',
        `max(${of('pesit_queue_oldest_seconds')})`,
        above(60, 600),
        'How long the transfer that is due longest waits. Runbook: PesitQueueStalled.',
      ),
      figure(
        'Listeners that failed',
        'none',
        `sum(${of('pesit_listeners', 'status="FAILED"')})`,
        above(1, 1),
        'Runbook: PesitListenerFailed.',
      ),
      figure(
        'License',
        'd',
        `min(${of('pesit_license_days_remaining')})`,
        below(3, 14),
        'Days until the license ends. Runbook: PesitLicenseEnding.',
      ),
      figure(
        'First certificate',
        's',
        `min(${of('pesit_certificate_expiry_timestamp_seconds')}) - time()`,
        below(7 * 86_400, 30 * 86_400),
        'Until the first certificate of a store ends. Runbook: PesitCertificateEnding.',
      ),
      figure(
        'Free space',
        'bytes',
        `min(${of('pesit_storage_free_bytes')} - ${of('pesit_storage_reserve_bytes')})`,
        below(0, 1e9),
        'On the fullest volume, above the reserve. Runbook: PesitStorageLow.',
      ),
    ],
  },
  {
    title: 'Transfers',
    height: 8,
    panels: [
      line('Ended', 'ops', [
        ['{{direction}} {{status}}', `sum by (direction, status) (${rate('service_transfers_total')})`],
      ]),
      line('Bytes', 'Bps', [['{{direction}}', `sum by (direction) (${rate('service_bytes_transferred_total')})`]]),
      line('Duration of completed transfers', 's', [
        ['p50 {{direction}}', quantile(0.5, 'pesit_transfer_duration_seconds', 'direction')],
        ['p95 {{direction}}', quantile(0.95, 'pesit_transfer_duration_seconds', 'direction')],
      ]),
      line(
        'Failures by diagnostic',
        'ops',
        [
          [
            '{{direction}} {{diagnostic}}',
            `sum by (direction, diagnostic) (${rate('pesit_transfer_errors_total')}) > 0`,
          ],
        ],
        'docs/diagnostics.md says what each one means and what to change.',
      ),
      line('Failures by peer', 'ops', [
        ['{{peer}}', `topk(10, sum by (peer) (${rate('pesit_peer_transfers_total', 'status="FAILED"')})) > 0`],
      ]),
      line('Restarts and sync points', 'ops', [
        ['restarts {{direction}}', `sum by (direction) (${rate('pesit_transfer_restarts_total')})`],
        ['points {{direction}}', `sum by (direction) (${rate('pesit_sync_points_total')})`],
      ]),
    ],
  },
  {
    title: 'Sessions and queue',
    height: 8,
    panels: [
      line('Open sessions', 'none', [['{{pod}}', `sum by (pod) (${of('pesit_sessions_open')})`]]),
      line('Refused sessions', 'ops', [
        ['{{diagnostic}}', `sum by (diagnostic) (${rate('pesit_sessions_refused_total')}) > 0`],
      ]),
      line('Queue', 'none', [['{{state}}', `max by (state) (${of('pesit_queue_depth')})`]]),
      line('Another attempt follows', 'ops', [
        ['{{reason}}', `sum by (reason) (${rate('pesit_transfer_retries_total')})`],
      ]),
      line(
        'Wait in the queue',
        's',
        [
          ['p50', quantile(0.5, 'pesit_queue_wait_seconds')],
          ['p95', quantile(0.95, 'pesit_queue_wait_seconds')],
        ],
        'From when a transfer was due to the begin of its attempt.',
      ),
      line('Remote servers', 'none', [['{{status}}', `max by (status) (${of('pesit_remote_servers')})`]]),
      line('Failed logins', 'ops', [['{{result}}', `sum by (result) (${rate('pesit_login_failures_total')})`]]),
    ],
  },
  {
    title: 'Pods',
    height: 8,
    panels: [
      line('Listeners', 'none', [['{{status}}', `sum by (status) (${of('pesit_listeners')})`]]),
      line('Pods and leaders', 'none', [
        ['pods {{service}}', `max by (service) (${of('pesit_cluster_pods')})`],
        ['leaders {{service}}', `sum by (service) (${of('pesit_cluster_leader')})`],
      ]),
      line('Database and Redis', 'none', [
        ['database {{pod}}', of('pesit_database_up')],
        ['Redis {{pod}}', of('pesit_redis_up')],
      ]),
      line(
        'Connections to the database',
        'none',
        [
          ['{{state}} {{pod}}', `sum by (pod, state) (${of('pesit_database_connections')})`],
          ['waiting {{pod}}', `sum by (pod) (${of('pesit_database_waiting')})`],
        ],
        'Statements that wait for a connection: raise database.pool-max, or look for what is slow.',
      ),
      line('Processor', 'percentunit', [['{{pod}}', `sum by (pod) (${rate('process_cpu_seconds_total')})`]]),
      line('Memory', 'bytes', [['{{pod}}', `sum by (pod) (${of('process_resident_memory_bytes')})`]]),
      line('Event loop, p99', 's', [['{{pod}}', `max by (pod) (${of('nodejs_eventloop_lag_p99_seconds')})`]]),
      line('Open files', 'none', [['{{pod}}', `max by (pod) (${of('process_open_fds')})`]]),
      line(
        'Flushes, p95',
        's',
        [['{{pod}}', quantile(0.95, 'pesit_flush_duration_seconds', 'pod')]],
        'How long the volume takes to make received data stable. Runbook: PesitStorageSlow.',
      ),
      line(
        'Acknowledgements, p95',
        's',
        [['{{of}} {{pod}}', quantile(0.95, 'pesit_acknowledgement_seconds', 'of, pod')]],
        'How long partners wait for the answer to a SYN or a TRANS.END.',
      ),
      line('Circuits that are open', 'none', [['open', `max(${of('pesit_remote_servers_circuit_open')})`]]),
      line('Audit entries', 'ops', [['{{outcome}}', `sum by (outcome) (${rate('pesit_audit_entries_total')})`]]),
      line('Free space', 'bytes', [['{{pod}}', `min by (pod) (${of('pesit_storage_free_bytes')})`]]),
    ],
  },
];

const WIDTH = 24;

const panelOf = ({ kind, title, unit, targets, steps, description }, id, gridPos) => ({
  ...{ id, type: kind, title, gridPos, datasource: SOURCE },
  ...(description === undefined ? {} : { description }),
  targets: targets.map(([legendFormat, expr], index) => ({
    ...{ refId: String.fromCharCode(65 + index), datasource: SOURCE, expr },
    ...(legendFormat === '' ? {} : { legendFormat }),
  })),
  fieldConfig: {
    defaults: {
      unit,
      ...(steps === undefined
        ? { min: 0, custom: { fillOpacity: 10, lineWidth: 1, showPoints: 'never' } }
        : { thresholds: { mode: 'absolute', steps } }),
    },
    overrides: [],
  },
  options:
    kind === 'stat'
      ? { colorMode: 'value', graphMode: 'area', reduceOptions: { calcs: ['lastNotNull'] } }
      : { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
});

const layOut = () => {
  const panels = [];
  let y = 0;
  for (const { title, height, panels: inside } of ROWS) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: WIDTH, h: 1 },
    });
    y += 1;
    const w = height < 6 ? WIDTH / 8 : WIDTH / 3;
    inside.forEach((panel, index) => {
      const across = WIDTH / w;
      const place = { x: (index % across) * w, y: y + Math.floor(index / across) * height, w, h: height };
      panels.push(panelOf(panel, panels.length + 1, place));
    });
    y += Math.ceil(inside.length / (WIDTH / w)) * height;
  }
  return panels;
};

const choice = (name, label, query) => ({
  ...{ name, label, type: 'query', datasource: SOURCE, includeAll: true, multi: true, refresh: 2, sort: 1 },
  ...{
    query: { query, refId: name },
    definition: query,
    current: { selected: true, text: ['All'], value: ['$__all'] },
  },
});

/** deploy/observability/dashboard.json */
export const dashboardJson = () =>
  `${JSON.stringify(
    {
      ...{ uid: 'pesit-node', title: 'PeSIT Node', tags: ['pesit'], schemaVersion: 39, version: 1, editable: true },
      ...{ timezone: 'browser', refresh: '30s', time: { from: 'now-6h', to: 'now' }, graphTooltip: 1 },
      annotations: { list: [] },
      templating: {
        list: [
          { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus', current: {}, hide: 0 },
          choice('namespace', 'Namespace', 'label_values(service_build_info, namespace)'),
          choice('service', 'Service', 'label_values(service_build_info{namespace=~"$namespace"}, service)'),
        ],
      },
      panels: layOut(),
    },
    undefined,
    2,
  )}\n`;
