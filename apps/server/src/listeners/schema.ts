import { readOnly, timestamp } from '@pesit-node/service';
import { z } from 'zod';

import { serverId } from '../schemas.js';
import { path } from '../virtual-files/schema.js';
import { LISTENER_STATUSES } from './running.js';

export const TCPIP_HEADERS = ['auto', 'length-prefixed', 'raw'] as const;
export type TcpipHeader = (typeof TCPIP_HEADERS)[number];

/** `true` and `false` are the specification's names of the last two. */
const tcpipHeader = () =>
  z
    .union(
      [z.enum(TCPIP_HEADERS), z.boolean().transform((prefixed): TcpipHeader => (prefixed ? 'length-prefixed' : 'raw'))],
      `expected ${TCPIP_HEADERS.join(', ')}, true or false`,
    )
    .optional();

const fields = {
  port: z.int().min(1).max(65_535).optional(),
  tlsPort: z.int().min(1).max(65_535).nullish(),
  sslEnabled: z.boolean().nullish(),
  sslClientAuth: z.union([z.boolean(), z.string().max(20)]).nullish(),
  autoStart: z.boolean().optional().meta({ description: 'Started with the service; default true.' }),
  maxConnections: z.int().min(1).max(10_000).optional(),
  readTimeout: z
    .int()
    .min(1000, 'expected 1000 or more (milliseconds)')
    .max(86_400_000)
    .optional()
    .meta({ description: 'Milliseconds.' }),
  receiveDirectory: path().nullish(),
  sendDirectory: path().nullish(),
  strictServerId: z
    .boolean()
    .optional()
    .meta({ description: 'Partners that call another server identifier (PI 4) are refused.' }),
  tcpipHeader: tcpipHeader(),
  maxEntitySize: z.int().min(256).max(65_535).nullish(),
  syncInterval: z.int().min(0).max(65_535).nullish().meta({ description: 'KB; 0 = no sync points.' }),
  syncWindow: z.int().min(0).max(255).nullish().meta({ description: '0 = sync points are not acknowledged.' }),
  status: readOnly(),
  statusReason: readOnly(),
  nextAttemptAt: readOnly(),
  activeConnections: readOnly(),
  refusedConnections: readOnly(),
  totalTransfers: readOnly(),
  uptime: readOnly(),
};

export const createListener = z.strictObject({ serverId: serverId(), ...fields }).meta({ id: 'CreateListener' });
export const updateListener = z
  .strictObject({ serverId: serverId().optional(), ...fields })
  .meta({ id: 'UpdateListener', description: 'Absent fields stay as they are.' });

/** What a listener does at the moment, in answers. */
export const listenerStatus = z
  .object({
    serverId: z.string(),
    status: z.enum(LISTENER_STATUSES),
    statusReason: z.string().nullable(),
    nextAttemptAt: timestamp().nullable().meta({ description: 'When a FAILED listener is tried again.' }),
    port: z.int(),
    tlsPort: z.int().nullable(),
    activeConnections: z.int(),
    refusedConnections: z.int().meta({ description: 'Turned away since the start of the service.' }),
    totalTransfers: z.int().meta({ description: 'Completed on it, ever.' }),
    uptime: z.int().meta({ description: 'Seconds.' }),
  })
  .meta({ id: 'ListenerStatus' });

export const listenerOutcome = listenerStatus.extend({ message: z.string() }).meta({ id: 'ListenerOutcome' });

export const listenerAnswer = listenerStatus
  .extend({
    sslEnabled: z.boolean(),
    sslClientAuth: z.boolean(),
    autoStart: z.boolean(),
    maxConnections: z.int(),
    readTimeout: z.int().meta({ description: 'Milliseconds.' }),
    receiveDirectory: z.string().nullable(),
    sendDirectory: z.string().nullable(),
    strictServerId: z.boolean(),
    tcpipHeader: z.enum(TCPIP_HEADERS),
    maxEntitySize: z.int(),
    syncInterval: z.int().meta({ description: 'KB; 0 = no sync points.' }),
    syncWindow: z.int(),
  })
  .meta({ id: 'Listener' });

export type UpdateListener = z.output<typeof updateListener>;
