/** What goes wrong between two sessions: ABORT in every state, timers, interruption, and peers that break the rules. */
import { describe, expect, test } from '@jest/globals';
import { END_CODES, PesitError } from '../src/index.js';
import type { Role, SessionEvent } from '../src/index.js';
import {
  START,
  articlesOf,
  difference,
  diagnosticOf,
  entity,
  fpdu,
  hex,
  minimal,
  prefixed,
  text,
  valueOf,
} from '../src/testing/index.js';
import { CREATE, Pair, errorOf, notices, refusal } from './support/pair.js';
import { WAYS, connected, inStates, stateOf } from './support/states.js';
import { ROLES, other, X, Y, eventsOf, expectLast } from './support/roles.js';

const idOf = (role: Role): number => (role === 'requester' ? X : Y);

describe('what an operator reads names the state in words', () => {
  const cases: readonly (readonly [string, (pair: Pair) => void, string])[] = [
    [
      'the partner closes',
      (pair) => {
        pair.requester.connectionLost(pair.now);
      },
      'the connection was closed by the partner (writing, sending data; state TDE02A): see its log, and check firewalls on the way',
    ],
    [
      'the line breaks',
      (pair) => {
        pair.requester.connectionLost(pair.now, new Error('read ECONNRESET'));
      },
      'the connection was lost, read ECONNRESET (writing, sending data; state TDE02A): check the line, and firewalls on the way',
    ],
    [
      'the partner is not where we are',
      (pair) => {
        pair.requester.receive(entity(fpdu('ACK(CRF)', 5, 0, '0203000000')), pair.now);
      },
      'ACK(CRF) was not expected here (writing, sending data; state TDE02A)',
    ],
  ];
  test.each(cases)('%s', (_, act, words) => {
    const pair = inStates('TDE02A TDE02B');
    act(pair);
    const ended: SessionEvent[] = [];
    for (let event = pair.requester.nextEvent(); event !== undefined; event = pair.requester.nextEvent())
      ended.push(event);
    expect(errorOf(ended, 'ENDED')?.message).toBe(words);
  });

  test('the partner is silent', () => {
    const pair = inStates('TDE02A TDE02B');
    pair.server.handleTimeout(pair.now + 30_000);
    const event = pair.server.nextEvent();
    expect(event?.kind === 'ENDED' ? event.error?.message : event).toBe(
      'the partner sent nothing for 30 s (writing, receiving data; state TDE02B): check it and the line',
    );
  });

  test('and the program that calls at the wrong time', () => {
    const pair = inStates('TDE02A TDE02B');
    expect(() => pair.requester.release()).toThrow(
      'RELEASE cannot be sent (writing, sending data; state TDE02A, open)',
    );
  });
});

describe.each(Object.keys(WAYS))('in %s', (states) => {
  test.each(ROLES)('ABORT by the %s ends both sides', (role) => {
    const pair = inStates(states);
    pair[role].abort(refusal('3-312', 'SIGTERM on node-7', 'the node is stopped'));
    expect(pair[role]).toMatchObject({ state: 'CN01', phase: 'closing' });
    pair.settle();
    const sent = expectLast(pair.fpdus(role), 'ABORT', '3-312');
    expect(sent).toMatchObject({ destination: idOf(other(role)), source: idOf(role) });
    expect(valueOf(sent.body, 29)!.toString()).toBe('the node is stopped');
    expect(errorOf(eventsOf(pair, role), 'ENDED')).toMatchObject({ fault: 'local', diagnostic: '3-312' });
    expect(errorOf(eventsOf(pair, other(role)), 'ENDED')).toMatchObject({ fault: 'refused', diagnostic: '3-312' });
    expect([pair.requester.phase, pair.server.phase]).toEqual(['closed', 'closed']);
    expect([pair.requester.deadline, pair.server.deadline]).toEqual([undefined, undefined]);
  });

  test.each(ROLES)('the %s takes an ABORT without PI codes, and one with parameters that are not its own', (role) => {
    for (const [body, diagnostic] of [
      ['0203 03013b', '3-315'],
      ['0203 03013b 6302 6e6f', '3-315'],
      ['03013b', '3-315'],
      ['', '3-399'],
      ['ff', '3-399'],
    ] as const) {
      const pair = inStates(states);
      expect(pair.alone(role, fpdu('ABORT', idOf(role), idOf(other(role)), body))).toEqual([]);
      expect(errorOf(eventsOf(pair, role), 'ENDED')).toMatchObject({ fault: 'refused', diagnostic });
      expect(pair[role].phase).toBe('closing');
    }
  });

  test.each(ROLES)('the connection of the %s is lost: 3-310, once', (role) => {
    const pair = inStates(states);
    const cause = new Error('ECONNRESET');
    pair[role].connectionLost(pair.now, cause);
    pair[role].connectionLost(pair.now, cause);
    const ended: SessionEvent[] = [];
    for (let event = pair[role].nextEvent(); event !== undefined; event = pair[role].nextEvent()) ended.push(event);
    expect(ended).toHaveLength(1);
    // After RELEASE a requester may close without waiting for RELCONF.
    if (stateOf(states, role) === 'CN04B') expect(errorOf(ended, 'ENDED')).toBeUndefined();
    else expect(errorOf(ended, 'ENDED')).toMatchObject({ fault: 'transport', diagnostic: '3-310', cause });
    expect(pair[role]).toMatchObject({ phase: 'closed', deadline: undefined });
  });

  test.each(ROLES)('an FPDU that the %s does not expect is 3-311 and says what and where', (role) => {
    const pair = inStates(states);
    const state = stateOf(states, role);
    // CONNECT and ACONNECT have no place in any of these states.
    const name = role === 'server' ? 'CONNECT' : 'ACONNECT';
    const sent = pair.alone(role, minimal(name, idOf(role), 1));
    const abort = expectLast(sent, 'ABORT', '3-311');
    expect(abort).toMatchObject({ destination: idOf(other(role)), source: idOf(role) });
    const complement = valueOf(abort.body, 29)!.toString();
    expect(complement).toContain(name);
    expect(complement).toContain(state);
    expect(errorOf(eventsOf(pair, role), 'ENDED')).toMatchObject({ fault: 'remote', got: name });
  });

  test.each(ROLES)('nothing is done any more by the %s when it has aborted', (role) => {
    const pair = inStates(states);
    pair[role].abort(refusal('3-399', 'bug'));
    pair[role].takeOutput();
    const bytes = entity(minimal('DTF', idOf(role), 0));
    pair[role].receive(bytes, pair.now);
    pair[role].receive(hex('ffffffffffff'), pair.now);
    pair[role].abort(refusal('3-399', 'bug'));
    expect(pair[role].interrupt(4, refusal('2-213', 'bug'))).toBe(false);
    expect(pair[role].takeOutput()).toEqual([]);
    const events: SessionEvent[] = [];
    for (let event = pair[role].nextEvent(); event !== undefined; event = pair[role].nextEvent()) events.push(event);
    expect(events.map(({ kind }) => kind)).toEqual(['ENDED']);
  });
});

describe('a sender that breaks the rules', () => {
  const writing = (): Pair => inStates('TDE02A TDE02B');
  const dtf = (body: Buffer, source = 0): Buffer => fpdu('DTF', Y, source, body);

  test('data before WRITE was answered', () => {
    for (const states of ['OF02 OF02', 'TDE01A TDE01B', 'SF03 SF03', 'CN03 CN03']) {
      expectLast(inStates(states).alone('server', dtf(text('x'))), 'ABORT', '3-311');
    }
  });

  test.each([
    ['an empty DTF', [dtf(Buffer.alloc(0))]],
    ['wrong counts in a multi-article DTF', [dtf(prefixed(text('a')), 2)]],
    ['DTFMA without DTFDA', [fpdu('DTFMA', Y, 0, text('x'))]],
    ['DTFFA without DTFDA', [fpdu('DTFFA', Y, 0, text('x'))]],
    ['SYN inside an article', [fpdu('DTFDA', Y, 0, text('x')), fpdu('SYN', Y, 0, '140101')]],
    ['DTF.END inside an article', [fpdu('DTFDA', Y, 0, text('x')), minimal('DTF.END', Y, 0)]],
    ['SYN 2 first', [dtf(text('x')), fpdu('SYN', Y, 0, '140102')]],
    ['SYN 0', [dtf(text('x')), fpdu('SYN', Y, 0, '140100')]],
    ['SYN 1 twice', [fpdu('SYN', Y, 0, '140101'), dtf(text('x')), fpdu('SYN', Y, 0, '140101')]],
    ['READ instead of data', [minimal('READ', Y, 0)]],
    ['data after DTF.END', [minimal('DTF.END', Y, 0), dtf(text('x'))]],
    ['ACK(SYN) from the sender', [minimal('ACK(SYN)', Y, 0)]],
    ['RESYN, which was not negotiated', [minimal('RESYN', Y, 0)]],
  ])('%s: ABORT 3-311', (_, fpdus) => {
    const pair = writing();
    expectLast(pair.alone('server', ...fpdus), 'ABORT', '3-311');
    expect(errorOf(pair.serverEvents, 'ENDED')).toMatchObject({ fault: 'remote', diagnostic: '3-311' });
  });

  test('SYN although no points were agreed', () => {
    const pair = new Pair();
    pair.connect();
    pair.openForWriting();
    const abort = expectLast(pair.alone('server', dtf(text('x')), minimal('SYN', Y, 0)), 'ABORT', '3-311');
    expect(valueOf(abort.body, 29)!.toString()).toContain('PI 7');
  });

  test('more points than the window: IDT 2-217', () => {
    const pair = writing();
    pair.behaviour.acknowledge = false;
    const syn = (number: string): Buffer => fpdu('SYN', Y, 0, `1401${number}`);
    expect(pair.alone('server', dtf(text('a')), syn('01'), dtf(text('b')), syn('02'))).toEqual([]);
    const idt = expectLast(pair.alone('server', dtf(text('c')), syn('03')), 'IDT', '2-217');
    expect(valueOf(idt.body, 19)![0]).toBe(END_CODES.error);
    expect(pair.server.state).toBe('TDE05');
  });

  test('no window, no limit', () => {
    const pair = new Pair();
    pair.behaviour.answer = { syncPoints: { intervalKb: 1, window: 0 } };
    pair.connect({ syncPoints: { intervalKb: 1, window: 0 } });
    pair.openForWriting();
    for (let number = 1; number <= 300; number++) {
      const value = Buffer.from([0x14, 2, number >> 8, number & 0xff]);
      expect(pair.alone('server', dtf(text('x')), fpdu('SYN', Y, 0, value))).toEqual([]);
    }
  });

  test('an article longer than PI 32: IDT 2-220, cancelled; the file can be closed', () => {
    const pair = connected();
    pair.openForWriting({ recordLength: 10 });
    const sent = pair.alone('server', dtf(Buffer.alloc(10, 1)), dtf(Buffer.alloc(11, 2)), dtf(Buffer.alloc(5, 3)));
    const idt = expectLast(sent, 'IDT', '2-220');
    expect(valueOf(idt.body, 19)![0]).toBe(END_CODES.cancelledByServer);
    expect(valueOf(idt.body, 29)!.toString()).toContain('PI 32');
    pair.alone('server', minimal('ACK(IDT)', Y, 0));
    expect(errorOf(pair.serverEvents, 'INTERRUPTED')).toMatchObject({
      fault: 'remote',
      diagnostic: '2-220',
      got: '11',
    });
    expect(pair.alone('server', minimal('CRF', Y, 0))).toMatchObject([{ name: 'ACK(CRF)' }]);
    expect(pair.alone('server', minimal('DESELECT', Y, 0))).toMatchObject([{ name: 'ACK(DESELECT)' }]);
  });

  test('read: an article longer than PI 32 of ACK(SELECT)', () => {
    const pair = connected();
    pair.behaviour.recordLength = 10;
    pair.behaviour.articles = [Buffer.alloc(11)];
    pair.openForReading();
    const idt = pair.fpdus('requester').find(({ name }) => name === 'IDT')!;
    expect([diagnosticOf(idt), valueOf(idt.body, 19)![0]]).toEqual(['2-220', END_CODES.cancelledByRequester]);
    expect([pair.requester.state, pair.server.state]).toEqual(['OF02ab', 'OF02ab']);
  });

  test.each([
    ['one byte less', '1b0103 1c0101'],
    ['one byte more', '1b0105 1c0101'],
    ['one article more', '1b0104 1c0102'],
    ['no bytes', '1b0100 1c0101'],
    ['articles alone, wrong', '1c0102'],
    ['bytes alone, wrong', '1b0103'],
  ])('TRANS.END with %s: 3-319', (_, counts) => {
    const pair = writing();
    pair.alone('server', dtf(text('four')), minimal('DTF.END', Y, 0));
    const abort = expectLast(pair.alone('server', fpdu('TRANS.END', Y, 0, counts)), 'ABORT', '3-319');
    expect(valueOf(abort.body, 29)!.toString()).toContain('4 bytes in 1 articles');
    expect(pair.serverEvents.some((event) => event.kind === 'FPDU' && event.name === 'TRANS.END')).toBe(false);
  });

  test.each(['1b0104 1c0101', '1b0104', '1c0101', '', '1b0400000004 1c0400000001'])(
    'TRANS.END with %s is right',
    (counts) => {
      const pair = writing();
      pair.alone('server', dtf(text('four')), minimal('DTF.END', Y, 0));
      expect(pair.alone('server', fpdu('TRANS.END', Y, 0, counts))).toMatchObject([{ name: 'ACK(TRANS.END)' }]);
    },
  );

  test('ID.SRC = 1 that contradicts itself: IDT 1-100, end code 4, and the style is told', () => {
    const pair = writing();
    pair.alone('server', dtf(prefixed(text('dressed')), 1));
    const idt = expectLast(pair.alone('server', dtf(text('plain'), 1)), 'IDT', '1-100');
    expect(valueOf(idt.body, 19)![0]).toBe(END_CODES.error);
    const styles = pair.serverEvents.flatMap((event) => (event.kind === 'STYLE' ? [event.style] : []));
    expect(styles).toEqual(['prefixed', 'plain']);
  });

  test('what is remembered of the partner decides from the first DTF on', () => {
    const pair = writing();
    pair.alone('server', dtf(text('plain'), 1), dtf(prefixed(text('x')), 1));
    expect(difference(pair.lastReceived, [text('plain'), hex('000178')])).toBeUndefined();
    expect(pair.serverEvents.filter((event) => event.kind === 'STYLE')).toHaveLength(1);
  });

  test('entities larger than PI 25 are taken', () => {
    const pair = writing();
    const article = Buffer.alloc(60_000, 1);
    expect(pair.alone('server', dtf(article))).toEqual([]);
    expect(difference(pair.lastReceived, [article])).toBeUndefined();
  });
});

describe('a server that answers wrongly', () => {
  const finished = (): Pair => {
    const pair = inStates('TDE02A TDE02B');
    pair.send([text('four')]);
    pair.requester.endData();
    pair.behaviour.ignore = ['TRANS.END'];
    pair.requester.endTransfer();
    pair.settle();
    return pair;
  };
  const answer = (counts: string): Buffer => fpdu('ACK(TRANS.END)', X, 0, '0203000000', counts);

  test.each([
    ['1b0103', 'wrong bytes'],
    ['1b0103 1c0101', 'wrong bytes, right articles'],
    ['1b0103 1c0107', 'both wrong'],
  ])('ACK(TRANS.END) with %s (%s): 3-319', (counts) => {
    const pair = finished();
    expectLast(pair.alone('requester', answer(counts)), 'ABORT', '3-319');
    expect(pair.requesterEvents.some((event) => event.kind === 'FPDU' && event.name === 'ACK(TRANS.END)')).toBe(false);
  });

  test.each(['1b0104 1c0107', '1c0107'])(
    'ACK(TRANS.END) with %s: wrong articles beside right or absent bytes are noted',
    (counts) => {
      const pair = finished();
      expect(pair.alone('requester', answer(counts))).toEqual([]);
      expect(notices(pair.requesterEvents).join()).toContain('tolerated');
      expect(pair.requester.state).toBe('OF02');
    },
  );

  test.each(['', '1b0104', '1b0104 1c0101'])('ACK(TRANS.END) with "%s" is right', (counts) => {
    const pair = finished();
    pair.alone('requester', answer(counts));
    expect([notices(pair.requesterEvents), pair.requester.state]).toEqual([[], 'OF02']);
  });

  test('an answer to something else', () => {
    const pair = inStates('SF01A SF01B');
    expectLast(pair.alone('requester', minimal('ACK(SELECT)', X, 0)), 'ABORT', '3-311');
  });

  test('two answers', () => {
    const pair = inStates('SF01A SF01B');
    expectLast(pair.alone('requester', minimal('ACK(CREATE)', X, 0), minimal('ACK(CREATE)', X, 0)), 'ABORT', '3-311');
  });

  test('a wrong ID.DST is noted once', () => {
    const pair = inStates('SF01A SF01B');
    pair.alone('requester', minimal('ACK(CREATE)', 77, 0));
    pair.requester.open();
    pair.alone('requester', minimal('ACK(ORF)', 77, 0));
    expect(notices(pair.requesterEvents)).toEqual([expect.stringContaining('ID.DST is 77, expected 5')]);
  });

  test('a wider window than asked: its points are taken and acknowledged', () => {
    const pair = new Pair();
    pair.requester.connect({ requester: 'A', server: 'B', accessType: 2, syncPoints: { intervalKb: 1, window: 1 } });
    pair.alone('requester', fpdu('ACONNECT', X, Y, '060102 0703 000102'));
    pair.requester.select({ fileIdentifier: { fileType: 0, fileName: 'F' }, transferId: 0, maxEntitySize: 4096 });
    pair.alone('requester', minimal('ACK(SELECT)', X, 0));
    pair.requester.open();
    pair.alone('requester', minimal('ACK(ORF)', X, 0));
    pair.requester.read(START);
    pair.alone('requester', minimal('ACK(READ)', X, 0));
    pair.behaviour.acknowledge = false;
    const data = [fpdu('DTF', X, 0, text('a')), fpdu('SYN', X, 0, '140101'), fpdu('DTF', X, 0, text('b'))];
    expect(pair.alone('requester', ...data, fpdu('SYN', X, 0, '140102'), fpdu('DTF', X, 0, text('c')))).toEqual([]);
    expectLast(pair.alone('requester', fpdu('SYN', X, 0, '140103')), 'IDT', '2-217');
  });

  test.each([
    ['0703 000102', ['ACK(SYN)', 'ACK(SYN)']],
    ['0703 000100', []],
    ['0703 000002', []],
  ])('a window that was not asked for (%s): acknowledged by whom waits for it', (answer, expected) => {
    const pair = new Pair();
    pair.requester.connect({ requester: 'A', server: 'B', accessType: 2, syncPoints: { intervalKb: 1, window: 0 } });
    pair.alone('requester', fpdu('ACONNECT', X, Y, `060102 ${answer}`));
    expect(pair.requester.terms?.syncWindow).toBe(0);
    pair.requester.select({ fileIdentifier: { fileType: 0, fileName: 'F' }, transferId: 0, maxEntitySize: 4096 });
    pair.alone('requester', minimal('ACK(SELECT)', X, 0));
    pair.requester.open();
    pair.alone('requester', minimal('ACK(ORF)', X, 0));
    pair.requester.read(START);
    pair.alone('requester', minimal('ACK(READ)', X, 0));
    const point = (number: string): Buffer[] => [fpdu('DTF', X, 0, text('a')), fpdu('SYN', X, 0, `14010${number}`)];
    const out = pair.alone('requester', ...point('1'), ...point('2'));
    const refused = answer === '0703 000002' ? ['ABORT'] : [];
    expect(out.map(({ name }) => name)).toEqual([...expected, ...refused]);
  });
});

describe('what the peer is told', () => {
  const secret = '/srv/inbox/.staging/7f3a';
  const local = new PesitError(`EACCES: permission denied, open '${secret}'`, { fault: 'local', diagnostic: '2-211' });

  test('local errors: the words of the diagnostic, or the text that was written for the peer', () => {
    const spoken = new PesitError(`EACCES ${secret}`, { fault: 'local', diagnostic: '2-211', peerText: 'not now' });
    for (const [error, words] of [
      [local, 'file cannot be opened'],
      [spoken, 'not now'],
    ] as const) {
      const abort = inStates('OF02 OF02');
      abort.server.abort(error);
      abort.settle();
      const idt = inStates('TDE02A TDE02B');
      idt.server.interrupt(4, error);
      idt.settle();
      const end = inStates('TDE02A TDE02B');
      end.behaviour.refuse = { 'TRANS.END': error, CREATE: error };
      end.requester.endData();
      end.settle();
      end.closeFile();
      end.requester.create(CREATE);
      end.settle();
      for (const pair of [abort, idt, end]) {
        const bytes = Buffer.concat(pair.sent.map((one) => one.bytes)).toString('latin1');
        expect(bytes).not.toContain('srv');
        expect(bytes).toContain(words);
      }
    }
  });

  test('PI 29 is cut to its maximum and is ISO 8859-1', () => {
    const pair = inStates('OF02 OF02');
    pair.server.abort(refusal('3-399', 'x', `é€\n${'x'.repeat(600)}`));
    pair.settle();
    const complement = valueOf(pair.fpdus('server').at(-1)!.body, 29)!;
    expect(complement).toHaveLength(254);
    expect(complement.toString('latin1').slice(0, 4)).toBe('é??x');
  });

  test('the text of a peer is cleaned before it is shown', () => {
    const pair = inStates('OF02 OF02');
    pair.alone('server', fpdu('ABORT', Y, X, '0203 030137 1d06 61 1b5b31 6d 20'));
    expect(errorOf(pair.serverEvents, 'ENDED')!.message).toContain('(a.[1m)');
  });
});

describe('messages', () => {
  test.each([
    ['MSG', [minimal('MSG', Y, 0)]],
    ['MSGDM, MSGMM, MSGFM', [minimal('MSGDM', Y, 0), minimal('MSGMM', Y, 0), minimal('MSGFM', Y, 0)]],
  ])('%s is shown and answered; the session goes on', (_, fpdus) => {
    const pair = connected();
    pair.behaviour.refuse = { MSG: refusal('2-209', 'no messages') };
    const answers = pair.alone('server', ...fpdus);
    expect(answers.map((one) => [one.name, diagnosticOf(one)])).toEqual([['ACK(MSG)', '2-209']]);
    expect(pair.server.state).toBe('CN03');
    const shown = pair.serverEvents.flatMap((event) => (event.kind === 'FPDU' ? [event.name] : []));
    expect(shown).toEqual(['CONNECT', 'MSG']);
  });
});

test('a verb that the state does not allow is a mistake of the program, and changes nothing', () => {
  const pair = connected();
  for (const verb of [
    () => pair.requester.open(),
    () => pair.requester.write(),
    () => pair.requester.read(START),
    () => pair.requester.endTransfer(),
    () => pair.requester.close(),
    () => pair.requester.deselect(),
    () => pair.requester.endData(),
    () => pair.requester.startSending(START),
    () => pair.requester.beginBurst(Buffer.alloc(100_000)),
    () => pair.server.acceptCreate({ maxEntitySize: 4096 }),
    () => pair.server.acceptConnection({}),
    () => pair.server.refuse(refusal('2-226', 'no')),
    () => pair.server.acceptEnd(),
    () => pair.server.acceptRelease(),
  ]) {
    expect(verb).toThrow();
    expect(verb).not.toThrow(PesitError);
  }
  expect([pair.requester.takeOutput(), pair.server.takeOutput()]).toEqual([[], []]);
  expect(pair.writeFile(articlesOf([1])).articles).toBe(1);
});
