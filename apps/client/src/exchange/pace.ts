import type { Pace, Rates } from '@pesit-node/net';

import type { Job } from '../transfers/row.js';

/** The limit of a transfer, for an attempt that begins; undefined: there is none. */
export const paceOf = ({ server: { id, max_bytes_per_second: bytesPerSecond } }: Job, rates: Rates): Pace | undefined =>
  rates.pace([{ name: `remote server ${id}`, bytesPerSecond }]);
