/** How a requester's transfers end otherwise: interrupted, cancelled, cut off, failed here. */
import { describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import type { DiagnosticCode } from '@pesit-node/protocol';
import type { PesitRequester, TransferTotals } from '../src/index.js';
import { articlesOf, create, gate, rejectionOf, select } from './support/harness.js';
import { EndlessSource, MemorySink } from './support/memory.js';
import { START } from './support/partner.js';
import { data, namesOf } from './support/responder.js';
import type { Answers } from './support/responder.js';
import { BODIES, OK, complement, diagnostic, diagnosticOf, hex, valueOf } from './support/wire.js';
import type { RawPeer } from './support/wire.js';
import { session, send, receive, run } from './support/requesting.js';

const local = (code: DiagnosticCode, text = 'words of this side'): PesitError =>
  new PesitError(text, { fault: 'local', diagnostic: code });

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
      expect(diagnosticOf(heard.at(-1))).toBe('3-317');
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
    expect(diagnosticOf(heard.find(({ name }) => name === 'IDT'))).toBe(code);
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
    expect(diagnosticOf(heard.at(-1))).toBe('2-206');
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
