/**
 * The fuzzer of packages/protocol: damaged sessions against the decoder and the trace, the framing, and the sessions of both
 * roles, each of which has an application behind it that answers as the protocol allows.
 *
 * The sessions come from recordings of other products and from our own two ends with random terms; `mutations.ts` damages
 * bytes, and whole FPDUs with their lengths and CRCs made right again, so that the damage gets past the framing.
 * Whatever comes in, only PesitErrors with a diagnostic may come out; every input ends, what waits in memory is bounded, and
 * nothing is left behind. A failure prints its seed, its number and its bytes; `--seed S --input K` runs it again.
 */
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { Inputs } from './inputs.js';
import { runInput } from './targets.js';
import type { Assignment, WorkerMessage } from './worker.js';

const USAGE = `npm run fuzz -- [flags]
  --minutes N          how long (default 1)
  --inputs N           how many instead
  --seed S             which (default: the time)
  --input K            only this one, in this thread, and its bytes`;
const RECORDINGS = fileURLToPath(new URL('../../../packages/protocol/test/recordings', import.meta.url));
/** An input takes less than a millisecond; a machine under load is slow, not stuck. */
const STUCK_MS = 20_000;
const REPORT_MS = 10_000;
/** Printed of an input that fails; `--input` runs it whole. */
const MAX_HEX = 20_000;

const describeInput = (seed: number, k: number): string => {
  const { target, tape, pieces } = new Inputs(seed, RECORDINGS).input(k);
  const bytes = Buffer.concat(pieces);
  const hex = bytes.toString('hex', 0, MAX_HEX);
  const to = target === 'session' ? `${tape.to} session` : target;
  return `seed ${seed}, input ${k}: ${to}, ${tape.dialect}${tape.crc ? ' with CRC' : ''}, from ${tape.name}, ${bytes.length} bytes in ${pieces.length} pieces\n${hex}`;
};

interface Outcome {
  readonly inputs: number;
  readonly failure: { readonly input: number; readonly error: string } | undefined;
}

/** Lets a thread run inputs until the count, the time, a failure, or an input that does not end. */
const fuzz = async (seed: number, count: number, limitMs: number): Promise<Outcome> => {
  const progress = new SharedArrayBuffer(8);
  const at = new Uint32Array(progress);
  const current = (): number => (at[1] as number) * 2 ** 32 + (at[0] as number);
  const assignment: Assignment = { seed, recordings: RECORDINGS, first: 0, count, progress };
  const worker = new Worker(new URL('worker.js', import.meta.url), { workerData: assignment });
  const began = performance.now();
  return new Promise((resolve) => {
    let [last, moved, reported] = [-1, began, began];
    const end = (outcome: Outcome): void => {
      clearInterval(timer);
      void worker.terminate().then(() => resolve(outcome));
    };
    const timer = setInterval(() => {
      const [k, now] = [current(), performance.now()];
      if (k !== last) [last, moved] = [k, now];
      if (now - reported > REPORT_MS) {
        reported = now;
        console.error(`${k} inputs, ${Math.round(k / ((now - began) / 1000))} a second`);
      }
      if (now - began > limitMs) end({ inputs: k, failure: undefined });
      else if (now - moved > STUCK_MS) end({ inputs: k, failure: { input: k, error: `no end after ${STUCK_MS} ms` } });
    }, 100);
    worker.on('message', (message: WorkerMessage) => {
      if ('done' in message) end({ inputs: message.done, failure: undefined });
      else end({ inputs: message.failed, failure: { input: message.failed, error: message.error } });
    });
    worker.on('error', (error) => end({ inputs: current(), failure: { input: current(), error: String(error) } }));
  });
};

const numbers = (values: Readonly<Record<string, string | undefined>>): Record<string, number | undefined> =>
  Object.fromEntries(
    Object.entries(values).map(([name, text]) => {
      const value = text === undefined ? undefined : Number(text);
      if (value !== undefined && !(value >= 0 && value <= Number.MAX_SAFE_INTEGER))
        throw new Error(`--${name}: expected a number, got "${text}"`);
      return [name, value];
    }),
  );

try {
  const { values } = parseArgs({
    options: {
      ...{ help: { type: 'boolean', short: 'h' }, minutes: { type: 'string' }, inputs: { type: 'string' } },
      ...{ seed: { type: 'string' }, input: { type: 'string' } },
    },
  });
  const { help, ...texts } = values;
  const { minutes, inputs, seed = Math.floor(Date.now() / 1000), input } = numbers(texts);
  if (help === true) {
    console.log(USAGE);
  } else if (input !== undefined) {
    console.log(describeInput(seed, input));
    runInput(new Inputs(seed, RECORDINGS).input(input));
    console.log('nothing is wrong');
  } else {
    const began = performance.now();
    const limitMs = inputs === undefined ? (minutes ?? 1) * 60_000 : Infinity;
    const outcome = await fuzz(seed, inputs ?? Number.MAX_SAFE_INTEGER, limitMs);
    const seconds = (performance.now() - began) / 1000;
    const rate = Math.round(outcome.inputs / seconds);
    console.log(`fuzz: ${outcome.inputs} inputs in ${seconds.toFixed(1)} s, ${rate} a second, seed ${seed}`);
    if (outcome.failure !== undefined) {
      console.log(`FAILED: ${outcome.failure.error}\n${describeInput(seed, outcome.failure.input)}`);
      process.exitCode = 1;
    }
  }
} catch (error) {
  console.error(`fuzz: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  process.exitCode = 1;
}
