import { expect, test } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import { RequesterSession, ServerSession, type SessionEvent } from '@pesit-node/protocol';
import { Chance } from '@pesit-node/protocol/testing';
import { RequesterAutopilot, ServerAutopilot } from '../src/fuzz/autopilot.js';
import { Inputs } from '../src/fuzz/inputs.js';
import { concatenated, onTheWire, type Tape } from '../src/fuzz/tapes.js';
import { runInput } from '../src/fuzz/targets.js';

const inputs = new Inputs(1, fileURLToPath(new URL('../../packages/protocol/test/recordings', import.meta.url)));

/** Plays a tape as it is, an FPDU at a time. @returns how the session ended, and what was taken of the file */
function play({ to, dialect, crc, tasks, manners, fpdus }: Tape): { ended: string; received: number } {
  let ended = 'not ended';
  const watch = (session: ServerSession | RequesterSession): void => {
    const next = session.nextEvent.bind(session);
    session.nextEvent = (): SessionEvent | undefined => {
      const event = next();
      if (event?.kind === 'ENDED') ended = event.error?.message ?? 'released';
      return event;
    };
  };
  let autopilot: ServerAutopilot | RequesterAutopilot;
  if (to === 'server') {
    autopilot = new ServerAutopilot(new ServerSession({ dialect, now: 0, connectionId: 9 }), manners);
  } else {
    autopilot = new RequesterAutopilot(new RequesterSession({ dialect, now: 0, connectionId: 5 }, crc), manners, tasks);
    autopilot.connect();
  }
  watch(autopilot.session);
  for (const fpdu of fpdus) {
    autopilot.run();
    autopilot.session.receive(onTheWire([fpdu], dialect, crc), 0);
  }
  autopilot.run();
  return { ended, received: autopilot.received };
}

test('a tape without damage is played to its end: the applications keep to the protocol', () => {
  const calm = inputs.tapes.filter(({ name, manners }) => name.startsWith('generated') && manners.mood === 0);
  expect(calm.length).toBeGreaterThan(250);
  expect(calm.map((tape) => `${tape.name}: ${play(tape).ended}`).filter((text) => !text.endsWith('released'))).toEqual(
    [],
  );
  expect(calm.reduce((sum, tape) => sum + play(tape).received, 0)).toBeGreaterThan(100_000);
});

test('the recordings of other products are played to their data', () => {
  const push = inputs.tapes.find(({ name, to }) => name === 'pw-push-64k-nosync.raw' && to === 'server') as Tape;
  expect(play(push)).toEqual({ ended: 'released', received: 65_536 });
  const filled = inputs.tapes.find(({ name, to }) => name === 'cx-push-1mb.raw' && to === 'server') as Tape;
  // Their own contents are missing in the recording: 256 times three articles of four bytes, and one in two parts of 24.
  expect(play(filled).received).toBeGreaterThan(10_000);
});

test('FPDUs of data come in common entities too, all others alone', () => {
  const chance = new Chance(1);
  let shared = 0;
  for (const tape of inputs.tapes.filter(({ dialect, crc }) => dialect === 'length-prefixed' && !crc)) {
    const entities = concatenated(tape.fpdus, tape, chance);
    expect(Buffer.concat(entities.map((one) => one.subarray(2))).equals(Buffer.concat(tape.fpdus))).toBe(true);
    for (const entity of entities) {
      const first = entity.readUInt16BE(2);
      if (entity.readUInt16BE(0) === first) continue;
      shared += 1;
      expect(['0000', '0041', '0040', '0042', 'c003', 'c004']).toContain(entity.toString('hex', 4, 6));
    }
  }
  expect(shared).toBeGreaterThan(100);
});

test('seed and number give the same input again', () => {
  const again = new Inputs(1, fileURLToPath(new URL('../../packages/protocol/test/recordings', import.meta.url)));
  for (const k of [0, 1, 77, 123_456_789]) {
    const [a, b] = [inputs.input(k), again.input(k)];
    expect(Buffer.concat(a.pieces).equals(Buffer.concat(b.pieces))).toBe(true);
    expect([a.target, a.tape.name]).toEqual([b.target, b.tape.name]);
  }
});

test('a few thousand inputs of each target', () => {
  const counts = new Map<string, number>();
  for (let k = 0; k < 8000; k++) {
    const input = inputs.input(k);
    counts.set(input.target, (counts.get(input.target) ?? 0) + 1);
    runInput(input);
  }
  expect([...counts.keys()].sort()).toEqual(['decoder', 'framing', 'session']);
  expect(Math.min(...counts.values())).toBeGreaterThan(1000);
});
