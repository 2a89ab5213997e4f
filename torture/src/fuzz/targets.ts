/** Targets of the fuzzing, and the rules that hold for any input: nothing but PesitErrors, bounds kept, an end that is reached. */
import {
  decodeBody,
  describeFpdu,
  FpduReader,
  FPDU_HEADER_LENGTH,
  fpduByCodes,
  isDataFpdu,
  MAX_FPDU_LENGTH,
  PesitError,
  RequesterSession,
  ServerSession,
} from '@pesit-node/protocol';
import { RequesterAutopilot, ServerAutopilot } from './autopilot.js';
import type { Input } from './inputs.js';
import { mannersOf } from './tapes.js';

const MAX_LINE = 20_000;
/** Bytes that may wait for the rest of their FPDU, with those before and behind them. */
const MAX_PENDING = MAX_FPDU_LENGTH + 4;
/** An answer to each FPDU of six bytes, and what an application sends of its own accord. */
const MAX_OUTPUT_PER_BYTE = 400;
const OWN_OUTPUT = 1 << 20;
/** Turns of the clock until a session that nobody answers is closed. */
const MAX_TIMEOUTS = 10;

const demand = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(what);
};

/** Runs an action that may fail as a peer's mistake does, and in no other way. */
const asPeer = (action: () => void): void => {
  try {
    action();
  } catch (error) {
    if (!(error instanceof PesitError)) throw error;
    demand(error.fault === 'remote', `a mistake of the peer has the fault ${error.fault}`);
    demand(/^[0-3]-\d{3}$/.test(error.diagnostic), `a mistake of the peer has the diagnostic ${error.diagnostic}`);
  }
};

const decode = ({ pieces: [bytes = Buffer.alloc(0)] }: Input): void => {
  const line = describeFpdu(bytes);
  demand(!/[\0-\x1f\x7f]/.test(line), 'a line of the trace holds control characters');
  demand(line.length <= MAX_LINE, `a line of the trace has ${line.length} characters`);
  if (bytes.length < FPDU_HEADER_LENGTH) return;
  const [phase, type, destination, source] = bytes.subarray(2, FPDU_HEADER_LENGTH) as unknown as [
    number,
    number,
    number,
    number,
  ];
  const name = fpduByCodes(phase, type);
  if (name === undefined || isDataFpdu(name)) return;
  asPeer(() => void decodeBody(name, destination, source, bytes.subarray(FPDU_HEADER_LENGTH)));
};

const frame = ({ pieces, tape: { dialect }, chance }: Input): void => {
  const reader = new FpduReader(dialect, chance.pick([undefined, false, true]));
  asPeer(() => {
    for (const piece of pieces) {
      reader.push(piece);
      for (let fpdu = reader.next(); fpdu !== undefined; fpdu = reader.next()) {
        const body = fpdu.body.reduce((sum, part) => sum + part.length, 0);
        demand(body === fpdu.length - FPDU_HEADER_LENGTH, `${fpdu.name} of ${fpdu.length} bytes has a body of ${body}`);
      }
      demand(reader.pending <= MAX_PENDING, `${reader.pending} bytes wait for the rest of an FPDU`);
    }
  });
};

const session = ({ pieces, tape, chance }: Input): void => {
  const { dialect, crc, to, tasks } = tape;
  // Mostly as in the session that the tape comes from: so it gets far.
  const mood = chance.pick([0, 0, 5, 30]);
  const manners = { ...(chance.below(4) === 0 ? mannersOf(chance, mood) : tape.manners), mood, chance };
  let autopilot: RequesterAutopilot | ServerAutopilot;
  if (to === 'server') {
    autopilot = new ServerAutopilot(new ServerSession({ dialect, now: 0, connectionId: 9 }), manners);
  } else {
    autopilot = new RequesterAutopilot(new RequesterSession({ dialect, now: 0, connectionId: 5 }, crc), manners, tasks);
    autopilot.connect();
  }
  let [taken, given, now] = [0, 0, 0];
  const turn = (): void => {
    autopilot.run();
    for (const output of autopilot.takeOutput()) given += output.length;
  };
  for (const piece of pieces) {
    autopilot.session.receive(piece, now);
    taken += piece.length;
    turn();
    const { phase, pending } = autopilot.session;
    demand(phase !== 'open' || pending <= MAX_PENDING, `${pending} bytes wait for the rest of an FPDU`);
    demand(given <= OWN_OUTPUT + MAX_OUTPUT_PER_BYTE * taken, `${given} bytes were answered to ${taken}`);
  }
  // Nothing more comes.
  for (let turns = 0; autopilot.session.deadline !== undefined; turns++) {
    demand(turns < MAX_TIMEOUTS, 'the session waits on and on');
    now = autopilot.session.deadline;
    autopilot.session.handleTimeout(now);
    turn();
  }
  autopilot.session.connectionLost(now);
  turn();
  demand(autopilot.session.phase === 'closed', `the connection is gone, and the session is ${autopilot.session.phase}`);
};

/** Runs one input. @throws whatever is wrong */
export const runInput = (input: Input): void => {
  if (input.target === 'decoder') decode(input);
  else if (input.target === 'framing') frame(input);
  else session(input);
};
