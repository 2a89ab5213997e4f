/** The answer to who tries a login (`…/test` of both apps): one shape for sessions with remote servers and for those as a partner. */
import type { ConnectionTerms } from '@pesit-node/protocol';
import { timestamp } from '@pesit-node/service';
import { z } from 'zod';

import type { TransferErrorCode } from './outcome.js';

const milliseconds = () => z.number().meta({ description: 'Milliseconds.' });

/** Terms of a session. */
export const negotiated = z
  .object({
    dialect: z.enum(['length-prefixed', 'raw']),
    version: z.int().meta({ description: 'PI 6: 1 = D, 2 = E.' }),
    syncInterval: z.int().meta({ description: 'KB; 0 = no sync points.' }),
    syncWindow: z.int(),
    accessType: z.int().meta({ description: 'PI 22: 0 write, 1 read, 2 both.' }),
    crc: z.boolean(),
    resync: z.boolean(),
  })
  .meta({ id: 'Negotiated' });

export type Negotiated = Readonly<z.output<typeof negotiated>>;

/** Terms as the interface shows them. */
export const negotiatedOf = (terms: ConnectionTerms): Negotiated => {
  const { dialect, version, syncInterval, syncWindow, accessType, crc, resynchronisation: resync } = terms;
  return { dialect, version, syncInterval: syncInterval / 1024, syncWindow, accessType, crc, resync };
};

/** A test that came through. */
export const testSucceeded = z.object({
  success: z.literal(true),
  latency: milliseconds(),
  serverVersion: z.int().meta({ description: 'PI 6 of the answer: 1 = D, 2 = E.' }),
  message: z.string(),
  negotiated,
  roundTrip: milliseconds(),
  tls: z
    .object({
      protocol: z.string().meta({ description: 'e.g. TLSv1.3' }),
      cipher: z.string(),
      certificate: z
        .object({
          ...{ subject: z.string(), issuer: z.string(), serial: z.string(), san: z.array(z.string()) },
          ...{ notBefore: timestamp(), notAfter: timestamp(), fingerprint: z.string() },
        })
        .nullable(),
      daysRemaining: z.int().nullable().meta({ description: 'Until the certificate ends.' }),
    })
    .nullable()
    .meta({ description: 'Facts that TLS has found out; null: the connection is plain.' }),
  advice: z.string().nullable().meta({ description: 'Which sync points to ask the partner for.' }),
});

/** A test that did not. */
export const testFailed = z.object({
  success: z.literal(false),
  latency: milliseconds(),
  errorCode: z.string(),
  diagnostic: z.string(),
  message: z.string(),
});

/** Outcome of a connection test. */
export const connectionTest = z.union([testSucceeded, testFailed]).meta({ id: 'ConnectionTest' });

export interface TestedTls {
  readonly protocol: string;
  readonly cipher: string;
  /** null: the server showed none. */
  readonly certificate: {
    readonly subject: string;
    readonly issuer: string;
    readonly serial: string;
    readonly san: readonly string[];
    readonly notBefore: string;
    readonly notAfter: string;
    readonly fingerprint: string;
  } | null;
  /** Whole days until the certificate ends; negative: since then. */
  readonly daysRemaining: number | null;
}

/** A session that was opened and released. Times in milliseconds, `syncInterval` in KB. */
export interface TestSucceeded {
  readonly success: true;
  readonly latency: number;
  /** PI 6 of the answer: 1 = D, 2 = E. */
  readonly serverVersion: number;
  readonly message: string;
  readonly negotiated: Negotiated;
  /** Round trip of the line alone. */
  readonly roundTrip: number;
  /** Which sync points to ask the partner for; null where those negotiated let the line be filled. */
  readonly advice: string | null;
  /** null: the connection is plain. */
  readonly tls: TestedTls | null;
}

/** One that could not be opened. */
export interface TestFailed {
  readonly success: false;
  readonly latency: number;
  readonly errorCode: TransferErrorCode;
  readonly diagnostic: string;
  readonly message: string;
}

/** Facts that TLS has found out, as `packages/net` has them. */
interface Security {
  readonly protocol: string;
  readonly cipher: string;
  readonly peerCertificate?:
    | {
        readonly subject: string;
        readonly issuer: string;
        readonly serial: string;
        readonly subjectAltNames: readonly string[];
        readonly notBefore: Date;
        readonly notAfter: Date;
        readonly fingerprint: string;
      }
    | undefined;
}

const DAY_MS = 86_400_000;

/** @returns null: the connection is plain */
export const testedTls = (security: Security | undefined): TestedTls | null => {
  if (security === undefined) return null;
  const { protocol, cipher, peerCertificate } = security;
  if (peerCertificate === undefined) return { protocol, cipher, certificate: null, daysRemaining: null };
  const { subject, issuer, serial, subjectAltNames: san, notBefore, notAfter, fingerprint } = peerCertificate;
  const dates = { notBefore: notBefore.toISOString(), notAfter: notAfter.toISOString() };
  const daysRemaining = Math.floor((notAfter.getTime() - Date.now()) / DAY_MS);
  return { protocol, cipher, certificate: { subject, issuer, serial, san, ...dates, fingerprint }, daysRemaining };
};

/** Milliseconds, to a tenth. */
export const tenths = (ms: number): number => Math.round(ms * 10) / 10;
