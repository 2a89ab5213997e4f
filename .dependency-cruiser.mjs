/**
 * The arrows of the house (docs/architecture.md): who may import whom. `npm run arrows` refuses circles and arrows upwards;
 * `npm run docs` draws the picture from the same imports.
 *
 * A room is a folder of `packages` or `apps`. To add one, give it a row here: whatever is not listed is not allowed.
 */
const ROOMS = {
  ground: [],
  protocol: [],
  net: ['ground', 'protocol'],
  storage: ['ground', 'protocol'],
  service: ['ground'],
  transfers: ['ground', 'protocol', 'service', 'storage'],
  hooks: ['ground', 'service', 'transfers'],
  cluster: ['ground', 'service'],
  license: ['cluster', 'ground', 'service'],
  certificates: ['ground', 'service'],
  console: [],
  cli: ['ground', 'net', 'protocol', 'storage', 'transfers'],
};

const source = (room) => `^packages/${room}/src`;
const everyRoom = Object.keys(ROOMS);

/** Folders of the console's browser half. */
const LAYERS = {
  api: [],
  texts: [],
  style: [],
  parts: ['api', 'texts', 'style'],
  pages: ['parts', 'api', 'texts', 'style'],
};
const inBrowser = (layer) => `^packages/console/web/${layer}/`;

const arrows = everyRoom.map((room) => ({
  name: `${room}-imports-only-${['node', ...ROOMS[room]].join('-')}`,
  comment: `packages/${room} may import ${ROOMS[room].join(', ') || 'no room of the house'} (docs/architecture.md)`,
  severity: 'error',
  from: { path: source(room) },
  to: { path: '^(packages|apps|bench|torture)/', pathNot: [room, ...ROOMS[room]].map(source) },
}));

export default {
  forbidden: [
    {
      name: 'no-circle',
      comment:
        'Files that import each other in a circle cannot be read, tested or moved one at a time; a type counts too.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    ...arrows,
    ...Object.entries(LAYERS).map(([layer, behind]) => ({
      name: `console-${layer}-import-only-${behind.join('-') || 'themselves'}`,
      comment: 'The browser half of the console: app, pages, parts, and behind them requests and words.',
      severity: 'error',
      from: { path: inBrowser(layer) },
      to: { path: '^packages/console/web/', pathNot: [layer, ...behind].map(inBrowser) },
    })),
    {
      name: 'apps-never-import-each-other',
      comment: 'The apps are two processes with one database: what both need belongs into a package.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/src' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'only-the-bench-and-torture-look-into-apps',
      severity: 'error',
      comment: 'Packages never import apps.',
      from: { path: '^packages/' },
      to: { path: '^(apps|bench|torture|scripts)/' },
    },
    {
      name: 'rooms-are-entered-by-their-door',
      comment: 'Another room is imported by its name (@pesit-node/…), never by a path into its files.',
      severity: 'error',
      from: { path: '^(packages|apps)/([^/]+)/src' },
      to: {
        path: '^(packages|apps)/[^/]+/src',
        pathNot: ['^$1/$2/src', '^packages/[^/]+/src/(?:index|testing/index)\\.ts$'],
      },
    },
  ],
  options: {
    includeOnly: '^(packages|apps|bench|torture)/[^/]+/?[^/]*/?src|^(bench|torture)/src|^packages/console/web/',
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.test.json' },
    combinedDependencies: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['source'] },
  },
};
