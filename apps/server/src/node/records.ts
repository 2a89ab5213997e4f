import { randomUUID } from 'node:crypto';

import type { Foundation } from '@pesit-node/license';
import type { VolumeWatch } from '@pesit-node/storage';

import { CompletedRecords } from '../recovery/completed-records.js';
import { Recovery } from '../recovery/recovery.js';
import { Restarts } from '../recovery/restarts.js';
import { RunningTransfers } from '../recovery/running-transfers.js';
import { TransferContexts } from '../transfers/contexts.js';
import { Instances } from '../transfers/instances.js';
import { TransferJournal } from '../transfers/journal.js';
import { SentPoints } from '../transfers/sent-points.js';
import type { NodeOptions } from './options.js';

/** Records of transfers, who works on each, and the recovery of those that a dead process left. */
export const createRecords = (
  { config, logger, database, node, patienceMs, leaseMs, restartWaitMs }: NodeOptions,
  { events, supervisor, periodic }: Foundation<'server'>,
  volumes: VolumeWatch,
) => {
  const { knex } = database;
  const instance = randomUUID();
  const running = new RunningTransfers();
  const journal = new TransferJournal({
    ...{ knex, events, node, instance },
    underWay: () => running.count,
    database: supervisor,
    ...(patienceMs === undefined ? {} : { patienceMs }),
  });
  const contexts = new TransferContexts({
    ...{ knex, node, instance },
    retentionDays: config['transfer.staging-retention'],
  });
  const instances = new Instances({
    ...{ knex, periodic, logger, instance, node },
    exclusive: database.mode === 'embedded',
    mayRenew: () => volumes.fault?.kind !== 'silent',
    ...(leaseMs === undefined ? {} : { leaseMs }),
  });
  instances.on('again', () => {
    running.endLost(contexts).catch((error: unknown) => {
      // Each asks again before it delivers anything.
      logger.debug({ err: error }, 'could not ask whether the transfers of this process are still its own');
    });
  });
  const recovery = new Recovery({ config, contexts, journal, instances, events });
  const completed = new CompletedRecords({ contexts, completions: journal.completions, instances, events });
  const restarts = new Restarts({
    ...{ contexts, recovery, running, events, completed },
    waitMs: restartWaitMs ?? instances.leaseMs * 1.2,
  });
  return { running, journal, contexts, instances, recovery, completed, restarts, sentPoints: new SentPoints(knex) };
};
