/** TLS sessions that are opened and released without a file: what a listener takes a second. This process asks for them. */
import { PesitRequester, TlsClientTerms, connectTls } from '@pesit-node/net';
import type { Papers } from './papers.js';

export interface SessionTarget {
  readonly port: number;
  /** PI 3, PI 4 and PI 5. */
  readonly requester: string;
  readonly server: string;
  readonly password: string;
  readonly papers: Papers;
}

/** Sessions that are open at a time. */
const AT_ONCE = 8;
const TIMEOUT_MS = 60_000;

/**
 * Opens sessions, from the connection to RELCONF, each on a connection of its own.
 * @param resumes all but the first few take up the TLS session of an earlier one again; otherwise each handshake is a whole one
 * @throws Error when TLS did not do as it was told
 */
export const openSessions = async (target: SessionTarget, count: number, resumes: boolean): Promise<void> => {
  const { port, requester, server, password, papers } = target;
  const terms = new TlsClientTerms({
    identity: { certificateChain: papers.certificate, privateKey: papers.privateKey },
    trust: { certificates: [papers.ca] },
    serverName: 'localhost',
    sessionCacheSize: resumes ? 1 : 0,
  });
  let [left, resumed] = [count, 0];
  const one = async (): Promise<void> => {
    const session = await PesitRequester.open({
      ...{ host: '127.0.0.1', port, dialect: 'length-prefixed', connectTimeout: TIMEOUT_MS },
      transport: connectTls(() => terms),
      connect: { requester, server, password, accessType: 2 },
    });
    if (session.security?.resumed === true) resumed++;
    await session.release();
  };
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left--;
      await one();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const expected = resumes ? count - AT_ONCE : 0;
  if (resumes ? resumed < expected : resumed > 0) {
    throw new Error(
      `${count} TLS sessions: ${resumed} were resumed, expected ${resumes ? 'at least ' : ''}${expected}`,
    );
  }
};
