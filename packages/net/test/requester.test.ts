/** Files through a session that this side opened, against servers that say no, break off, or go silent. */
import { describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import type { DiagnosticCode } from '@pesit-node/protocol';
import type { PesitRequester, RequesterOptions, TransferTotals } from '../src/index.js';
import { articlesOf, connect, create, gate, rawServer, rejectionOf, select } from './support/harness.js';
import { EndlessSource, MemorySink, MemorySource } from './support/memory.js';
import { START } from './support/partner.js';
import { data, namesOf, respond } from './support/responder.js';
import type { Answers } from './support/responder.js';
import { BODIES, OK, complement, diagnostic, diagnosticOf, hex, valueOf } from './support/wire.js';
import type { Name, RawPeer, Seen } from './support/wire.js';

const local = (code: DiagnosticCode, text = 'words of this side'): PesitError =>
  new PesitError(text, { fault: 'local', diagnostic: code });

interface Server {
  readonly requester: PesitRequester;
  readonly heard: Seen[];
  /** The server's end. */
  readonly peer: RawPeer;
}

/** A session with a server that answers everything but `answers`. */
async function session(answers: Answers = {}, options: Partial<RequesterOptions> = {}): Promise<Server> {
  const heard: Seen[] = [];
  const connected = gate<RawPeer>();
  const server = await rawServer(async (peer) => {
    connected.open(peer);
    await respond(peer, answers, heard);
    peer.socket.end();
  });
  const requester = await connect(server.port, {
    connect: { requester: 'PART', server: 'SERV', accessType: 2, syncPoints: { intervalKb: 1, window: 2 } },
    ...options,
  });
  return { requester, heard, peer: await connected.passed };
}

const send = (requester: PesitRequester, more: { signal?: AbortSignal; articles?: Buffer[] } = {}) =>
  requester.sendFile({
    request: create,
    source: new MemorySource(more.articles ?? [Buffer.from('abc')]),
    ...(more.signal === undefined ? {} : { signal: more.signal }),
  });

function receive(requester: PesitRequester, more: { sink?: MemorySink; signal?: AbortSignal } = {}) {
  const sink = more.sink ?? new MemorySink();
  return requester.receiveFile({
    request: select,
    open: () => Promise.resolve({ from: START, sink }),
    stored: () => Promise.resolve(),
    ...(more.signal === undefined ? {} : { signal: more.signal }),
  });
}

const run = (
  requester: PesitRequester,
  direction: 'send' | 'receive',
  signal?: AbortSignal,
): Promise<TransferTotals> => {
  const more = signal === undefined ? {} : { signal };
  return direction === 'send' ? send(requester, more) : receive(requester, more);
};

/** Answers once otherwise, then as always. */
function once(name: Name, otherwise: (peer: RawPeer, seen: Seen) => void): Answers {
  const answers: Answers = {};
  answers[name] = (peer, seen) => {
    Reflect.deleteProperty(answers, name);
    otherwise(peer, seen);
  };
  // A deleted entry falls back to the default answer.
  return answers;
}

test('the normal course, both ways in one session', async () => {
  const { requester, heard } = await session();
  expect(await send(requester)).toEqual({ dataBytes: 3, articles: 1 });
  expect(requester.totals).toEqual({ dataBytes: 3, articles: 1 });
  const sink = new MemorySink();
  expect(await receive(requester, { sink })).toEqual({ dataBytes: 3, articles: 1 });
  expect(sink.articles.map(String)).toEqual(['abc']);
  await requester.release();
  const end = ['TRANS.END', 'CRF', 'DESELECT'];
  expect(namesOf(heard)).toEqual([
    'CONNECT',
    'CREATE',
    'ORF',
    'WRITE',
    'DTF.END',
    ...end,
    'SELECT',
    'ORF',
    'READ',
    ...end,
    'RELEASE',
  ]);
  const counts = heard.filter(({ name }) => name === 'TRANS.END').map(({ body }) => body.toString('hex'));
  expect(counts).toEqual(['1b01031c0101', '1b01031c0101']);
  expect(requester.usable).toBe(false);
});

describe('answers with a warning (PI 2 of type 1, §4.8.1.3)', () => {
  const warning = diagnostic('1-100');

  test.each([
    ['CREATE', 'send', `${warning} 19021000`],
    ['SELECT', 'receive', BODIES['ACK(SELECT)'].replace(OK, warning)],
    ['ORF', 'send', warning],
    ['WRITE', 'send', `${warning} 120100`],
  ] as const)('to %s: the file goes on', async (name, direction, body) => {
    const notices: string[] = [];
    const answers = once(name, (peer) => {
      peer.send(`ACK(${name})` as Name, body);
    });
    const { requester } = await session(answers, { notice: (text) => notices.push(text) });
    expect(await run(requester, direction)).toEqual({ dataBytes: 3, articles: 1 });
    expect(notices).toEqual([expect.stringContaining(`ACK(${name}) with the warning 1-100`)]);
  });

  test.each(['send', 'receive'] as const)('to TRANS.END (%s): not good enough for a file', async (direction) => {
    const answers = once('TRANS.END', (peer) => {
      peer.send('ACK(TRANS.END)', warning);
    });
    const { requester } = await session(answers);
    expect(await rejectionOf(run(requester, direction))).toMatchObject({ fault: 'refused', diagnostic: '1-100' });
    expect(requester.usable).toBe(true);
  });
});

describe('refusals', () => {
  test.each([
    ['CREATE', 'send', '2-226', `${diagnostic('2-226')} 19021000`],
    ['CREATE without what may be absent', 'send', '2-204', diagnostic('2-204')],
    ['SELECT', 'receive', '2-205', diagnostic('2-205')],
    ['ORF', 'send', '2-211', diagnostic('2-211')],
    ['ORF', 'receive', '2-211', diagnostic('2-211')],
    ['WRITE', 'send', '2-219', `${diagnostic('2-219')} 120100`],
    ['READ', 'receive', '2-214', diagnostic('2-214')],
    ['TRANS.END', 'send', '2-204', diagnostic('2-204')],
    ['TRANS.END', 'receive', '2-299', diagnostic('2-299')],
  ] as const)('of %s (%s): %s, and the session takes the next file', async (request, direction, code, body) => {
    const name = request.split(' ')[0] as Name;
    const answers = once(name, (peer) => {
      peer.send(`ACK(${name})` as Name, `${body} ${complement('no')}`);
    });
    const { requester, heard } = await session(answers);
    const error = await rejectionOf(run(requester, direction));
    expect(error).toMatchObject({ fault: 'refused', diagnostic: code });
    expect(error.message).toContain(`refused ${name}`);
    expect(error.message).toContain('(no)');
    expect(requester.usable).toBe(true);
    expect(await run(requester, direction)).toEqual({ dataBytes: 3, articles: 1 });
    await requester.release();
    expect(namesOf(heard)).not.toContain('ABORT');
  });

  test('data that the server itself ends with an error are not stored', async () => {
    const { requester } = await session({
      READ: (peer) => {
        peer.send('ACK(READ)', OK);
        peer.write(data(peer, 'half'));
        peer.send('DTF.END', diagnostic('2-213'));
      },
    });
    let stored = 0;
    const error = await rejectionOf(
      requester.receiveFile({
        request: select,
        open: () => Promise.resolve({ from: START, sink: new MemorySink() }),
        stored: () => Promise.resolve(void (stored += 1)),
      }),
    );
    expect(error).toMatchObject({ fault: 'refused', diagnostic: '2-213' });
    expect(stored).toBe(0);
  });
});

describe('interruptions by the server', () => {
  test('in the middle of sending', async () => {
    let interrupted = false;
    const answers: Answers = {
      SYN: (peer) => {
        // What is in flight behind it is dropped.
        if (!interrupted) peer.send('IDT', `${diagnostic('2-216')} 13010c ${complement('stopped')}`);
        interrupted = true;
      },
    };
    const { requester, heard } = await session(answers);
    const error = await rejectionOf(send(requester, { articles: articlesOf(Array.from({ length: 100 }, () => 900)) }));
    expect(error).toMatchObject({ fault: 'refused', diagnostic: '2-216', endCode: 12 });
    expect(error.message).toContain('(stopped)');
    await send(requester);
    expect(namesOf(heard).filter((name) => name !== 'SYN')).toEqual(
      ['CONNECT', 'CREATE', 'ORF', 'WRITE', 'ACK(IDT)', 'CRF', 'DESELECT'].concat([
        'CREATE',
        'ORF',
        'WRITE',
        'DTF.END',
        'TRANS.END',
        'CRF',
        'DESELECT',
      ]),
    );
  });

  test('in the middle of sending, while the source reads: what it read is not sent', async () => {
    const reading = gate();
    const slow = gate();
    const acknowledged = gate();
    const { requester, peer, heard } = await session({
      'ACK(IDT)': () => {
        acknowledged.open();
      },
    });
    const source = new EndlessSource(900);
    source.beforeFill = () => {
      reading.open();
      return slow.passed;
    };
    const failing = rejectionOf(requester.sendFile({ request: create, source }));
    await reading.passed;
    peer.send('IDT', `${diagnostic('2-216')} 13010c`);
    await acknowledged.passed;
    slow.open();
    expect((await failing).diagnostic).toBe('2-216');
    expect(requester.usable).toBe(true);
    expect(heard.some(({ name }) => name === 'DTF')).toBe(false);
  });

  test('in the middle of receiving', async () => {
    const { requester, heard } = await session({
      READ: (peer) => {
        peer.send('ACK(READ)', OK);
        peer.write(data(peer, 'half'));
        peer.send('IDT', `${diagnostic('2-213')} 130104`);
      },
    });
    const error = await rejectionOf(receive(requester));
    expect(error).toMatchObject({ fault: 'refused', diagnostic: '2-213', endCode: 4 });
    expect(requester.usable).toBe(true);
    await send(requester);
    expect(namesOf(heard)).toContain('ACK(IDT)');
  });

  test('instead of ACK(TRANS.END)', async () => {
    const { requester } = await session({
      'TRANS.END': (peer) => {
        peer.send('IDT', `${diagnostic('2-219')} 130104`);
      },
    });
    const error = await rejectionOf(send(requester));
    expect(error).toMatchObject({ fault: 'refused', diagnostic: '2-219', endCode: 4 });
    expect(requester.usable).toBe(true);
  });
});

describe('cancelled by a signal', () => {
  const ABORTED = { fault: 'local', diagnostic: '2-216', message: 'cancelled by the program' };

  test('before anything: nothing is sent, and the session stays', async () => {
    const { requester, heard } = await session();
    expect(await rejectionOf(run(requester, 'send', AbortSignal.abort()))).toMatchObject(ABORTED);
    expect(await rejectionOf(run(requester, 'receive', AbortSignal.abort()))).toMatchObject(ABORTED);
    await send(requester);
    await requester.release();
    expect(namesOf(heard).filter((name) => name === 'CREATE' || name === 'SELECT')).toEqual(['CREATE']);
  });

  test.each([
    ['send', 'CREATE'],
    ['send', 'ORF'],
    ['send', 'WRITE'],
    ['receive', 'SELECT'],
    ['receive', 'ORF'],
    ['receive', 'READ'],
  ] as const)('%s, while the answer to %s is awaited: only an ABORT can say so', async (direction, name) => {
    const asked = gate();
    const { requester, heard } = await session({
      [name]: () => {
        asked.open();
      },
    });
    const cancel = new AbortController();
    const failing = rejectionOf(run(requester, direction, cancel.signal));
    await asked.passed;
    cancel.abort();
    expect(await failing).toMatchObject(ABORTED);
    expect(requester.usable).toBe(false);
    await requester.release();
    expect(heard.at(-1)?.name).toBe('ABORT');
  });

  test.each([
    ['sending data', 'send', 'DTF'],
    ['the window is full', 'send', 'SYN'],
    ['all is sent', 'send', 'TRANS.END'],
    ['receiving data', 'receive', 'READ'],
    ['all was received', 'receive', 'TRANS.END'],
  ] as const)('while %s: IDT 16, and the session stays', async (_, direction, name) => {
    const reached = gate();
    const answers: Answers = {
      [name]: (peer: RawPeer) => {
        if (name !== 'READ') {
          reached.open();
          return;
        }
        peer.send('ACK(READ)', OK);
        peer.write(data(peer, 'half'));
      },
    };
    const { requester, heard } = await session(answers);
    const cancel = new AbortController();
    const sink = new MemorySink();
    if (name === 'READ') {
      sink.onWrite = () => {
        reached.open();
      };
    }
    const failing = rejectionOf(
      direction === 'receive'
        ? receive(requester, { sink, signal: cancel.signal })
        : name === 'TRANS.END'
          ? send(requester, { signal: cancel.signal })
          : requester.sendFile({ request: create, source: new EndlessSource(900), signal: cancel.signal }),
    );
    await reached.passed;
    cancel.abort();
    expect(await failing).toMatchObject(ABORTED);
    expect(requester.usable).toBe(true);
    const idt = heard.find((seen) => seen.name === 'IDT')!;
    expect([diagnosticOf(idt), valueOf(idt.body, 19)?.toString('hex')]).toEqual(['2-216', '10']);
    expect(namesOf(heard).slice(-3)).toEqual(['IDT', 'CRF', 'DESELECT']);
  });

  test('its reason is what the operation rejects with', async () => {
    const { requester } = await session();
    const reason = local('2-216', 'an operator has cancelled it');
    const cancel = new AbortController();
    const source = new EndlessSource(900);
    source.beforeFill = (fill) => {
      if (fill === 1) cancel.abort(reason);
    };
    expect(await rejectionOf(requester.sendFile({ request: create, source, signal: cancel.signal }))).toBe(reason);
    expect(requester.usable).toBe(true);
  });

  test('while the place for the file is prepared: the file is deselected', async () => {
    const { requester, heard } = await session();
    const cancel = new AbortController();
    const failing = requester.receiveFile({
      request: select,
      open: () => {
        cancel.abort();
        return Promise.resolve({ from: START, sink: new MemorySink() });
      },
      stored: () => Promise.resolve(),
      signal: cancel.signal,
    });
    expect(await rejectionOf(failing)).toMatchObject(ABORTED);
    expect(requester.usable).toBe(true);
    expect(namesOf(heard)).toEqual(['CONNECT', 'SELECT', 'DESELECT']);
  });

  test.each([
    ['resolves', () => Promise.resolve(), ABORTED],
    ['rejects', () => Promise.reject(local('2-219')), { diagnostic: '2-219' }],
  ])('while the file is stored, which then %s: IDT, and the session stays', async (_, finish, expected) => {
    const { requester, heard } = await session();
    const cancel = new AbortController();
    const failing = requester.receiveFile({
      request: select,
      open: () => Promise.resolve({ from: START, sink: new MemorySink() }),
      stored: () => {
        cancel.abort();
        return finish();
      },
      signal: cancel.signal,
    });
    expect(await rejectionOf(failing)).toMatchObject(expected);
    expect(requester.usable).toBe(true);
    expect(namesOf(heard).slice(-3)).toEqual(['IDT', 'CRF', 'DESELECT']);
  });

  test('when all is over it changes nothing', async () => {
    const { requester } = await session();
    const cancel = new AbortController();
    await run(requester, 'send', cancel.signal);
    cancel.abort();
    expect(requester.usable).toBe(true);
    await send(requester);
  });
});

describe('a server that breaks off at each step', () => {
  const STEPS = [
    ['send', 'CREATE'],
    ['send', 'ORF'],
    ['send', 'WRITE'],
    ['send', 'SYN'],
    ['send', 'DTF.END'],
    ['send', 'TRANS.END'],
    ['receive', 'SELECT'],
    ['receive', 'ORF'],
    ['receive', 'READ'],
    ['receive', 'TRANS.END'],
  ] as const;
  const work = (requester: PesitRequester, direction: 'send' | 'receive'): Promise<TransferTotals> =>
    direction === 'send' ? send(requester, { articles: articlesOf([900, 900, 900]) }) : receive(requester);

  test.each(STEPS.filter(([, name]) => name !== 'DTF.END'))(
    'silence (%s, %s): ABORT 3-317',
    async (direction, name) => {
      const { requester, heard } = await session(
        { [name]: () => undefined, ABORT: () => undefined },
        {
          timers: { response: 200, close: 30 },
          connect: { requester: 'PART', server: 'SERV', accessType: 2, syncPoints: { intervalKb: 1, window: 1 } },
        },
      );
      const failing = work(requester, direction);
      expect(await rejectionOf(failing)).toMatchObject({ fault: 'timeout', diagnostic: '3-317' });
      expect(requester.usable).toBe(false);
      await requester.release();
      expect(diagnosticOf(heard.at(-1)!)).toBe('3-317');
    },
  );

  test.each(STEPS)('the end (%s, %s): 3-310', async (direction, name) => {
    const { requester } = await session({
      [name]: (peer: RawPeer) => {
        peer.socket.end();
      },
    });
    expect(await rejectionOf(work(requester, direction))).toMatchObject({ fault: 'transport', diagnostic: '3-310' });
    expect(requester.usable).toBe(false);
    await requester.release();
  });

  test.each(STEPS)('a reset (%s, %s): 3-310', async (direction, name) => {
    const { requester } = await session({
      [name]: (peer: RawPeer) => {
        peer.reset();
      },
    });
    expect(await rejectionOf(work(requester, direction))).toMatchObject({ fault: 'transport', diagnostic: '3-310' });
    await requester.release();
  });

  test.each(STEPS)('ABORT (%s, %s)', async (direction, name) => {
    const { requester } = await session({
      [name]: (peer: RawPeer) => {
        peer.send('ABORT', `${diagnostic('3-316')} ${complement('maintenance')}`);
      },
    });
    const error = await rejectionOf(work(requester, direction));
    expect(error).toMatchObject({ fault: 'refused', diagnostic: '3-316' });
    expect(error.message).toContain('(maintenance)');
    expect(requester.usable).toBe(false);
  });

  test.each(['CRF', 'DESELECT'] as const)('at %s: the transfer was acknowledged, and has succeeded', async (name) => {
    for (const breakOff of [
      (peer: RawPeer) => peer.socket.end(),
      (peer: RawPeer) => peer.send('ABORT', diagnostic('3-316')),
    ]) {
      const { requester } = await session({ [name]: (peer: RawPeer) => breakOff(peer) });
      expect(await send(requester)).toEqual({ dataBytes: 3, articles: 1 });
      expect(requester.usable).toBe(false);
    }
  });

  test('between two files: the next operation says why', async () => {
    const { requester, peer } = await session();
    await send(requester);
    peer.send('ABORT', diagnostic('3-313'));
    peer.socket.end();
    await peer.closed;
    expect(await rejectionOf(send(requester))).toMatchObject({ fault: 'refused', diagnostic: '3-313' });
    expect(await rejectionOf(receive(requester))).toMatchObject({ fault: 'refused', diagnostic: '3-313' });
    await requester.release();
  });

  test('RELEASE is never answered: release ends all the same', async () => {
    const { requester } = await session({ RELEASE: () => undefined }, { timers: { response: 200, close: 20 } });
    await requester.release();
    expect(requester.usable).toBe(false);
  });
});

describe('negotiation and counts', () => {
  test('PI 25 that is lower cuts what is sent', async () => {
    const { requester, heard } = await session({
      CREATE: (peer) => {
        peer.send('ACK(CREATE)', `${OK} 19020100`);
      },
    });
    await send(requester, { articles: articlesOf([600, 100, 100]) });
    const frames = heard.filter(({ name }) => name.startsWith('DTF') && name !== 'DTF.END');
    expect(frames.map(({ name }) => name)).toEqual(['DTFDA', 'DTFMA', 'DTFFA', 'DTF', 'DTF']);
    expect(Math.max(...frames.map(({ body }) => body.length + 6))).toBeLessThanOrEqual(256);
  });

  test('a restart point that was never placed: IDT 2-214, and the session stays', async () => {
    const { requester, heard } = await session({
      WRITE: (peer) => {
        peer.send('ACK(WRITE)', `${OK} 120107`);
      },
    });
    const error = await rejectionOf(send(requester));
    expect(error).toMatchObject({ fault: 'local', diagnostic: '2-214' });
    expect(error.message).toContain('sync point 7');
    expect(diagnosticOf(heard.find(({ name }) => name === 'IDT')!)).toBe('2-214');
    expect(requester.usable).toBe(true);
  });

  test('a restart point that we know: only the rest is sent, and the totals are of the whole', async () => {
    const { requester, heard } = await session({
      WRITE: (peer) => {
        peer.send('ACK(WRITE)', `${OK} 120102`);
      },
    });
    const totals = await requester.sendFile({
      request: { ...create, restarted: true },
      source: new MemorySource([Buffer.from('rest')]),
      pointOf: (number) => Promise.resolve({ number, dataBytes: 2000, articles: 20 }),
    });
    expect(totals).toEqual({ dataBytes: 2004, articles: 21 });
    expect(heard.find(({ name }) => name === 'TRANS.END')!.body.toString('hex')).toBe('1b0207d41c0115');
  });

  test.each([
    ['PI 27 wrong', '1b0104 1c0101', 'send'],
    ['both wrong', '1b0104 1c0102', 'receive'],
  ] as const)('%s in ACK(TRANS.END): 3-319', async (_, counts, direction) => {
    const { requester, heard } = await session({
      'TRANS.END': (peer) => {
        peer.send('ACK(TRANS.END)', `${OK} ${counts}`);
      },
    });
    expect(await rejectionOf(run(requester, direction))).toMatchObject({ fault: 'remote', diagnostic: '3-319' });
    expect(requester.usable).toBe(false);
    await requester.release();
    expect(diagnosticOf(heard.at(-1)!)).toBe('3-319');
  });

  test.each([
    ['beside a right PI 27', '1b0103 1c0109'],
    ['alone', '1c0109'],
  ])('PI 28 wrong %s: tolerated, and noted', async (_, counts) => {
    const notices: string[] = [];
    const { requester } = await session(
      {
        'TRANS.END': (peer) => {
          peer.send('ACK(TRANS.END)', `${OK} ${counts}`);
        },
      },
      { notice: (text) => notices.push(text) },
    );
    expect(await send(requester)).toEqual({ dataBytes: 3, articles: 1 });
    expect(notices.join()).toContain('tolerated');
  });

  test('ACK(READ), all data, points and DTF.END in one segment', async () => {
    const { requester } = await session({
      READ: (peer) => {
        const parts = [
          peer.entity('ACK(READ)', OK),
          data(peer, 'one'),
          peer.entity('SYN', '140101'),
          data(peer, 'two'),
          peer.entity('DTF.END', OK),
        ];
        peer.write(Buffer.concat(parts));
      },
    });
    const sink = new MemorySink();
    expect(await receive(requester, { sink })).toEqual({ dataBytes: 6, articles: 2 });
    expect(sink.articles.map(String)).toEqual(['one', 'two']);
    expect(sink.points).toEqual([{ number: 1, dataBytes: 3, articles: 1 }]);
  });

  test.each([
    ['send', 'CREATE', 'ACK(CREATE)', BODIES['ACK(CREATE)']],
    ['send', 'ORF', 'ACK(ORF)', OK],
    ['send', 'WRITE', 'ACK(WRITE)', BODIES['ACK(WRITE)']],
    ['receive', 'SELECT', 'ACK(SELECT)', BODIES['ACK(SELECT)']],
    ['receive', 'READ', 'ACK(READ)', OK],
  ] as const)(
    'an ABORT in the same segment as a positive answer (%s, %s) is what counts',
    async (way, name, answer, body) => {
      const { requester } = await session({
        [name]: (peer: RawPeer) => {
          peer.write(Buffer.concat([peer.entity(answer, body), peer.entity('ABORT', diagnostic('3-316'))]));
        },
      });
      expect(await rejectionOf(run(requester, way))).toMatchObject({ fault: 'refused', diagnostic: '3-316' });
    },
  );

  test('an ABORT in the same segment as ACK(TRANS.END) comes too late', async () => {
    const { requester } = await session({
      'TRANS.END': (peer) => {
        peer.write(Buffer.concat([peer.entity('ACK(TRANS.END)', OK), peer.entity('ABORT', diagnostic('3-316'))]));
      },
    });
    expect(await send(requester)).toEqual({ dataBytes: 3, articles: 1 });
    expect(requester.usable).toBe(false);
  });

  test('an answer of the protocol in the wrong place: ABORT 3-311', async () => {
    const { requester, heard } = await session({
      CREATE: (peer) => {
        peer.send('ACK(WRITE)', BODIES['ACK(WRITE)']);
      },
    });
    expect(await rejectionOf(send(requester))).toMatchObject({ fault: 'remote', diagnostic: '3-311' });
    await requester.release();
    expect(diagnosticOf(heard.at(-1)!)).toBe('3-311');
  });
});

describe('faults of this side', () => {
  test.each([
    [local('2-215', 'the file has changed'), '2-215', '04'],
    [local('2-213'), '2-213', '04'],
    [new Error('a bug'), '2-215', '04'],
  ])('a source that fails in the middle (%#): IDT, and the session stays', async (fault, code, endCode) => {
    const { requester, heard } = await session();
    const source = new EndlessSource(900);
    source.beforeFill = (fill) => {
      if (fill === 1) throw fault;
    };
    const error = await rejectionOf(requester.sendFile({ request: create, source }));
    expect(error.diagnostic).toBe(code);
    expect(fault instanceof PesitError ? error : error.cause).toBe(fault);
    const idt = heard.find(({ name }) => name === 'IDT')!;
    expect([diagnosticOf(idt), valueOf(idt.body, 19)?.toString('hex')]).toEqual([code, endCode]);
    expect(await send(requester)).toEqual({ dataBytes: 3, articles: 1 });
  });

  test.each([
    [local('2-213'), '2-213'],
    [local('2-219'), '2-219'],
    [new Error('a bug'), '2-213'],
  ])('a sink that fails in the middle (%#): IDT, and the session stays', async (fault, code) => {
    const { requester, heard } = await session({
      READ: (peer) => {
        peer.send('ACK(READ)', OK);
        peer.write(data(peer, 'abc'));
      },
    });
    const sink = new MemorySink();
    sink.onWrite = () => {
      sink.fail(fault);
    };
    const error = await rejectionOf(receive(requester, { sink }));
    expect(error.diagnostic).toBe(code);
    expect(diagnosticOf(heard.find(({ name }) => name === 'IDT')!)).toBe(code);
    expect(namesOf(heard).slice(-3)).toEqual(['IDT', 'CRF', 'DESELECT']);
    await send(requester);
  });

  test('a sink that throws', async () => {
    const { requester } = await session();
    const sink = new MemorySink();
    sink.onWrite = () => {
      throw new Error('a bug');
    };
    expect(await rejectionOf(receive(requester, { sink }))).toMatchObject({ diagnostic: '2-213' });
    expect(requester.usable).toBe(true);
  });

  test('no place for the file: it is deselected, and the reason passed on', async () => {
    const { requester, heard } = await session();
    const reason = local('2-206');
    const failing = requester.receiveFile({
      request: select,
      open: () => Promise.reject(reason),
      stored: () => Promise.resolve(),
    });
    expect(await rejectionOf(failing)).toBe(reason);
    expect(namesOf(heard)).toEqual(['CONNECT', 'SELECT', 'DESELECT']);
    expect(diagnosticOf(heard.at(-1)!)).toBe('2-206');
    expect(await receive(requester)).toEqual({ dataBytes: 3, articles: 1 });
  });

  test('a file that cannot be stored: TRANS.END is not sent, the transfer is interrupted', async () => {
    const { requester, heard } = await session();
    const failing = requester.receiveFile({
      request: select,
      open: () => Promise.resolve({ from: START, sink: new MemorySink() }),
      stored: () => Promise.reject(local('2-219')),
    });
    expect((await rejectionOf(failing)).diagnostic).toBe('2-219');
    expect(namesOf(heard).slice(-3)).toEqual(['IDT', 'CRF', 'DESELECT']);
    expect(requester.usable).toBe(true);
  });

  test('a bug of the notice callback ends the session, not the process', async () => {
    const { requester } = await session(
      {
        CREATE: (peer) => {
          // ID.DST is not ours: tolerated, and noted.
          const other = (peer.otherId % 255) + 1;
          peer.write(
            Buffer.concat([
              hex(`000f 000f c030 ${other.toString(16).padStart(2, '0')} 00`),
              hex(BODIES['ACK(CREATE)']),
            ]),
          );
        },
      },
      {
        notice: () => {
          throw new Error('a bug');
        },
      },
    );
    expect(await rejectionOf(send(requester))).toMatchObject({ fault: 'local', diagnostic: '3-399' });
    expect(requester.usable).toBe(false);
  });

  test('two operations at a time: the second is refused, the first goes on', async () => {
    const asked = gate();
    const go = gate();
    const { requester } = await session({
      WRITE: async (peer) => {
        asked.open();
        await go.passed;
        peer.send('ACK(WRITE)', BODIES['ACK(WRITE)']);
      },
    });
    const first = send(requester);
    await asked.passed;
    await expect(send(requester)).rejects.toThrow('one operation at a time');
    go.open();
    expect(await first).toEqual({ dataBytes: 3, articles: 1 });
  });

  test('release in the middle of a transfer aborts it; abort does too', async () => {
    for (const end of ['release', 'abort'] as const) {
      const asked = gate();
      const { requester, heard } = await session({
        WRITE: () => {
          asked.open();
        },
      });
      const failing = rejectionOf(send(requester));
      await asked.passed;
      if (end === 'abort') requester.abort(local('3-312'));
      await requester.release();
      expect((await failing).diagnostic).toBe('3-312');
      expect(heard.at(-1)?.name).toBe('ABORT');
    }
  });

  test('totals are those of the file, from its beginning on', async () => {
    const asked = gate();
    const go = gate();
    let files = 0;
    const { requester } = await session({
      CREATE: async (peer) => {
        if (files++ === 1) {
          asked.open();
          await go.passed;
        }
        peer.send('ACK(CREATE)', BODIES['ACK(CREATE)']);
      },
    });
    await send(requester);
    const second = send(requester);
    await asked.passed;
    expect(requester.totals).toEqual({ dataBytes: 0, articles: 0 });
    go.open();
    await second;
    expect(requester.totals).toEqual({ dataBytes: 3, articles: 1 });
  });
});
