/** The picture of the house: which room imports which, read off the imports themselves. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './process.mjs';

/** Contents of a room, in the order in which the picture shows them. */
const ROOMS = {
  'apps/server': 'listeners, partners, virtual files,<br/>inbound history',
  'apps/client': 'remote servers, queue,<br/>outbound history',
  'packages/cli': 'the command line pesit',
  'packages/console': 'the pages of the web console',
  'packages/net': 'sockets, dialects, data pumps',
  'packages/storage': 'staged files, delivery, record formats, names',
  'packages/transfers': 'what a transfer is, what an ending means for it',
  'packages/hooks': 'who is told of outcomes: webhooks, executables',
  'packages/license': 'license text, evaluation clock, the 402 gate, limits',
  'packages/certificates': 'keystores, truststores, the local CA',
  'packages/cluster': 'who runs, events between pods, Redis',
  'packages/service': 'configuration, database, REST, login, health,<br/>periodic work, shutdown',
  'packages/ground': 'waiting at most, what was thrown, who a process is',
  'packages/protocol': 'PeSIT E without I/O',
};

const roomOf = (path) => /^(?:packages|apps)\/[^/]+/.exec(path)?.[0];
const idOf = (room) => room.split('/')[1];

/** Pairs `[from, to]` of rooms, each once. @throws when a room has no words above */
export function arrowsBetweenRooms() {
  const cruiser = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const args = [cruiser, 'packages', 'apps', '--config', '.dependency-cruiser.mjs', '--output-type', 'json'];
  // It exits with the number of violations, which are the business of `npm run arrows`.
  const { stdout, error } = spawnSync(process.execPath, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error !== undefined) throw error;
  const { modules } = JSON.parse(stdout);
  const arrows = new Set();
  for (const { source, dependencies } of modules) {
    const from = roomOf(source);
    for (const { resolved } of dependencies) {
      const to = roomOf(resolved);
      if (from !== undefined && to !== undefined && from !== to) arrows.add(`${from} ${to}`);
    }
  }
  const pairs = [...arrows].sort().map((pair) => pair.split(' '));
  const unknown = pairs.flat().filter((room) => !(room in ROOMS));
  if (unknown.length > 0) throw new Error(`scripts/lib/house.mjs has no words for ${[...new Set(unknown)].join(', ')}`);
  return pairs;
}

/** The picture as Mermaid. */
export function houseDiagram() {
  const pairs = arrowsBetweenRooms();
  const box = (room) => `    ${idOf(room)}["${room}<br/>${ROOMS[room]}"]`;
  const floor = (name) => [
    `  subgraph ${name}`,
    ...Object.keys(ROOMS)
      .filter((room) => room.startsWith(name))
      .map(box),
    '  end',
  ];
  const arrows = Object.keys(ROOMS).flatMap((room) => {
    const targets = pairs.filter(([from]) => from === room).map(([, to]) => idOf(to));
    return targets.length === 0 ? [] : [`  ${idOf(room)} --> ${targets.join(' & ')}`];
  });
  return ['```mermaid', 'flowchart TD', ...floor('apps'), ...floor('packages'), ...arrows, '```'].join('\n');
}
