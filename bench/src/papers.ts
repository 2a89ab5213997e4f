import { TestCa } from '@pesit-node/net/testing/certificates';

/** One certificate for both sides, and the CA that issued it. PEM. */
export interface Papers {
  readonly certificate: string;
  readonly privateKey: string;
  readonly ca: string;
}

export const issuePapers = async (): Promise<Papers> => {
  const ca = await TestCa.create('Bench CA');
  const { certificateChain: certificate, privateKey } = await ca.issue('bench');
  return { certificate, privateKey, ca: ca.certificate };
};
