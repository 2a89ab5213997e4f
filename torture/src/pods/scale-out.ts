/** Measures one, two and three processes of the server app, which two of the client app send to through the balancer. */
import { createHash, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { KB, MB } from '../plan.js';
import type { PodStage } from './pod-stage.js';
import { isFinal, judge, recordsOf, request, tidy, type Crossing, type PodRound } from './rolling-round.js';

/** Files of one size, pushed. */
interface Load {
  readonly name: string;
  readonly files: number;
  readonly bytes: number;
}

/** The first one warms everything up, and is not shown. */
const LOADS: readonly Load[] = [
  { name: 'warm', files: 50, bytes: 10 * KB },
  { name: 'small', files: 400, bytes: 10 * KB },
  { name: 'large', files: 8, bytes: 128 * MB },
];
const LIMIT_MS = 600_000;
/** Looks cost what is measured. */
const LOOK_AGAIN_MS = 1000;

const make = async (stage: PodStage, { name, files, bytes }: Load): Promise<readonly Crossing[]> => {
  const content = randomBytes(bytes);
  const crossings: Crossing[] = [];
  for (let k = 0; k < files; k++) {
    // No two are equal.
    content.writeUInt32BE(k);
    const file = `${name}-${k}`;
    await writeFile(join(stage.directory, 'client/send', file), content);
    crossings.push({ name: file, direction: 'push', hash: createHash('sha256').update(content).digest('hex'), id: '' });
  }
  return crossings;
};

/** @param servers processes of the server app on this stage */
export const scaleOut = async (stage: PodStage, servers: number): Promise<PodRound> => {
  const findings: string[] = [];
  const rates: Record<string, number> = {};
  for (const load of LOADS) {
    const crossings = await make(stage, load);
    await Promise.all(
      crossings.map(async (crossing, k) => {
        crossing.id = await request(stage, crossing, k);
      }),
    );
    const limit = performance.now() + LIMIT_MS;
    let records = await recordsOf(stage, crossings);
    const isOver = (): boolean => crossings.every(({ id }) => isFinal(records.get(id) ?? {}));
    while (!isOver() && performance.now() < limit) {
      await delay(LOOK_AGAIN_MS);
      records = await recordsOf(stage, crossings);
    }
    const times = (field: string): number[] => crossings.map(({ id }) => Date.parse(String(records.get(id)?.[field])));
    const seconds = (Math.max(...times('endTime')) - Math.min(...times('createdTime'))) / 1000;
    rates[load.name] = load.bytes < MB ? load.files / seconds : (load.files * load.bytes) / 1e6 / seconds;
    const result = await judge(stage, crossings, records);
    findings.push(...result.findings);
    if (findings.length > 0) break;
    await tidy(stage);
  }
  const [small, large] = [rates['small'] ?? 0, rates['large'] ?? 0];
  return {
    words: `${servers} server processes: ${small.toFixed(1)} transfers of 10 KB a second, ${large.toFixed(0)} MB/s in files of 128 MB`,
    findings,
    figures: { servers, transfersPerSecond: small, megabytesPerSecond: large },
  };
};
