import { describe, expect, test } from '@jest/globals';

import { stepFor } from '../src/listeners/convergence.js';
import type { ListenerHere, Step, WantedListener } from '../src/listeners/convergence.js';

const NOW = 1_000_000;
const row = (change: Partial<WantedListener> = {}): WantedListener => ({
  ...{ port: 1, wanted: true, generation: 1, revision: 1 },
  ...change,
});
const here = (state: ListenerHere['state'], change: Partial<ListenerHere> = {}): ListenerHere => ({
  ...{ state, port: 1, generation: 1, revision: 1 },
  nextAttemptAt: state === 'failed' ? NOW + 1 : undefined,
  ...change,
});

describe('the step that brings a listener here to what is wanted', () => {
  test.each<[string, WantedListener | undefined, ListenerHere | undefined, Step | undefined]>([
    ['no row, nothing here', undefined, undefined, undefined],
    ['deleted, runs', undefined, here('running'), 'stop'],
    ['deleted, failed', undefined, here('failed'), 'stop'],
    ['deleted, stopped', undefined, here('stopped'), 'forget'],
    ['not wanted, never started', row({ wanted: false }), undefined, undefined],
    ['not wanted, runs', row({ wanted: false }), here('running'), 'stop'],
    ['not wanted, failed', row({ wanted: false }), here('failed'), 'stop'],
    ['not wanted, stopped', row({ wanted: false }), here('stopped'), undefined],
    ['wanted, never started', row(), undefined, 'start'],
    ['wanted, stopped', row(), here('stopped'), 'start'],
    ['wanted, runs as it should', row(), here('running'), undefined],
    ['wanted, failed, not due', row(), here('failed'), undefined],
    ['wanted, failed, due', row(), here('failed', { nextAttemptAt: NOW }), 'start'],
    ['wanted, failed, changed since', row({ revision: 2 }), here('failed'), 'start'],
    ['another port', row({ port: 2, revision: 2 }), here('running'), 'move'],
    ['another generation', row({ generation: 2, revision: 3 }), here('running'), 'restart'],
    ['another generation and port', row({ generation: 2, port: 2 }), here('running'), 'restart'],
    ['another setting', row({ revision: 2 }), here('running'), undefined],
  ])('%s', (_, wanted, now, step) => {
    expect(stepFor(wanted, now, { serves: true, now: NOW })).toBe(step);
    // A pod that serves nobody has nothing running, whatever is wanted.
    const idle = now === undefined || now.state === 'stopped' ? undefined : 'stop';
    const forgets = wanted === undefined && now?.state === 'stopped' ? 'forget' : idle;
    expect(stepFor(wanted, now, { serves: false, now: NOW })).toBe(forgets);
  });
});

describe('pods that look whenever they like', () => {
  const PODS = [0, 1, 2] as const;

  /** A generator of its own, so that a failure can be repeated. */
  const chance = (seed: number) => () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };

  interface Pod {
    here: ListenerHere | undefined;
    /** Generations that it was started for, in their order. */
    readonly started: number[];
  }

  /** One look at the row, whose step is taken. */
  const look = (
    pod: Pod,
    wanted: WantedListener | undefined,
    now: number,
    isTaken: (port: number) => boolean,
  ): void => {
    const step = stepFor(wanted, pod.here, { serves: true, now });
    if (step === 'forget') pod.here = undefined;
    if (step === 'stop' && pod.here !== undefined)
      pod.here = { ...pod.here, state: 'stopped', nextAttemptAt: undefined };
    if (wanted === undefined || step === undefined || step === 'forget' || step === 'stop') return;
    const { port, generation, revision } = wanted;
    const failed = isTaken(port ?? 0);
    pod.here = {
      ...{ state: failed ? 'failed' : 'running', port, generation, revision },
      nextAttemptAt: failed ? now + 1000 : undefined,
    };
    if (!failed && step !== 'move') pod.started.push(generation);
  };

  test.each(Array.from({ length: 200 }, (_, seed) => seed + 1))(
    'end as it was said last, and restart once for each restart that they have seen: seed %i',
    (seed) => {
      const random = chance(seed);
      const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
      const pods: readonly Pod[] = PODS.map(() => ({ here: undefined, started: [] }));
      let changes = 1;
      let wanted: WantedListener | undefined;
      let now = NOW;
      const verbs: readonly (() => void)[] = [
        () => (wanted ??= { port: 1, wanted: true, generation: ++changes, revision: ++changes }),
        () => (wanted = wanted && { ...wanted, wanted: true, revision: ++changes }),
        () => (wanted = wanted && { ...wanted, wanted: false, revision: ++changes }),
        () => (wanted = wanted && { ...wanted, port: pick([1, 2, 3]), revision: ++changes }),
        () => (wanted = wanted?.wanted ? { ...wanted, generation: ++changes, revision: ++changes } : wanted),
        () => (wanted = undefined),
      ];
      for (let turn = 0; turn < 60; turn++) {
        if (random() < 0.4) pick(verbs)();
        now += Math.floor(random() * 800);
        look(pick(pods), wanted, now, () => random() < 0.3);
      }
      // Nothing more is said, and every port is free: two looks after the time of the last failure are enough.
      for (let turn = 0; turn < 2; turn++) {
        now += 1000;
        for (const pod of pods) look(pod, wanted, now, () => false);
      }
      for (const { here: one, started } of pods) {
        const state = wanted?.wanted === true ? 'running' : 'stopped';
        expect(one?.state ?? 'stopped').toBe(state);
        if (wanted?.wanted === true) expect(one).toMatchObject({ port: wanted.port, generation: wanted.generation });
        if (wanted === undefined) expect(one).toBeUndefined();
        // A generation is never gone back to, and a look more changes nothing.
        expect(started).toEqual(started.toSorted((a, b) => a - b));
        expect(stepFor(wanted, one, { serves: true, now })).toBeUndefined();
      }
    },
  );
});
