import { PesitRequester } from '@pesit-node/net';
import { explain, PesitError } from '@pesit-node/protocol';
import { isDatabaseUnavailable, notFound } from '@pesit-node/service';
import type { Config, EventStream } from '@pesit-node/service';
import { errorCodeOf, negotiatedOf, tenths, testedTls, toPesitError } from '@pesit-node/transfers';
import type { TestFailed, TestSucceeded } from '@pesit-node/transfers';

import { virtualFileFor } from '../admission/access.js';
import type { ListenerTls } from '../certificates/listener-tls.js';
import { PARTNER_TESTED } from '../exchange/events.js';
import type { ListenersHere } from '../listeners/listeners-here.js';
import type { ListenerService } from '../listeners/service.js';
import type { Operation, PartnerRow, PartnerStanding } from '../partners/fields.js';
import type { PartnerStore } from '../partners/store.js';
import type { VirtualFileStore } from '../virtual-files/store.js';
import { notTried, trialDoor } from './doors.js';
import type { Trials } from './trials.js';

export interface PartnerTestQuestion {
  readonly password: string;
  readonly serverId: string;
  readonly virtualFile?: string | undefined;
}

interface Permission {
  readonly allowed: boolean;
  readonly diagnostic: string | null;
  readonly message: string | null;
}

interface Tried {
  /** Sentences: how the partner itself may fare otherwise. */
  readonly notTried: readonly string[];
}

interface Permissions {
  readonly virtualFile: { readonly fileId: string; readonly write: Permission; readonly read: Permission } | null;
}

export type PartnerTest = (TestSucceeded & Tried & Permissions) | (TestFailed & Tried);

export type TestPartner = (partnerId: string, question: PartnerTestQuestion) => Promise<PartnerTest>;

export interface PartnerTestsDeps {
  readonly config: Pick<
    Config<'server'>,
    'access.default' | 'listener.host' | 'transfer.sync-point-interval' | 'transfer.sync-window'
  >;
  readonly partners: Pick<PartnerStore, 'get'>;
  readonly virtualFiles: Pick<VirtualFileStore, 'access'>;
  readonly listeners: Pick<ListenerService, 'get'>;
  readonly listenersHere: Pick<ListenersHere, 'get' | 'line'>;
  readonly tls: Pick<ListenerTls, 'toItself'>;
  readonly trials: Trials;
  readonly events: EventStream;
}

/** For the connection, for the answer to CONNECT, and for the end: milliseconds each. */
const ANSWER_MS = 10_000;
/** PI 22: both. */
const ACCESS_BOTH = 2;

/** Tries logins of partners: a session from this process with a listener that it runs, as that partner. */
export const partnerTests = (deps: PartnerTestsDeps): TestPartner => {
  const { config, partners, listeners, listenersHere, tls, trials, events } = deps;

  const runningHere = (serverId: string) => {
    const here = listenersHere.get(serverId);
    if (here?.isRunning === true) return here.settings;
    const { status, statusReason } = listenersHere.line(serverId);
    const why = statusReason === null ? status : `${status}: ${statusReason}`;
    throw new PesitError(
      `the listener ${serverId} does not run on this pod (${why}): start it, or ask a pod that runs it`,
      { fault: 'transport', diagnostic: '3-310' },
    );
  };

  /** Why a partner whose login is right would be refused for now. */
  const full = async (partnerId: string, serverId: string): Promise<PesitError | undefined> => {
    const { sessions, row } = await listeners.get(serverId);
    if (sessions < row.max_connections) return undefined;
    return new PesitError(
      `the listener ${serverId} is full, though the login of ${partnerId} is right: ${sessions} of ${row.max_connections} places are taken, on all pods together; raise its maxConnections, or let ${partnerId} wait`,
      { fault: 'refused', diagnostic: '3-309' },
    );
  };

  const permission = async (partner: PartnerRow, operation: Operation, fileId: string): Promise<Permission> => {
    const stands = (now: PartnerStanding | undefined): PartnerStanding => now ?? partner;
    try {
      await virtualFileFor({ partner, stands }, { ...deps, config }, operation, fileId, 0);
      return { allowed: true, diagnostic: null, message: null };
    } catch (error) {
      if (!(error instanceof PesitError) || error.condition === 'database away') throw error;
      return { allowed: false, diagnostic: error.diagnostic, message: error.message };
    }
  };

  const permissions = async (partner: PartnerRow, fileId: string) => ({
    fileId,
    write: await permission(partner, 'WRITE', fileId),
    read: await permission(partner, 'READ', fileId),
  });

  return async (partnerId, { password, serverId, virtualFile }) => {
    const partner = await partners.get(partnerId);
    if (partner === undefined) throw notFound('Partner', partnerId, '/api/v1/config/partners');
    await listeners.get(serverId);
    const trial = trials.begin(partnerId);
    const began = performance.now();
    const latency = (): number => tenths(performance.now() - began);
    let isTls = false;
    const left = (): readonly string[] => notTried(partner, serverId, isTls);
    const tell = (ms: number, error: PesitError | undefined): void => {
      events.publish(PARTNER_TESTED, { partnerId, listener: serverId, latency: ms, error });
    };
    try {
      const listener = runningHere(serverId);
      const door = trialDoor(partner, listener, config['listener.host']);
      ({ isTls } = door);
      const { host, port } = door;
      const session = await PesitRequester.open({
        ...{ host, port, connectTimeout: ANSWER_MS, timers: { response: ANSWER_MS, write: ANSWER_MS } },
        dialect: listener.tcpip_header === 'auto' ? (partner.seen.dialect ?? 'length-prefixed') : listener.tcpip_header,
        ...(isTls ? { transport: tls.toItself(listener) } : {}),
        connect: {
          ...{ requester: partnerId, server: serverId, password, accessType: ACCESS_BOTH },
          freeMessage: trial.freeMessage,
          syncPoints: { intervalKb: config['transfer.sync-point-interval'], window: config['transfer.sync-window'] },
        },
      });
      const answered = latency();
      const { terms, roundTripMs, security, advice = null } = session;
      await session.release();
      trial.refused = await full(partnerId, serverId);
      if (trial.refused !== undefined) throw trial.refused;
      const file = virtualFile === undefined ? null : await permissions(partner, virtualFile);
      tell(answered, undefined);
      return {
        success: true,
        latency: answered,
        serverVersion: terms.version,
        message: `${serverId} accepted a session of ${partnerId} on ${isTls ? 'its TLS port' : 'port'} ${port}`,
        negotiated: negotiatedOf(terms),
        roundTrip: tenths(roundTripMs),
        advice,
        tls: testedTls(security),
        notTried: left(),
        virtualFile: file,
      };
    } catch (thrown) {
      if (isDatabaseUnavailable(thrown)) throw thrown;
      const heard = toPesitError(thrown);
      const { refused } = trial;
      const error = refused ?? heard;
      const { diagnostic } = error;
      tell(latency(), error);
      const message = refused === undefined ? explain(heard) : refused.message;
      const errorCode = errorCodeOf(heard, 'connecting');
      return { success: false, latency: latency(), errorCode, diagnostic, message, notTried: left() };
    } finally {
      trials.end(trial);
    }
  };
};
