/** The sample of `npm start`: its configuration, and the file that crosses. */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, mkdirSync, openSync, closeSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, root } from './process.mjs';
import { progressBar } from './progress-bar.mjs';

export const SAMPLE = {
  listener: 'SAMPLE',
  partner: 'SAMPLE',
  /** Written and read back by `npm start`. */
  virtualFile: 'SAMPLE',
  /** For what the reader sends. */
  inbox: 'INBOX',
  remoteServer: 'sample',
};
const FILE_NAME = 'sample.bin';
const MEBIBYTE = 1024 * 1024;
const POLL_MS = 50;

/**
 * Creates partner, virtual files, listener and remote server on fresh data directories; leaves others as they are.
 * @returns {Promise<boolean>} whether the sample is there, so that a file can cross
 */
export async function createSample({ server, client }, { pesitPort }) {
  const [partners, remotes] = [await server.get('/api/v1/config/partners'), await client.get('/api/v1/servers')];
  if (partners.length > 0 || remotes.length > 0) return remotes.some(({ name }) => name === SAMPLE.remoteServer);
  // PI 5 holds eight characters. Nobody needs to know it: both sides keep it, hashed and encrypted.
  const password = randomBytes(6).toString('base64url');
  await server.post('/api/v1/config/partners', {
    partnerId: SAMPLE.partner,
    name: 'Sample partner',
    password,
    allowedOperations: ['READ', 'WRITE'],
    allowedFiles: [SAMPLE.virtualFile, SAMPLE.inbox],
    allowedListeners: [SAMPLE.listener],
  });
  await server.post('/api/v1/config/files', {
    fileId: SAMPLE.virtualFile,
    name: 'Sample, sent and read back by npm start',
    direction: 'BOTH',
    allowedPartners: [SAMPLE.partner],
    receiveDirectory: 'sample',
    sendDirectory: 'sample',
    receiveFilenamePattern: '${virtualFile}',
    overwrite: true,
  });
  await server.post('/api/v1/config/files', {
    fileId: SAMPLE.inbox,
    name: 'Sample inbox',
    direction: 'RECEIVE',
    allowedPartners: [SAMPLE.partner],
  });
  await server.post('/api/v1/servers', { serverId: SAMPLE.listener, port: pesitPort, autoStart: true });
  await server.post(`/api/v1/servers/${SAMPLE.listener}/start`);
  await client.post('/api/v1/servers', {
    name: SAMPLE.remoteServer,
    host: '127.0.0.1',
    port: pesitPort,
    serverId: SAMPLE.listener,
    clientId: SAMPLE.partner,
    password,
  });
  console.log(
    `created a sample: partner ${SAMPLE.partner}, virtual files ${SAMPLE.virtualFile} and ${SAMPLE.inbox}, ` +
      `listener ${SAMPLE.listener} on port ${pesitPort}, remote server "${SAMPLE.remoteServer}"`,
  );
  return true;
}

/**
 * Sends the sample file and reads it back. Throws a Failure when anything differs.
 * @param options.pathHere where a file lies here that the client app names so; as named by default
 */
export async function exchange({ server, client }, { data, megabytes, pathHere = (path) => path }) {
  const directory = join(data, 'client', 'send');
  mkdirSync(directory, { recursive: true });
  writeRandomFile(join(directory, FILE_NAME), megabytes * MEBIBYTE);
  const source = await checksum(join(directory, FILE_NAME));

  const request = { server: SAMPLE.remoteServer, virtualFile: SAMPLE.virtualFile };
  const sent = await follow(client, 'send', megabytes, { ...request, filename: FILE_NAME, remoteFilename: FILE_NAME });
  const [stored] = (await server.get('/api/v1/transfers?size=1&sort=id,desc&direction=RECEIVE')).content;
  const read = await follow(client, 'receive', megabytes, { ...request, remoteFilename: SAMPLE.virtualFile });

  const hashes = {
    'source file': source,
    'as sent by the client app': sent.checksum,
    'as stored by the server app': stored?.checksum,
    'as read back by the client app': await checksum(pathHere(read.localPath)),
  };
  for (const [what, hash] of Object.entries(hashes)) console.log(`  ${(hash ?? 'none').slice(0, 71)}  ${what}`);
  if (new Set(Object.values(hashes)).size > 1) throw new Failure('The hashes differ: the file did not arrive whole.');
  console.log(`Both arrived whole: ${megabytes} MB each way, equal SHA-256.`);
}

async function follow(client, verb, megabytes, body) {
  const label = verb === 'send' ? 'sending' : 'reading back';
  const bar = progressBar(label, megabytes * MEBIBYTE);
  const began = performance.now();
  const { id } = await client.post(`/api/v1/transfers/${verb}`, body);
  for (;;) {
    const record = await client.get(`/api/v1/transfers/${id}`);
    bar.update(record.bytesTransferred ?? 0);
    if (record.status === 'COMPLETED') {
      bar.end(record.size, performance.now() - began);
      return record;
    }
    if (record.status === 'FAILED' || record.status === 'CANCELLED') {
      const { status, diagnostic, errorMessage } = record;
      throw new Failure(`${label} ended ${status}: ${diagnostic ?? ''} ${errorMessage ?? ''}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function writeRandomFile(path, size) {
  const file = openSync(path, 'w');
  try {
    for (let left = size; left > 0; left -= MEBIBYTE) writeSync(file, randomBytes(Math.min(left, MEBIBYTE)));
  } finally {
    closeSync(file);
  }
}

async function checksum(path) {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(join(path.startsWith('/') ? '' : root, path))) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
}
