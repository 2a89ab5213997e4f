import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { PeriodicWork } from '@pesit-node/service';
import type { PeriodicTask } from '@pesit-node/service';
import { captureLog, silentLogger } from '@pesit-node/service/testing';

const SECOND = 1000;

const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);

/** A run that ends when the test says so. */
function controlledRun() {
  const ends: (() => void)[] = [];
  let most = 0;
  const run = () => {
    const ended = new Promise<void>((resolve) => ends.push(resolve));
    most = Math.max(most, ends.length - finished);
    return ended;
  };
  let finished = 0;
  const finish = async () => {
    ends[finished]?.();
    finished += 1;
    await pass(0);
  };
  return { run, finish, begun: () => ends.length, mostAtATime: () => most };
}

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

describe('periodic work', () => {
  const counting = (times: number[], more: Partial<PeriodicTask> = {}): PeriodicTask => {
    const began = performance.now();
    return {
      name: 'counting',
      intervalMs: 10 * SECOND,
      run: () => void times.push(performance.now() - began),
      ...more,
    };
  };

  test('runs at once, and then at each interval', async () => {
    const times: number[] = [];
    const work = new PeriodicWork({ logger: silentLogger });
    work.add(counting(times));
    await pass(SECOND);
    expect(times).toEqual([]);
    work.start();
    await pass(25 * SECOND);
    expect(times).toEqual([SECOND, 11 * SECOND, 21 * SECOND]);
    await work.stop();
  });

  test('may wait an interval for its first run', async () => {
    const times: number[] = [];
    const work = new PeriodicWork({ logger: silentLogger });
    work.start();
    work.add(counting(times, { first: 'after an interval' }));
    await pass(25 * SECOND);
    expect(times).toEqual([10 * SECOND, 20 * SECOND]);
    await work.stop();
  });

  test('a task added after the start begins', async () => {
    const times: number[] = [];
    const work = new PeriodicWork({ logger: silentLogger });
    work.start();
    work.add(counting(times));
    await pass(0);
    expect(times).toHaveLength(1);
    await work.stop();
  });

  test.each([
    [0, 9],
    [0.5, 10],
    [0.999_999, 11],
  ])('jitter: chance %d makes an interval of 10 s with a tenth of jitter %d s', async (chance, seconds) => {
    const times: number[] = [];
    const work = new PeriodicWork({ logger: silentLogger, random: () => chance });
    work.add(counting(times, { jitter: 0.1 }));
    work.start();
    await pass(12 * SECOND);
    expect(times[1]).toBeCloseTo(seconds * SECOND, -2);
    await work.stop();
  });

  test('never two runs at a time; a long run delays the next to its own end', async () => {
    const { run, finish, begun, mostAtATime } = controlledRun();
    const work = new PeriodicWork({ logger: silentLogger });
    work.add({ name: 'slow', intervalMs: SECOND, run });
    work.start();
    await pass(5 * SECOND);
    expect(begun()).toBe(1);
    await finish();
    expect(begun()).toBe(2);
    await finish();
    expect(begun()).toBe(2);
    await pass(SECOND);
    expect(begun()).toBe(3);
    await finish();
    await work.stop();
    expect(mostAtATime()).toBe(1);
  });

  test('runNow during a run answers after a run that began later, once for all who ask', async () => {
    const { run, finish, begun } = controlledRun();
    const work = new PeriodicWork({ logger: silentLogger });
    const task = work.add({ name: 'asked', intervalMs: 60 * SECOND, run });
    work.start();
    await pass(0);
    const answered: string[] = [];
    void task.runNow().then(() => answered.push('one'));
    void task.runNow().then(() => answered.push('other'));
    await finish();
    expect(begun()).toBe(2);
    expect(answered).toEqual([]);
    await finish();
    expect(answered).toEqual(['one', 'other']);
    expect(begun()).toBe(2);
    // The interval counts from that run.
    await pass(59 * SECOND);
    expect(begun()).toBe(2);
    await pass(SECOND);
    expect(begun()).toBe(3);
    await finish();
    await work.stop();
  });

  test('stop waits for the run under way, aborts its signal, and nothing begins afterwards', async () => {
    const { run, finish, begun } = controlledRun();
    let aborted = false;
    const work = new PeriodicWork({ logger: silentLogger });
    const task = work.add({
      name: 'stopped',
      intervalMs: SECOND,
      run: (signal) => {
        signal.addEventListener('abort', () => (aborted = true));
        return run();
      },
    });
    work.start();
    await pass(0);
    let stopped = false;
    const stopping = work.stop().then(() => (stopped = true));
    const asked = task.runNow();
    await pass(10 * SECOND);
    expect({ aborted, stopped, begun: begun() }).toEqual({ aborted: true, stopped: false, begun: 1 });
    await finish();
    await Promise.all([stopping, asked]);
    await pass(10 * SECOND);
    expect(begun()).toBe(1);
  });

  test('a removed task ends; its name is free again', async () => {
    const times: number[] = [];
    const work = new PeriodicWork({ logger: silentLogger });
    work.start();
    const task = work.add(counting(times));
    expect(() => work.add(counting(times))).toThrow('periodic task "counting" is added twice');
    await pass(0);
    await task.remove();
    await pass(60 * SECOND);
    expect(times).toHaveLength(1);
    expect(work.status).toEqual([]);
    work.add(counting(times));
    await pass(0);
    expect(times).toHaveLength(2);
    await work.stop();
  });

  test('a failure is logged once for each reason, and so is the first success afterwards', async () => {
    const log = captureLog();
    const outcomes = ['database away', 'database away', 'disk full', undefined, undefined];
    const work = new PeriodicWork({ logger: log.logger });
    work.add({
      name: 'removal of old traces',
      intervalMs: SECOND,
      run: () => {
        const reason = outcomes.shift();
        if (reason !== undefined) throw new Error(reason);
      },
    });
    work.start();
    await pass(2 * SECOND);
    expect(work.status).toMatchObject([{ name: 'removal of old traces', failure: 'disk full', failures: 3 }]);
    await pass(2 * SECOND);
    expect(work.status).toMatchObject([{ failure: undefined, failures: 0, running: false }]);
    const said = log.entries().filter(({ level }) => level !== 20 && level !== 'debug');
    expect(said.map(({ reason, msg }) => [reason, msg])).toEqual([
      ['database away', 'periodic work failed: it is tried again at its next interval'],
      ['disk full', 'periodic work failed: it is tried again at its next interval'],
      [undefined, 'periodic work succeeded again'],
    ]);
    await work.stop();
  });

  test('of a database that is away the supervisor tells, not each task; a statement that is too slow is a failure', async () => {
    const log = captureLog();
    const outcomes = ['ECONNREFUSED', 'ECONNREFUSED', undefined, '57014', undefined];
    const work = new PeriodicWork({ logger: log.logger });
    work.add({
      name: 'removal of old traces',
      intervalMs: SECOND,
      run: () => {
        const code = outcomes.shift();
        if (code !== undefined) throw Object.assign(new Error(`failed with ${code}`), { code });
      },
    });
    work.start();
    await pass(SECOND);
    expect(work.status).toMatchObject([{ failure: 'failed with ECONNREFUSED', failures: 2 }]);
    await pass(3 * SECOND);
    expect(work.status).toMatchObject([{ failure: undefined, failures: 0 }]);
    const said = log.entries().filter(({ level }) => level !== 20 && level !== 'debug');
    expect(said.map(({ reason, msg }) => [reason, msg])).toEqual([
      ['failed with 57014', 'periodic work failed: it is tried again at its next interval'],
      [undefined, 'periodic work succeeded again'],
    ]);
    await work.stop();
  });

  test('a file that is missing is a failure of its own, whatever its code has in common with a socket', async () => {
    const log = captureLog();
    const work = new PeriodicWork({ logger: log.logger });
    work.add({
      name: 'removal of leftovers',
      intervalMs: SECOND,
      run: () => {
        const facts = { code: 'ENOENT', syscall: 'scandir', path: '/volume' };
        throw Object.assign(new Error('ENOENT: no such file or directory'), facts);
      },
    });
    work.start();
    await pass(0);
    expect(log.entries()).toMatchObject([{ task: 'removal of leftovers', failures: 1 }]);
    await work.stop();
  });

  test('a task that comes after the stop never runs, not even when asked', async () => {
    const times: number[] = [];
    const work = new PeriodicWork({ logger: silentLogger });
    work.start();
    await work.stop();
    const task = work.add(counting(times));
    await task.runNow();
    await pass(60 * SECOND);
    expect(times).toEqual([]);
  });

  test("a leader's task runs only while this pod leads, without waiting for another interval of its own", async () => {
    let leads = false;
    const times: number[] = [];
    const work = new PeriodicWork({ logger: silentLogger, isLeader: () => leads });
    const task = work.add(counting(times, { runsOn: 'leader' }));
    work.start();
    await pass(10 * SECOND);
    expect(times).toEqual([]);
    leads = true;
    await task.runNow();
    expect(times).toHaveLength(1);
    leads = false;
    await pass(30 * SECOND);
    expect(times).toHaveLength(1);
    await work.stop();
  });

  test("a new leader begins at once with the leader's tasks that it passed over, and with no others", async () => {
    let leads = true;
    const [ran, passedOver, common]: [number[], number[], number[]] = [[], [], []];
    const work = new PeriodicWork({ logger: silentLogger, isLeader: () => leads });
    work.start();
    work.add(counting(ran, { name: 'ran', runsOn: 'leader', intervalMs: 3600 * SECOND }));
    leads = false;
    work.add(counting(passedOver, { name: 'passed over', runsOn: 'leader', intervalMs: 3600 * SECOND }));
    work.add(counting(common, { name: 'common', intervalMs: 3600 * SECOND }));
    await pass(SECOND);
    expect([ran, passedOver, common]).toEqual([[0], [], [0]]);
    leads = true;
    work.lead();
    await pass(0);
    work.lead();
    await pass(0);
    expect([ran, passedOver, common]).toEqual([[0], [SECOND], [0]]);
    await work.stop();
  });
});
