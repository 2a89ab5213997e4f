/** SIGTERM to a process as it is built: what its partners see, and how it ends. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { nameOf, summaryOf } from '@pesit-node/protocol/testing';
import { freePort, withDatabase } from '@pesit-node/service/testing';

import { KilledService } from '../../../packages/service/test/support/killed-service.js';
import { PASSWORD } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { ACK_IDT, CONNECT, create, CRF, DATA, DESELECT, DTF, DTF_END, ORF, RELEASE } from './support/steps.js';
import { syn, transEnd, WRITE } from './support/steps.js';

const MAIN = new URL('../dist/main.js', import.meta.url);
const WRITING = [CONNECT, create(), ORF, WRITE, DTF, syn(1)] as const;

withDatabase((harness) => {
  let directory: string;
  let service: KilledService;
  let port: number;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'pesit-drained-'));
  });
  afterEach(async () => {
    await service.kill();
    await rm(directory, { recursive: true, force: true });
  });

  const start = async (drainTimeout: number): Promise<void> => {
    const { url: databaseUrl } = await harness.open();
    const settings = { 'shutdown.drain-timeout': drainTimeout };
    service = new KilledService({ main: MAIN, directory, databaseUrl, settings });
    await service.start();
    port = await freePort();
    await service.call('POST', '/api/v1/config/partners', { partnerId: 'ACME', password: PASSWORD });
    await service.call('POST', '/api/v1/config/files', { fileId: 'IN', receiveDirectory: 'in' });
    expect(await service.call('POST', '/api/v1/servers', { serverId: 'NODE1', port })).toMatchObject({
      status: 'RUNNING',
    });
  };

  test('not ready, 3-322 for who comes, the running file ends and its session is released, exit 0', async () => {
    await start(60);
    const peer = await RawPeer.open(port, ...WRITING);
    const idle = await RawPeer.open(port, CONNECT);
    expect(await service.readiness()).toBe(200);
    const ended = service.terminate();
    expect(summaryOf(await idle.next())).toBe('ABORT 3-322');
    idle.socket.destroy();
    // Readiness went down before the first partner heard of it.
    expect(await service.readiness()).toBe(503);
    const late = await RawPeer.open(port);
    expect(summaryOf(await late.send(CONNECT))).toBe('RCONNECT 3-322');
    late.socket.destroy();
    const answers = [];
    for (const step of [DTF_END, transEnd(DATA.length, 1), CRF, DESELECT, RELEASE])
      answers.push(nameOf(await peer.send(step)));
    expect(answers).toEqual([undefined, 'ACK(TRANS.END)', 'ACK(CRF)', 'ACK(DESELECT)', 'RELCONF']);
    peer.socket.destroy();
    expect(await ended).toBe(0);
  });

  test('a file that does not end in time is interrupted with end code 4, its session is released, exit 0', async () => {
    await start(1);
    const peer = await RawPeer.open(port, ...WRITING);
    const ended = service.terminate();
    const interruption = await peer.next();
    expect(summaryOf(interruption)).toBe('IDT 3-322');
    // PI 19: an error on this side, after which the transfer restarts elsewhere.
    expect(interruption?.toString('hex')).toContain('130104');
    const answers = [];
    for (const step of [ACK_IDT, CRF, DESELECT, RELEASE]) answers.push(nameOf(await peer.send(step)));
    expect(answers).toEqual([undefined, 'ACK(CRF)', 'ACK(DESELECT)', 'RELCONF']);
    peer.socket.destroy();
    expect(await ended).toBe(0);
  });
});
