import { podLabel } from './kinds.js';
import { key } from './row.js';

/** Who this pod is: rows of `CONFIG_KEYS`. */
export const POD_KEYS = {
  'pod.name': key('both', {
    type: podLabel(0),
    default: '',
    description: 'Name of this pod in records and in the status of the cluster. Empty = the name of the machine.',
  }),
  'pod.namespace': key('both', {
    type: podLabel(1),
    default: 'default',
    description: 'Namespace of this pod: pods of one name in two namespaces are two pods.',
  }),
} as const;
