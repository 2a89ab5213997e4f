import { timestamp } from '@pesit-node/service';
import { DIRECTIONS } from '@pesit-node/transfers';
import { z } from 'zod';

/** CONNECTING: its partner is not known yet. */
export const SESSION_STATES = ['CONNECTING', 'IDLE', 'TRANSFERRING'] as const;

/** A session of a partner, in answers. */
export const sessionAnswer = z
  .object({
    id: z.string(),
    partnerId: z.string().nullable(),
    remoteAddress: z.string(),
    dialect: z.string().nullable().meta({ description: 'How entities lie in the stream; null before CONNECT.' }),
    tls: z
      .object({ protocol: z.string(), cipher: z.string(), subject: z.string().nullable() })
      .nullable()
      .meta({ description: '`subject` of the certificate of the partner, if it showed one; null: the line is plain.' }),
    state: z.enum(SESSION_STATES),
    transfer: z
      .object({
        id: z.int(),
        direction: z.enum(DIRECTIONS),
        filename: z.string().nullable(),
        bytesTransferred: z.int(),
        syncPoint: z.int(),
      })
      .nullable(),
    since: timestamp(),
    pod: z.string(),
  })
  .meta({ id: 'Session' });

export type SessionView = z.output<typeof sessionAnswer>;

export const sessionList = z
  .object({
    sessions: z.array(sessionAnswer).meta({ description: 'Oldest first.' }),
    silentPods: z.array(z.string()).meta({ description: 'Pods that did not answer in time: theirs are missing.' }),
  })
  .meta({ id: 'SessionList' });
