import { TestCa } from '@pesit-node/net/testing/certificates';
import type { ProxyIdentity } from './proxy.js';

/** PEM. */
export interface Paper {
  readonly certificate: string;
  readonly privateKey: string;
}

/** Certificates for everybody on a stage, of one CA. */
export interface Papers {
  /** PEM. */
  readonly ca: string;
  readonly server: Paper;
  readonly client: Paper;
  readonly proxy: ProxyIdentity;
}

export const issuePapers = async (): Promise<Papers> => {
  const ca = await TestCa.create('Torture CA');
  const paper = async (name: string): Promise<Paper> => {
    const { certificateChain: certificate, privateKey } = await ca.issue(name);
    return { certificate, privateKey };
  };
  return {
    ca: ca.certificate,
    server: await paper('server'),
    client: await paper('client'),
    proxy: { ...(await paper('proxy')), ca: ca.certificate },
  };
};
