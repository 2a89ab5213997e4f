import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

import { renewManaged } from '@pesit-node/certificates';
import { settledWithin, unlessAborted, untilDone } from '@pesit-node/ground';
import type { LifecycleStep } from '@pesit-node/service';

import { listenerLook, servingTasks } from '../serving-tasks.js';
import { Startup } from '../startup.js';
import type { NodeOptions } from './options.js';
import { BALANCER_MS } from './parts.js';
import type { NodeParts } from './parts.js';

/** How long the start waits for the default directories. */
const PREPARE_MS = 5000;
/** Between two attempts to begin, when the database fails in between. */
const RETRY_MS = 1000;
/** How long writing what is left may take after the last session. */
const LAST_RECORDS_MS = 5000;

/** In which order the parts begin, once the database is there, and end. */
export const orderOf = (parts: NodeParts, { config, logger, health, listenerRetryMs, listenerLookMs }: NodeOptions) => {
  const {
    foundation,
    certificates,
    authority,
    declared,
    directories,
    drainMs,
    exchange,
    hooks,
    housekeeping,
    instances,
  } = parts;
  const { journal, listeners, listenersHere, live, partnerLook, places, recovery, renewals, retention, sums } = parts;
  const { ticketLook, traces, volumes, volumeLooks, waitingFiles } = parts;
  const { supervisor, periodic, events, cluster, license, audit } = foundation;
  const startup = new Startup();
  health.register('startup', () => startup.health(), { readiness: true });

  /** Tasks that end when the node begins to stop; leases are renewed, and figures written, as long as transfers run. */
  const whileServing = [partnerLook];
  const serve = (): void => {
    const tasks = servingTasks({ listenersHere, journal, waitingFiles, listenerRetryMs });
    const renewal = renewManaged({
      ...{ authority, events, audit, days: () => config['pesit.cert-rotation-days'] },
      asLeader: (work) => cluster.asLeader(work),
    });
    whileServing.push(periodic.add(renewal));
    whileServing.push(...tasks.map((task) => periodic.add(task)));
    const look = periodic.add(listenerLook(listeners, listenerLookMs));
    const lookAtPlaces = periodic.add(places.task);
    whileServing.push(look, lookAtPlaces);
    cluster.events.subscribe('sessions', () => lookAtPlaces.runNow());
    cluster.events.subscribe('listeners', () => look.runNow());
    // With `cluster.listeners: leader` they follow the leader.
    cluster.leader.on('gain', () => void look.runNow());
    cluster.leader.on('loss', () => void look.runNow());
    cluster.requests.start();
    housekeeping.start();
    retention.start();
    sums.start();
    traces.start();
    cluster.leader.start();
  };

  const stop = new AbortController();
  // A volume may answer late, and then with an error that passes: each attempt to begin asks again.
  const prepare = untilDone(() => unlessAborted(directories.prepare(), stop.signal));
  const volumesAreWell = async (): Promise<void> => {
    while (volumes.fault !== undefined) {
      startup.failed(volumes.fault.reason);
      await once(volumes, 'change', { signal: stop.signal });
    }
  };
  const begin = async (): Promise<void> => {
    const isOver = (): boolean => stop.signal.aborted;
    while (!isOver()) {
      try {
        startup.waitFor('database');
        await supervisor.whenReady(stop.signal);
        startup.waitFor('volumes');
        await prepare();
        await volumeLooks.runNow();
        await volumesAreWell();
        startup.waitFor('recovery');
        await instances.start();
        await recovery.run();
        startup.waitFor('license');
        // Before the first partner: it must not be sent away only because these were not read yet.
        await cluster.members.refresh();
        await license.refresh();
        await ticketLook.runNow();
        startup.waitFor('listeners');
        await listeners.look();
        startup.done();
        serve();
        break;
      } catch (error) {
        if (isOver()) return;
        startup.failed((error as Error).message);
        logger.error({ err: error }, 'could not start the listeners yet: trying again');
        await delay(RETRY_MS, undefined, { signal: stop.signal }).catch(() => undefined);
      }
    }
    // Behind the listeners that are there: a node serves what it has, whatever the file says.
    if (!isOver()) await declared.start();
  };
  let beginning: Promise<void> = Promise.resolve();

  const step: LifecycleStep = {
    name: 'listeners',
    start: async () => {
      // One that does not answer is waited for later: the service runs meanwhile, and says why it is not ready.
      const prepared = await settledWithin(prepare(), PREPARE_MS);
      if (prepared.kind === 'failed') throw prepared.error;
      // The database may come later: the service runs meanwhile, and says why it is not ready.
      beginning = begin();
    },
    stop: async () => {
      stop.abort();
      await live.close();
      await declared.stop();
      await beginning;
      await Promise.all(whileServing.map((task) => task.remove()));
      // Its place goes to the next pod now: what still runs here ends, and nothing new begins.
      void cluster.leave();
      // Beside the last transfers: what these order is left to the next pod, or to the next start.
      const hooksEnd = hooks.deliverer.stop(drainMs);
      await listenersHere.close();
      await cluster.requests.stop();
      await listeners.report();
      await exchange.settled();
      await places.close();
      await hooksEnd;
      await renewals.stop();
      await traces.stop();
      await housekeeping.stop();
      await retention.stop();
      await sums.stop();
      await journal.settled(LAST_RECORDS_MS);
      await certificates.stop();
      await ticketLook.remove();
      await instances.stop();
    },
    stopTimeoutMs: BALANCER_MS + drainMs + 2 * LAST_RECORDS_MS,
  };
  return { step, whenBegun: () => beginning };
};
