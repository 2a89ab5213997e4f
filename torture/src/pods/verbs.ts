/** The listener table: what is said to one pod is true on all (issue 14, Show). */
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../app-process.js';
import { call } from '../rest.js';
import type { Pod, PodStage } from './pod-stage.js';
import type { PodRound } from './rolling-round.js';

/** From the answer to the last pod, milliseconds. */
const LIMITS = { withRedis: 2000, without: 10_000 } as const;
const GIVE_UP_MS = 60_000;
const LOOK_AGAIN_MS = 20;
const LISTENER = 'VERBS';

const accepts = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => {
      resolve(false);
    });
  });

export const verbsRound = async (stage: PodStage): Promise<PodRound> => {
  const limit = stage.redis === undefined ? LIMITS.without : LIMITS.withRedis;
  const [first, second] = [await freePort(), await freePort()];
  const path = `/api/v1/servers/${LISTENER}`;
  const pods = stage.of('server');
  const everywhere = async (port: number, wanted: boolean): Promise<boolean> => {
    const answers = await Promise.all(stage.serverHosts.map((host) => accepts(host, port)));
    return answers.every((answer) => answer === wanted);
  };
  const isRunning = (port: number) => (): Promise<boolean> => everywhere(port, true);
  const isGone =
    (...ports: readonly number[]) =>
    async (): Promise<boolean> =>
      (await Promise.all(ports.map((port) => everywhere(port, false)))).every(Boolean);
  const steps: readonly (readonly [
    string,
    'POST' | 'PUT' | 'DELETE',
    string,
    object | undefined,
    () => Promise<boolean>,
  ])[] = [
    ['create', 'POST', '/api/v1/servers', { serverId: LISTENER, port: first }, isRunning(first)],
    ['stop', 'POST', `${path}/stop`, undefined, isGone(first)],
    ['start', 'POST', `${path}/start`, undefined, isRunning(first)],
    ['restart', 'POST', `${path}/restart`, undefined, isRunning(first)],
    [
      'change of port',
      'PUT',
      path,
      { port: second },
      async () => (await isRunning(second)()) && (await isGone(first)()),
    ],
    ['delete', 'DELETE', `${path}?force=true`, undefined, isGone(first, second)],
  ];
  const findings: string[] = [];
  const figures: Record<string, number> = {};
  for (const [k, [verb, method, at, body, isTrue]] of steps.entries()) {
    const { base } = pods[k % pods.length] as Pod;
    await call(method, `${base}${at}`, body);
    const from = performance.now();
    while (!(await isTrue()) && performance.now() - from < GIVE_UP_MS) await delay(LOOK_AGAIN_MS);
    const ms = Math.round(performance.now() - from);
    figures[verb] = ms;
    if (ms > limit) findings.push(`LATE: ${verb} is true on all pods after ${ms} ms, ${limit} are the limit`);
  }
  const told = Object.entries(figures).map(([verb, ms]) => `${verb} ${ms} ms`);
  return {
    words: `listener on three pods, ${stage.redis === undefined ? 'without Redis' : 'with Redis'}: ${told.join(', ')}`,
    findings,
    figures,
  };
};
