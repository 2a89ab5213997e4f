/** Timers, and transfers that one side interrupts. */
import { describe, expect, test } from '@jest/globals';
import { END_CODES, PesitError } from '../src/index.js';
import type { Role } from '../src/index.js';
import { START, articlesOf, diagnosticOf, entity, fpdu, hex, minimal, text, valueOf } from '../src/testing/index.js';
import { CREATE, Pair, errorOf, refusal } from './support/pair.js';
import { WAYS, connected, inStates } from './support/states.js';
import { ROLES, other, X, Y, eventsOf, expectLast } from './support/roles.js';

describe('timers', () => {
  const timers = { connect: 20_000, response: 10_000, idle: 100_000, close: 3_000 };

  test('Tc: nothing within it, or half a CONNECT, closes without a word', () => {
    for (const bytes of ['', '002f002f4020']) {
      const pair = new Pair({ timers });
      pair.server.receive(hex(bytes), pair.now);
      expect(pair.server.deadline).toBe(pair.now + 20_000);
      pair.server.handleTimeout(pair.now + 19_999);
      expect(pair.server.phase).toBe('open');
      pair.pass(20_000);
      expect(pair.server.phase).toBe('closed');
      expect(pair.fpdus('server')).toEqual([]);
      expect(errorOf(pair.serverEvents, 'ENDED')).toMatchObject({ fault: 'timeout', diagnostic: '3-317' });
    }
  });

  test('Tp: an answer to CONNECT that does not come', () => {
    const pair = new Pair({ timers });
    pair.behaviour.ignore = ['CONNECT'];
    pair.requester.connect({ requester: 'A', server: 'B', accessType: 2 });
    pair.settle();
    expect(pair.requester.deadline).toBe(pair.now + 10_000);
    expect(pair.server.deadline).toBeUndefined();
    pair.pass(10_000);
    // ID.DST of the ABORT is 0: the peer has not said its identifier.
    expect(expectLast(pair.fpdus('requester'), 'ABORT', '3-317').destination).toBe(0);
    expect(errorOf(pair.requesterEvents, 'ENDED')).toMatchObject({ fault: 'timeout', diagnostic: '3-317' });
  });

  /** Who waits for the peer in each state, and how long; the other side waits for its own application. */
  const waits: Readonly<Record<string, readonly [role: Role, wait: 'response' | 'idle']>> = {
    'CN03 CN03': ['server', 'idle'],
    'CN04A CN04B': ['requester', 'response'],
    'SF01A SF01B': ['requester', 'response'],
    'SF02A SF02B': ['requester', 'response'],
    'SF03 SF03': ['server', 'response'],
    'SF04A SF04B': ['requester', 'response'],
    'OF01A OF01B': ['requester', 'response'],
    'OF02 OF02': ['server', 'response'],
    'OF03A OF03B': ['requester', 'response'],
    'TDE01A TDE01B': ['requester', 'response'],
    'TDE02A TDE02B': ['server', 'response'],
    'TDE07 TDE07': ['server', 'response'],
    'TDE08A TDE08B': ['requester', 'response'],
    'TDL01A TDL01B': ['requester', 'response'],
    'TDL02A TDL02B': ['requester', 'response'],
    'TDL07 TDL07': ['server', 'response'],
    'TDL08A TDL08B': ['requester', 'response'],
    'OF02ab OF02ab': ['server', 'response'],
    'OF03Aab OF03Bab': ['requester', 'response'],
    'SF03ab SF03ab': ['server', 'response'],
  };

  test('every state has its row', () => {
    expect(Object.keys(waits).sort()).toEqual(Object.keys(WAYS).sort());
  });

  test.each(Object.entries(waits))('in %s', (states, [role, wait]) => {
    const pair = inStates(states, { timers });
    expect(pair[other(role)].deadline).toBeUndefined();
    expect(pair[role].deadline).toBe(pair.now + timers[wait]);
    pair.pass(timers[wait] - 1);
    expect(pair[role].phase).toBe('open');
    const diagnostic = wait === 'idle' ? '3-313' : '3-317';
    pair.pass(1);
    expectLast(pair.fpdus(role), 'ABORT', diagnostic);
    expect(errorOf(eventsOf(pair, role), 'ENDED')).toMatchObject({ fault: 'timeout', diagnostic });
    expect(errorOf(eventsOf(pair, other(role)), 'ENDED')).toMatchObject({ fault: 'refused', diagnostic });
  });

  test('every byte of data starts Tp anew, a byte of anything else does not', () => {
    const pair = inStates('TDE02A TDE02B', { timers });
    const bytes = entity(fpdu('DTF', Y, 0, Buffer.alloc(20, 1)));
    for (const byte of bytes.subarray(0, 20)) {
      pair.now += 9_000;
      pair.server.receive(Buffer.from([byte]), pair.now);
      expect(pair.server.deadline).toBe(pair.now + 10_000);
    }
    const idle = inStates('OF02 OF02', { timers });
    idle.now += 9_000;
    idle.server.receive(entity(minimal('CRF', Y, 0)).subarray(0, 5), idle.now);
    expect(idle.server.deadline).toBe(idle.now + 1_000);
  });

  test('a sender waits only while the peer holds it back', () => {
    const pair = inStates('TDE02A TDE02B', { timers });
    expect(pair.requester.deadline).toBeUndefined();
    pair.requester.setOutputBlocked(true, pair.now);
    expect(pair.requester.deadline).toBe(pair.now + 10_000);
    pair.requester.setOutputBlocked(false, pair.now + 5_000);
    expect(pair.requester.deadline).toBeUndefined();

    pair.behaviour.acknowledge = false;
    expect(pair.send(articlesOf([1000, 1000, 1000, 1000]))).toBe(2);
    expect(pair.requester.windowFull).toBe(true);
    pair.requester.touch(pair.now);
    expect(pair.requester.deadline).toBe(pair.now + 10_000);
    pair.now += 10_000;
    pair.requester.handleTimeout(pair.now);
    expect(errorOf([pair.requester.nextEvent()!], 'ENDED')).toMatchObject({ fault: 'timeout', diagnostic: '3-317' });
  });

  test('a peer that takes nothing has a time of its own, whatever it owes besides', () => {
    for (const states of ['TDE02A TDE02B', 'TDE08A TDE08B'] as const) {
      const pair = inStates(states, { timers: { ...timers, write: 4_000 } });
      pair.requester.setOutputBlocked(true, pair.now);
      expect(pair.requester.deadline).toBe(pair.now + 4_000);
      pair.now += 4_000;
      pair.requester.handleTimeout(pair.now);
      expect(errorOf([pair.requester.nextEvent()!], 'ENDED')).toMatchObject({
        fault: 'timeout',
        diagnostic: '3-317',
        message: expect.stringMatching(/^the partner took nothing for 4 s \(writing, .*\): check it and the line$/),
      });
    }
    const waiting = inStates('TDE08A TDE08B', { timers: { ...timers, write: 60_000 } });
    waiting.requester.setOutputBlocked(true, waiting.now);
    expect(waiting.requester.deadline).toBe(waiting.now + 60_000);
    waiting.requester.setOutputBlocked(false, waiting.now + 5_000);
    expect(waiting.requester.deadline).toBe(waiting.now + 15_000);
  });

  test('what is taken after the end gives no more time to close', () => {
    const pair = inStates('TDE02A TDE02B', { timers });
    pair.requester.abort(new PesitError('over', { fault: 'local', diagnostic: '3-399' }));
    const { deadline } = pair.requester;
    pair.requester.setOutputBlocked(false, pair.now + 1_000);
    expect(pair.requester.deadline).toBe(deadline);
  });

  test('a verb after a long time has its whole timer, when the caller says what time it is', () => {
    for (const [states, role, verb] of [
      ['SF01A SF01B', 'server', (pair: Pair) => pair.server.acceptCreate({ maxEntitySize: 4096 })],
      ['TDE08A TDE08B', 'server', (pair: Pair) => pair.server.acceptEnd()],
      ['CN03 CN03', 'requester', (pair: Pair) => pair.requester.create(CREATE)],
      ['TDL07 TDL07', 'requester', (pair: Pair) => pair.requester.endTransfer()],
    ] as const) {
      for (const touchFirst of [true, false]) {
        const pair = inStates(states, { timers });
        pair.now += 60_000;
        if (touchFirst) pair[role].touch(pair.now);
        verb(pair);
        if (!touchFirst) pair[role].touch(pair.now);
        expect([states, pair[role].deadline]).toEqual([states, pair.now + 10_000]);
      }
    }
  });

  test('IDT without an answer ends the connection', () => {
    const pair = inStates('TDE02A TDE02B', { timers });
    pair.requester.interrupt(END_CODES.suspended, refusal('2-216', 'stop'));
    pair.requester.takeOutput();
    expect(pair.requester.deadline).toBe(pair.now + 10_000);
    pair.pass(10_000);
    expectLast(pair.fpdus('requester'), 'ABORT', '3-317');
  });

  test('closing: the peer has its time to close, then the connection is destroyed', () => {
    const pair = inStates('OF02 OF02', { timers });
    pair.requester.abort(refusal('3-312', 'stop'));
    expect(pair.requester.deadline).toBe(pair.now + 3_000);
    pair.requester.handleTimeout(pair.now + 2_999);
    expect(pair.requester.phase).toBe('closing');
    pair.requester.handleTimeout(pair.now + 3_000);
    expect(pair.requester).toMatchObject({ phase: 'closed', deadline: undefined });
  });
});

describe('interruption', () => {
  const DATA = ['TDE02A TDE02B', 'TDE07 TDE07', 'TDE08A TDE08B', 'TDL02A TDL02B', 'TDL07 TDL07', 'TDL08A TDL08B'];

  const CODES = [4, 8, 12, 16];

  test.each(DATA.flatMap((states) => ROLES.flatMap((role) => CODES.map((code) => [states, role, code] as const))))(
    'in %s by the %s, end code %i',
    (states, role, code) => {
      const pair = inStates(states);
      expect(pair[role].interrupt(code, refusal('2-216', 'admin root on /dev/pts/3'))).toBe(true);
      // Nothing more of this transfer is sent, whatever was prepared.
      expect(pair[role].sending).toBe(false);
      expect(pair[role].endBurst()).toHaveLength(0);
      pair.settle();
      const idt = pair.fpdus(role).at(-1)!;
      expect([idt.name, diagnosticOf(idt)]).toEqual(['IDT', '2-216']);
      expect(valueOf(idt.body, 19)![0]).toBe(code);
      expect(valueOf(idt.body, 29)!.toString()).toBe('transfer stopped on purpose');
      expect(pair.fpdus(other(role)).at(-1)!.name).toBe('ACK(IDT)');
      const ours = eventsOf(pair, role).find((event) => event.kind === 'INTERRUPTED');
      const theirs = eventsOf(pair, other(role)).find((event) => event.kind === 'INTERRUPTED');
      expect(ours).toMatchObject({ by: 'us', endCode: code, error: { fault: 'local', diagnostic: '2-216' } });
      expect(theirs).toMatchObject({ by: 'peer', endCode: code, error: { fault: 'refused', diagnostic: '2-216' } });
      expect([pair.requester.state, pair.server.state]).toEqual(['OF02ab', 'OF02ab']);

      // The file is closed and deselected, and nothing else; then the session is as good as new.
      expect(() => (states.startsWith('TDE') ? pair.requester.write() : pair.requester.read(START))).toThrow('OF02ab');
      pair.behaviour.ignore = [];
      pair.leaveFile();
      expect(pair.writeFile(articlesOf([1000, 1000, 1000]), { transferId: 2 }).articles).toBe(3);
    },
  );

  test.each(Object.keys(WAYS).filter((states) => !DATA.includes(states)))('not in %s', (states) => {
    const pair = inStates(states);
    for (const role of ROLES) expect(pair[role].interrupt(4, refusal('2-213', 'x'))).toBe(false);
    expect(pair[ROLES[0]!].phase).toBe('open');
  });

  test.each(DATA)('two that cross in %s: the server answers, the requester drops', (states) => {
    const pair = inStates(states);
    pair.requester.interrupt(END_CODES.cancelledByRequester, refusal('2-216', 'mine'));
    pair.server.interrupt(END_CODES.error, refusal('2-213', 'yours'));
    pair.settle();
    expect(
      pair
        .fpdus('server')
        .slice(-2)
        .map(({ name }) => name),
    ).toEqual(['IDT', 'ACK(IDT)']);
    expect(pair.fpdus('requester').at(-1)!.name).toBe('IDT');
    const seen = ROLES.map((role) => eventsOf(pair, role).filter((event) => event.kind === 'INTERRUPTED'));
    expect(seen.map((events) => events.length)).toEqual([1, 1]);
    expect(seen[0]![0]).toMatchObject({ by: 'us', error: { diagnostic: '2-216' } });
    expect(seen[1]![0]).toMatchObject({ by: 'peer', error: { diagnostic: '2-216' } });
    pair.behaviour.ignore = [];
    pair.leaveFile();
    expect(pair.writeFile([], { transferId: 2 }).articles).toBe(0);
  });

  test('what was in flight when our IDT left is dropped', () => {
    const pair = inStates('TDE02A TDE02B');
    pair.server.interrupt(END_CODES.cancelledByServer, refusal('2-216', 'stop'));
    const late = ['DTF', 'DTFDA', 'DTFMA', 'SYN', 'DTF.END', 'TRANS.END'] as const;
    expect(pair.alone('server', ...late.map((name) => minimal(name, Y, 0)))).toMatchObject([{ name: 'IDT' }]);
    expect(pair.server.state).toBe('TDE05');
    expect(pair.alone('server', minimal('ACK(IDT)', Y, 0))).toEqual([]);
    expect(pair.server.state).toBe('OF02ab');
    expect(pair.serverEvents.filter((event) => event.kind === 'ARTICLES')).toEqual([]);
  });

  test('a burst that was begun when the IDT came is not sent', () => {
    const pair = inStates('TDE02A TDE02B');
    const burst = pair.requester.beginBurst(Buffer.alloc(200_000));
    burst.reserve(10);
    pair.alone('requester', fpdu('IDT', X, 0, '0203 0200d5 130104'));
    expect(pair.requester.endBurst()).toHaveLength(0);
    expect(errorOf(pair.requesterEvents, 'INTERRUPTED')).toMatchObject({ fault: 'refused', diagnostic: '2-213' });
    expect(() => pair.requester.endData()).toThrow('OF02ab');
  });

  test('a point that is stored too late is not acknowledged after an interruption', () => {
    const pair = inStates('TDE02A TDE02B');
    pair.behaviour.acknowledge = false;
    pair.send(articlesOf([1000, 1000]));
    pair.requester.interrupt(END_CODES.suspended, refusal('2-216', 'stop'));
    pair.settle();
    pair.server.acknowledgeSyn(1);
    expect(pair.server.takeOutput()).toEqual([]);
  });
});

describe('IDT that crosses our ACK(TRANS.END)', () => {
  const idt = fpdu('IDT', Y, 0, '0203 0200d8 130110');

  test.each(['writing', 'reading'] as const)('%s: acknowledged, and what was answered stays', (direction) => {
    const pair = inStates(direction === 'writing' ? 'TDE07 TDE07' : 'TDL07 TDL07');
    pair.step('ACK(TRANS.END)', () => pair.requester.endTransfer());
    const before = pair.serverEvents.length;
    expect(pair.alone('server', idt)).toEqual([{ name: 'ACK(IDT)', destination: X, source: 0, body: hex('') }]);
    expect(pair.server.state).toBe('OF02ab');
    expect(pair.serverEvents.slice(before)).toEqual([
      { kind: 'NOTICE', text: expect.stringMatching(/^IDT crossed our ACK\(TRANS\.END\)/) },
    ]);
    // The requester goes on as after any interruption.
    const rest = (['CRF', 'DESELECT'] as const).flatMap((name) => pair.alone('server', minimal(name, Y, 0)));
    expect(rest.map(({ name }) => name)).toEqual(['ACK(CRF)', 'ACK(DESELECT)']);
    expect(pair.server.state).toBe('CN03');
  });

  test.each(['OF02 OF02', 'TDE01A TDE01B', 'SF03 SF03'])('in %s, before any TRANS.END: 3-311', (states) => {
    const pair = inStates(states);
    expectLast(pair.alone('server', idt), 'ABORT', '3-311');
  });

  test('nor for the next file of the session', () => {
    const pair = connected();
    pair.writeFile([text('one')]);
    pair.step('ACK(CREATE)', () => pair.requester.create(CREATE));
    pair.step('ACK(ORF)', () => pair.requester.open());
    expectLast(pair.alone('server', idt), 'ABORT', '3-311');
  });
});
