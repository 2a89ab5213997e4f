/** What the tests find on the node beside the sample of `npm start`. Each other object belongs to the test that makes it. */
import { ask } from './node.js';
import type { StartedNode } from './node.js';

type Addresses = Omit<StartedNode, 'stop'>;

const PARTNER_PASSWORD = 'Slow4711';

/** A partner that sends, and the remote server by which the client app plays it: the same name in small letters. */
export const addPartner = async (node: Addresses, partnerId: string, settings: object = {}): Promise<void> => {
  await ask(node.server, '/api/v1/config/partners', {
    ...{ partnerId, password: PARTNER_PASSWORD, allowedOperations: ['WRITE'] },
    ...settings,
  });
  await ask(node.client, '/api/v1/servers', {
    ...{ name: partnerId.toLowerCase(), host: '127.0.0.1', port: node.pesitPort, serverId: 'SAMPLE' },
    ...{ clientId: partnerId, password: PARTNER_PASSWORD },
  });
};

const CONTENT = Buffer.from('Hello, PeSIT!').toString('base64');

/** Sends a small file, and waits for its end. @returns the identifier of the transfer of the client app */
export const send = async (
  node: Addresses,
  server: string,
  virtualFile: string,
  remoteFilename: string,
  label?: string,
): Promise<string> => {
  const sent = await ask(node.client, '/api/v1/transfers/send?wait=30', {
    ...{ server, virtualFile, remoteFilename, fileContent: CONTENT, label },
  });
  return String(sent['id']);
};

/** SLOW writes 512 KiB a second to SLOWLY. Of PAYER one file has arrived in PAYMENTS, and one has failed. */
export const makeSample = async (node: Addresses): Promise<void> => {
  await Promise.all([
    addPartner(node, 'SLOW', { maxBytesPerSecond: 524_288 }),
    addPartner(node, 'PAYER'),
    ...['SLOWLY', 'PAYMENTS'].map((fileId) =>
      ask(node.server, '/api/v1/config/files', { fileId, direction: 'RECEIVE' }),
    ),
  ]);
  await send(node, 'payer', 'PAYMENTS', 'salaries.txt');
  // Taken for markup the label would be fetched, and the browser complain.
  await send(node, 'payer', 'NOSUCH', 'payments.txt', '<img src=pay>');
};

/** The one of PAYER. @returns its identifier in the client app */
export const failedTransfer = async (node: Addresses): Promise<string> => {
  const { content } = await ask(node.client, '/api/v1/transfers/history?q=payments.txt');
  return String((content as { id: string }[])[0]?.id);
};
