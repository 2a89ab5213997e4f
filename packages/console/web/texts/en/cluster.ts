export const cluster = {
  pod: 'Pod',
  pods: 'Pods',
  state: 'State',
  version: 'Version',
  sessions: 'Sessions',
  running: 'Transfers',
  address: 'Address',
  started: 'Started',
  ready: 'ready',
  unknown: 'not told yet',
  facts: 'The cluster',
  name: 'Name',
  leader: 'Leads',
  redis: 'Redis',
  connected: 'connected',
  redisAway: (since: string) =>
    `Redis has been away since ${since}: no other pod is known, and nobody leads until it is back.`,
  single: 'This service runs as a single pod: cluster.enabled is off. The other app is not shown.',
  versions: (list: string) =>
    `The pods run different versions: ${list}. An update is under way, or was left half done.`,
  drain:
    'A pod is drained by ending it: send it SIGTERM, or let the orchestrator do so. It is not ready from then on, its running transfers end within shutdown.drain-timeout, the others continue on another pod.',
} as const;
