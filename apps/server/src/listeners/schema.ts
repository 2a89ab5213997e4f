import { z } from 'zod';

import { readOnly, serverId } from '../schemas.js';
import { path } from '../virtual-files/schema.js';

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
  autoStart: z.boolean().optional(),
  maxConnections: z.int().min(1).max(10_000).optional(),
  readTimeout: z.int().min(1000, 'expected 1000 or more (milliseconds)').max(86_400_000).optional(),
  receiveDirectory: path().nullish(),
  sendDirectory: path().nullish(),
  strictServerId: z.boolean().optional(),
  tcpipHeader: tcpipHeader(),
  maxEntitySize: z.int().min(256).max(65_535).nullish(),
  syncInterval: z.int().min(0).max(65_535).nullish(),
  syncWindow: z.int().min(0).max(255).nullish(),
  status: readOnly(),
  statusReason: readOnly(),
  activeConnections: readOnly(),
  totalTransfers: readOnly(),
  uptime: readOnly(),
};

export const createListener = z.strictObject({ serverId: serverId(), ...fields });
export const updateListener = z.strictObject({ serverId: serverId().optional(), ...fields });

export type UpdateListener = z.output<typeof updateListener>;
