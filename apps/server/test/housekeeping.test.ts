import { expect, test } from '@jest/globals';
import { PeriodicWork } from '@pesit-node/service';
import { silentLogger } from '@pesit-node/service/testing';

import { Housekeeping } from '../src/recovery/housekeeping.js';
import type { HousekeepingOptions } from '../src/recovery/housekeeping.js';
import { until } from './support/node.js';

test('stops when all that it has begun has ended, also what began before something else', async () => {
  let endSweep = (): void => undefined;
  let sweepEnded = false;
  let recoveries = 0;
  const expire = async (): Promise<never[]> => {
    if (recoveries > 0) return [];
    await new Promise<void>((resolve) => (endSweep = resolve));
    sweepEnded = true;
    return [];
  };
  const periodic = new PeriodicWork({ logger: silentLogger });
  periodic.start();
  const housekeeping = new Housekeeping({
    contexts: { expire },
    sentPoints: { forgetOld: () => Promise.resolve() },
    instances: { leaseMs: 1, forgetOld: () => Promise.resolve() },
    recovery: {
      run: () => {
        recoveries += 1;
        return Promise.resolve();
      },
    },
    receiveDirectories: () => Promise.resolve([]),
    retentionDays: 7,
    periodic,
    logger: silentLogger,
  } as unknown as HousekeepingOptions);
  housekeeping.start();
  await until(() => recoveries > 1 || undefined);
  const stopped = housekeeping.stop().then(() => sweepEnded);
  setImmediate(endSweep);
  expect(await stopped).toBe(true);
  await periodic.stop();
});
