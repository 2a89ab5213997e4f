import type { ServerConnection } from '@pesit-node/net';
import { keptBytes, readable } from '@pesit-node/protocol';
import type { Parameters } from '@pesit-node/protocol';
import { attemptTermsOf, compressionName } from '@pesit-node/transfers';
import type { AttemptTerms, Direction, ObservedSession } from '@pesit-node/transfers';

import type { ListenerRow } from '../listeners/fields.js';
import type { PartnerRow, PartnerStanding } from '../partners/fields.js';
import type { TransferStart } from '../transfers/record.js';
import { askedFile } from '../files/names.js';
import type { Observing } from './parts.js';

/** A partner that has proven who it is, in its session. */
export interface ProvenPartner {
  /** As it was when the session began. */
  readonly listener: ListenerRow;
  readonly partner: PartnerRow;
  readonly session: Pick<
    ServerConnection,
    'id' | 'remoteAddress' | 'terms' | 'fileTerms' | 'askedCompression' | 'totals'
  >;
  /** PI 7 and PI 23 of its CONNECT, and no more of it: the session lives for days, and PI 5 is a secret. */
  readonly asked: {
    readonly syncPoints: Parameters['syncPoints'];
    readonly resynchronisation: Parameters['resynchronisation'];
  };
  /**
   * To be called with the partner as it is now, wherever that was read.
   * @throws PesitError 3-304 or 3-322 when the session has to end for what has changed
   */
  readonly stands: (now: PartnerStanding | undefined) => PartnerStanding;
  readonly events: Observing['events'];
  /** The session as its events name it. */
  readonly observed: ObservedSession;
}

/** The record of a request, from its parameters; what a peer put there is made readable. */
export const startOf = (
  { partner, listener, session }: ProvenPartner,
  direction: Direction,
  parameters: Parameters,
): TransferStart => {
  const label = parameters.logicalAttributes?.fileLabel;
  const creationDate = parameters.historicalAttributes?.creationDate;
  const { originalSender, finalReceiver } = parameters;
  const { fileName = '' } = parameters.fileIdentifier ?? {};
  const { virtualFile, name } = direction === 'SEND' ? askedFile(fileName) : { virtualFile: fileName, name: undefined };
  return {
    partnerId: partner.partner_id,
    direction,
    virtualFileId: readable(virtualFile, 76),
    ...(name === undefined ? {} : { filename: readable(name, 76) }),
    transferId: parameters.transferId ?? 0,
    listener: listener.server_id,
    sessionId: session.id,
    remoteAddress: session.remoteAddress,
    ...(label === undefined ? {} : { label: readable(label, 512) }),
    ...(creationDate === undefined ? {} : { creationDate: readable(creationDate, 12) }),
    ...(parameters.freeMessage === undefined ? {} : { freeMessage: keptBytes(parameters.freeMessage) }),
    ...(originalSender === undefined ? {} : { originalSender: readable(originalSender, 24) }),
    ...(finalReceiver === undefined ? {} : { finalReceiver: readable(finalReceiver, 24) }),
  };
};

/** Terms of the attempt so far. @param asked PI 25 of its request; @param fromPoint where it continues */
export const termsOf = (
  { session, asked }: ProvenPartner,
  { maxEntitySize, fromPoint }: { readonly maxEntitySize: number | undefined; readonly fromPoint: number },
): AttemptTerms | undefined => {
  const { syncPoints, resynchronisation } = asked;
  return attemptTermsOf(
    session,
    {
      maxEntitySize: maxEntitySize ?? null,
      syncInterval: syncPoints?.intervalKb ?? null,
      syncWindow: syncPoints?.window ?? null,
      compression: session.askedCompression === undefined ? null : compressionName(session.askedCompression),
      resync: resynchronisation === undefined ? null : resynchronisation === 1,
    },
    fromPoint,
  );
};

/** PI 15. */
export const isRestart = ({ restarted, transferId = 0 }: Parameters): boolean => restarted === 1 && transferId > 0;
