/** Brings a pair of sessions into any state in which one side waits for the other, or for its own application. */
import type { Role, State } from '../../src/index.js';
import { START } from '../../src/testing/index.js';
import { CREATE, Pair, SELECT, refusal } from './pair.js';
import type { PairOptions } from './pair.js';

const SYNC = { intervalKb: 1, window: 2 };

/** A connected pair with sync points of 1 KB and a window of 2; nothing is served until `articles` are set. */
export function connected(options: PairOptions = {}): Pair {
  const pair = new Pair(options);
  pair.behaviour.answer = { syncPoints: SYNC };
  pair.connect({ syncPoints: SYNC });
  return pair;
}

type Step = (pair: Pair) => void;

const created: Step = (pair) => pair.step('ACK(CREATE)', () => pair.requester.create(CREATE));
const selected: Step = (pair) => pair.step('ACK(SELECT)', () => pair.requester.select(SELECT));
const opened: Step = (pair) => pair.step('ACK(ORF)', () => pair.requester.open());
const writing: Step = (pair) => {
  pair.openForWriting();
  pair.requester.startSending(START);
};
/** READ was answered, and the server has not put out anything yet. */
const reading: Step = (pair) => {
  selected(pair);
  opened(pair);
  const serve = pair.behaviour.ignore;
  pair.behaviour.ignore = ['READ'];
  pair.requester.read(START);
  pair.settle();
  pair.behaviour.ignore = serve;
  pair.server.acceptRead(START);
  pair.settle();
};
/** The server does not answer `name`. */
const unanswered =
  (name: Pair['behaviour']['ignore'][number], action: Step): Step =>
  (pair) => {
    pair.behaviour.ignore = [name];
    action(pair);
    pair.settle();
  };
const ended: Step = (pair) => {
  writing(pair);
  pair.requester.endData();
  pair.settle();
};
const served: Step = (pair) => {
  reading(pair);
  pair.server.endData();
  pair.settle();
};
const interrupted: Step = (pair) => {
  writing(pair);
  pair.requester.interrupt(16, refusal('2-216', 'stopped'));
  pair.settle();
};

/** The way from CN03 to each pair of states `requester server`. */
export const WAYS: Readonly<Record<string, Step>> = {
  'CN03 CN03': () => undefined,
  'CN04A CN04B': unanswered('RELEASE', (pair) => pair.requester.release()),
  'SF01A SF01B': unanswered('CREATE', (pair) => pair.requester.create(CREATE)),
  'SF02A SF02B': unanswered('SELECT', (pair) => pair.requester.select(SELECT)),
  'SF03 SF03': created,
  'SF04A SF04B': (pair) => {
    created(pair);
    unanswered('DESELECT', () => pair.requester.deselect())(pair);
  },
  'OF01A OF01B': (pair) => {
    created(pair);
    unanswered('ORF', () => pair.requester.open())(pair);
  },
  'OF02 OF02': (pair) => {
    created(pair);
    opened(pair);
  },
  'OF03A OF03B': (pair) => {
    created(pair);
    opened(pair);
    unanswered('CRF', () => pair.requester.close())(pair);
  },
  'TDE01A TDE01B': (pair) => {
    created(pair);
    opened(pair);
    unanswered('WRITE', () => pair.requester.write())(pair);
  },
  'TDE02A TDE02B': writing,
  'TDE07 TDE07': ended,
  'TDE08A TDE08B': (pair) => {
    ended(pair);
    unanswered('TRANS.END', () => pair.requester.endTransfer())(pair);
  },
  'TDL01A TDL01B': (pair) => {
    selected(pair);
    opened(pair);
    unanswered('READ', () => pair.requester.read(START))(pair);
  },
  'TDL02A TDL02B': reading,
  'TDL07 TDL07': served,
  'TDL08A TDL08B': (pair) => {
    served(pair);
    unanswered('TRANS.END', () => pair.requester.endTransfer())(pair);
  },
  'OF02ab OF02ab': interrupted,
  'OF03Aab OF03Bab': (pair) => {
    interrupted(pair);
    unanswered('CRF', () => pair.requester.close())(pair);
  },
  'SF03ab SF03ab': (pair) => {
    interrupted(pair);
    pair.step('ACK(CRF)', () => pair.requester.close());
  },
};

/** A pair in the given states. */
export function inStates(states: string, options: PairOptions = {}): Pair {
  const pair = connected(options);
  (WAYS[states] as Step)(pair);
  const reached = `${pair.requester.state} ${pair.server.state}`;
  if (reached !== states) throw new Error(`expected ${states}, got ${reached}`);
  return pair;
}

export const stateOf = (states: string, role: Role): State => states.split(' ')[role === 'requester' ? 0 : 1] as State;
