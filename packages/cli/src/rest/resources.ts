/** The resources of the REST interface as the command line shows them: where they are, and which columns a list has. */
import type { App } from './profiles.js';

export interface Verb {
  readonly word: string;
  readonly summary: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Behind the path of one object; `:` begins a parameter of the path of the list. */
  readonly path: string;
}

export interface Resource {
  /** First word of its commands. */
  readonly word: string;
  /** One of them, with its article; and all. */
  readonly one: string;
  readonly all: string;
  /** Apps that have it, the preferred one first. */
  readonly apps: readonly App[];
  readonly path: string;
  /** The field that names one object in paths; undefined: there is only one. */
  readonly id?: string;
  readonly columns: readonly string[];
  /** One that is in use can be deleted with `force`. */
  readonly forced?: true;
  readonly verbs: readonly ('list' | 'show' | 'create' | 'update' | 'delete' | Verb)[];
}

const action = (word: string, summary: string): Verb => ({ word, summary, method: 'POST', path: `/${word}` });

export const RESOURCES: readonly Resource[] = [
  {
    ...{
      word: 'transfers',
      one: 'a transfer',
      all: 'transfers',
      apps: ['client', 'server'],
      path: '/api/v1/transfers',
      id: 'id',
    },
    columns: [
      'id',
      'startTime',
      'direction',
      'partnerId',
      'virtualFileId',
      'filename',
      'status',
      'bytesTransferred',
      'diagnostic',
    ],
    verbs: [
      ...(['list', 'show'] as const),
      action('retry', 'Tries a transfer of the client app again, from where it was cut off'),
      action('replay', 'Makes a new transfer of the same request (client app)'),
      action('release', 'Lets those go that wait for a failed one of their order (client app)'),
      action('cancel', 'Ends a transfer for good'),
    ],
  },
  {
    ...{
      word: 'servers',
      one: 'a remote server',
      all: 'remote servers',
      apps: ['client'],
      path: '/api/v1/servers',
      id: 'id',
    },
    forced: true,
    columns: ['id', 'name', 'host', 'port', 'serverId', 'enabled', 'status', 'lastContact'],
    verbs: [
      'list',
      'show',
      'create',
      'update',
      'delete',
      action('test', 'Opens a PeSIT session with it and releases it'),
      action('close-circuit', 'Lets its transfers go again, whatever contacts have failed'),
    ],
  },
  {
    ...{
      word: 'listeners',
      one: 'a listener',
      all: 'listeners',
      apps: ['server'],
      path: '/api/v1/servers',
      id: 'serverId',
    },
    forced: true,
    columns: ['serverId', 'port', 'tlsPort', 'wanted', 'status', 'activeConnections', 'statusReason'],
    verbs: [
      ...(['list', 'show', 'create', 'update', 'delete'] as const),
      action('start', 'Starts it on every pod'),
      action('stop', 'Stops it on every pod'),
      action('restart', 'Gives its port up and takes it again'),
    ],
  },
  {
    ...{
      word: 'partners',
      one: 'a partner',
      all: 'partners',
      apps: ['server'],
      path: '/api/v1/config/partners',
      id: 'partnerId',
    },
    forced: true,
    columns: ['partnerId', 'name', 'enabled', 'accessType', 'lastConnection', 'transferCount'],
    verbs: ['list', 'show', 'create', 'update', 'delete'],
  },
  {
    ...{
      word: 'files',
      one: 'a virtual file',
      all: 'virtual files',
      apps: ['server'],
      path: '/api/v1/config/files',
      id: 'fileId',
    },
    forced: true,
    columns: ['fileId', 'name', 'direction', 'enabled', 'receiveDirectory', 'sendDirectory'],
    verbs: ['list', 'show', 'create', 'update', 'delete'],
  },
  {
    ...{
      word: 'keystores',
      one: 'a keystore',
      all: 'keystores',
      apps: ['server', 'client'],
      path: '/api/v1/certificates/keystores',
      id: 'name',
    },
    columns: ['name', 'daysRemaining', 'usedBy'],
    verbs: ['list', 'show', 'delete'],
  },
  {
    ...{
      word: 'truststores',
      one: 'a truststore',
      all: 'truststores',
      apps: ['server', 'client'],
      path: '/api/v1/certificates/truststores',
      id: 'name',
    },
    columns: ['name', 'daysRemaining', 'usedBy'],
    verbs: ['list', 'show', 'delete'],
  },
  {
    ...{
      word: 'audit',
      one: 'an audit entry',
      all: 'audit entries',
      apps: ['server', 'client'],
      path: '/api/v1/audit',
    },
    columns: ['time', 'actor', 'address', 'action', 'objectType', 'object', 'node'],
    verbs: ['list'],
  },
];
