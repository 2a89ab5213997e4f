/** Three remote servers beside one that hangs and one that nobody reaches: what the three lose by it. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../app-process.js';
import { KB } from '../plan.js';
import { call, RestError } from '../rest.js';
import { INBOX, type PodStage } from './pod-stage.js';
import type { PodRound } from './rolling-round.js';

const GOOD = ['good-1', 'good-2', 'good-3'];
const HANGS = 'hangs';
const UNREACHABLE = 'unreachable';
/** Without, with, without, with: the machine has other work. */
const PASSES = [false, true, false, true, false, true];
/** The three may take so much longer. */
const SLOWER = 1.1;
const LIMIT_MS = 600_000;
const LOOK_MS = 200;

/** Takes connections and says nothing. */
const startHanging = async (): Promise<{ readonly port: number; readonly close: () => void }> => {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).resume();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
};

/** Posts to the servers in turn, `transfers` to each, as long as the queue takes them. @returns those that it refused, by server */
const post = async (
  stage: PodStage,
  servers: readonly string[],
  transfers: number,
): Promise<Readonly<Record<string, number>>> => {
  const refused: Record<string, number> = {};
  const fileContent = randomBytes(4 * KB).toString('base64');
  const [{ base } = { base: '' }] = stage.of('client');
  for (let k = 0; k < transfers; k++) {
    await Promise.all(
      servers.map(async (server) => {
        try {
          await call('POST', `${base}/api/v1/transfers/send`, { server, virtualFile: INBOX, fileContent });
        } catch (error) {
          if (!(error instanceof RestError) || error.status !== 503) throw error;
          refused[server] = (refused[server] ?? 0) + 1;
        }
      }),
    );
  }
  return refused;
};

/** Seconds from the first request to the last end of the good ones. */
const passOf = async (stage: PodStage, transfers: number, isBad: boolean) => {
  const since = performance.now();
  const bad = isBad ? [HANGS, UNREACHABLE] : [];
  const refused = await post(stage, [...bad, ...GOOD], transfers);
  for (;;) {
    const [row] = await stage.rows<{ readonly open: number }>(
      `select count(*)::integer as open from pesit_client.transfers
       where server_name like 'good-%' and status in ('PENDING', 'IN_PROGRESS')`,
    );
    if (row?.open === 0) break;
    if (performance.now() - since > LIMIT_MS) throw new Error('the good servers had not got all after ten minutes');
    await delay(LOOK_MS);
  }
  return { seconds: (performance.now() - since) / 1000, refused };
};

export const badServersRound = async (stage: PodStage, transfers: number): Promise<PodRound> => {
  const [{ base } = { base: '' }] = stage.of('client');
  const hanging = await startHanging();
  try {
    const like = stage.remote;
    const ports: Readonly<Record<string, number>> = { [HANGS]: hanging.port, [UNREACHABLE]: await freePort() };
    for (const name of [...GOOD, HANGS, UNREACHABLE]) {
      await call('POST', `${base}/api/v1/servers`, { ...like, name, port: ports[name] ?? like.port });
    }
    // Warms up, and is not shown.
    await passOf(stage, 10, false);
    const findings: string[] = [];
    const seconds = { without: 0, with: 0 };
    const each: string[] = [];
    for (const isBad of PASSES) {
      const pass = await passOf(stage, transfers, isBad);
      seconds[isBad ? 'with' : 'without'] += pass.seconds;
      each.push(pass.seconds.toFixed(1));
      const refused = GOOD.filter((name) => (pass.refused[name] ?? 0) > 0);
      if (refused.length > 0) findings.push(`${refused.join(', ')}: refused with 503 although the server is well`);
    }
    const ratio = seconds.with / seconds.without;
    if (ratio > SLOWER) findings.push(`the three took ${(100 * (ratio - 1)).toFixed(0)} % longer beside the two`);
    return {
      words:
        `${3 * transfers} of 4 KB to three servers, without and with ${2 * transfers} to one that hangs and one that is not there, in turn: ` +
        `${each.join(', ')} s; with them ${(100 * (ratio - 1)).toFixed(1)} % longer; load ${loadavg()[0]?.toFixed(1)}`,
      findings,
      figures: { transfers, seconds, ratio },
    };
  } finally {
    hanging.close();
  }
};
