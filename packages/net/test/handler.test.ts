/** What the application says, and what the partner hears: refusals, faults, and bugs of every method. */
import { describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import type { DiagnosticCode } from '@pesit-node/protocol';
import { articlesOf, gate, listen, rawPeer } from './support/harness.js';
import type { MemorySink } from './support/memory.js';
import { EndlessSource, MemorySource } from './support/memory.js';
import { BODIES, OK, diagnostic, diagnosticOf, valueOf } from './support/wire.js';
import type { RawPeer, Seen } from './support/wire.js';
import { session } from './support/serving.js';

const refusal = (diagnostic: DiagnosticCode, peerText?: string): PesitError =>
  new PesitError('words for the operator: /srv/secret', {
    fault: 'local',
    diagnostic,
    ...(peerText === undefined ? {} : { peerText }),
  });

const said = (seen: Seen): [string, string, string | undefined] => [
  seen.name,
  diagnosticOf(seen),
  valueOf(seen.body, 29)?.toString('latin1'),
];

async function writeOneFile(peer: RawPeer): Promise<void> {
  await peer.openToWrite();
  peer.send('DTF', Buffer.from('abc'));
  peer.send('DTF.END', OK);
  await peer.exchange('TRANS.END', '1b0103 1c0101', 'ACK(TRANS.END)');
  await peer.closeFile();
}

describe('refusals', () => {
  test.each([
    ['3-304', undefined],
    ['3-301', 'ask your administrator'],
  ] as const)('connect: RCONNECT %s', async (diagnostic, words) => {
    const listening = await listen({}, (handler) => {
      handler.hooks.connect = () => Promise.reject(refusal(diagnostic, words));
    });
    const peer = await rawPeer(listening.port);
    const answer = await peer.exchange('CONNECT', BODIES.CONNECT, 'RCONNECT');
    expect(diagnosticOf(answer)).toBe(diagnostic);
    expect(answer.destination).toBe(7);
    const text = valueOf(answer.body, 29)?.toString('latin1');
    if (words !== undefined) expect(text).toBe(words);
    expect(text).not.toContain('secret');
    peer.socket.end();
    expect((await listening.handlers[0]!.over)?.diagnostic).toBe(diagnostic);
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });

  test.each(['create', 'select', 'write', 'read'] as const)('%s: the session takes the next file', async (method) => {
    const { peer, handler } = await session((handler) => {
      handler.source = () => new MemorySource(articlesOf([3]));
      handler.hooks[method] = () => {
        handler.hooks[method] = undefined as never;
        return Promise.reject(refusal('2-226', 'not today'));
      };
    });
    const name = method.toUpperCase() as 'CREATE' | 'SELECT' | 'WRITE' | 'READ';
    if (method === 'write') await peer.exchange('CREATE', BODIES.CREATE, 'ACK(CREATE)');
    if (method === 'read') await peer.exchange('SELECT', BODIES.SELECT, 'ACK(SELECT)');
    const opened = method === 'write' || method === 'read';
    if (opened) await peer.exchange('ORF', '', 'ACK(ORF)');
    const bodies = { CREATE: BODIES.CREATE, SELECT: BODIES.SELECT, WRITE: '', READ: BODIES.READ };
    const answer = await peer.exchange(name, bodies[name], `ACK(${name})`);
    expect(said(answer)).toEqual([`ACK(${name})`, '2-226', 'not today']);
    if (opened) await peer.closeFile();
    await writeOneFile(peer);
    await peer.release();
    await handler.over;
    expect(handler.imbalance).toEqual([]);
    expect(handler.failures.map(({ diagnostic }) => diagnostic)).toEqual(opened ? ['2-226'] : []);
    if (opened) expect(handler.calls.slice(2, 4)).toEqual(['FAILED 2-226', 'DESELECTED']);
  });

  test('endTransfer: a negative ACK(TRANS.END), after transferFailed', async () => {
    const { peer, handler } = await session((handler) => {
      handler.hooks.endTransfer = () => {
        handler.hooks.endTransfer = () => undefined;
        return Promise.reject(refusal('2-219'));
      };
    });
    await peer.openToWrite();
    peer.send('DTF.END', OK);
    const answer = await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
    expect(diagnosticOf(answer)).toBe('2-219');
    expect(handler.calls.slice(1)).toEqual(['CREATE FILE', 'END', 'FAILED 2-219']);
    await peer.closeFile();
    await writeOneFile(peer);
  });

  test.each(['with its end', 'after its end'])(
    'IDT %s: the session goes on, and what was delivered stays',
    async (when) => {
      const { peer, handler } = await session(() => undefined);
      await peer.openToWrite();
      peer.send('DTF', Buffer.from('abc'));
      peer.send('DTF.END', OK);
      const idt = peer.entity('IDT', `${diagnostic('2-216')} 130110`);
      if (when === 'with its end') {
        peer.write(Buffer.concat([peer.entity('TRANS.END'), idt]));
      } else {
        await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
        peer.write(idt);
      }
      await peer.expect('ACK(IDT)');
      await peer.closeFile();
      await peer.release();
      await handler.over;
      expect(handler.imbalance).toEqual([]);
      const expected = when === 'with its end' ? ['FAILED 2-216 end 16'] : ['END'];
      expect(handler.calls.slice(2)).toEqual([...expected, 'DESELECTED', 'ENDED released']);
    },
  );

  test('a second WRITE for a file that is over is refused without asking', async () => {
    const { peer, handler } = await session(() => undefined);
    await peer.openToWrite();
    peer.send('DTF.END', OK);
    await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
    expect(diagnosticOf(await peer.exchange('WRITE', '', 'ACK(WRITE)'))).toBe('2-226');
    await peer.closeFile();
    expect(handler.sinks).toHaveLength(1);
    expect(handler.calls.slice(1)).toEqual(['CREATE FILE', 'END', 'DESELECTED']);
  });

  test('a file that is deselected without a transfer has failed', async () => {
    const { peer, handler } = await session(() => undefined);
    await peer.exchange('CREATE', BODIES.CREATE, 'ACK(CREATE)');
    await peer.exchange('DESELECT', OK, 'ACK(DESELECT)');
    await peer.release();
    await handler.over;
    expect(handler.calls.slice(1)).toEqual(['CREATE FILE', 'FAILED 2-223', 'DESELECTED', 'ENDED released']);
  });

  test('data that the partner itself ended with an error are not delivered', async () => {
    const { peer, handler } = await session(() => undefined);
    await peer.openToWrite();
    peer.send('DTF', Buffer.from('half'));
    peer.send('DTF.END', '0203 0200d5 1d03 626164');
    const answer = await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
    expect(diagnosticOf(answer)).toBe('2-213');
    await peer.closeFile();
    expect(handler.calls.slice(1)).toEqual(['CREATE FILE', 'FAILED 2-213', 'DESELECTED']);
    expect(handler.failures[0]!.message).toMatch(/ended the data with an error.*bad/);
    await writeOneFile(peer);
  });

  test('a message is refused, the session stays', async () => {
    const { peer } = await session(() => undefined);
    const answer = await peer.exchange('MSG', '0909 0b0100 0c04 46494c45 0d0101 5b024869', 'ACK(MSG)');
    expect(diagnosticOf(answer)).toBe('2-209');
    await writeOneFile(peer);
  });

  test('what the protocol itself refuses is told in its turn, and nobody is asked', async () => {
    const { peer, handler } = await session(() => undefined);
    for (const wrong of [BODIES.CREATE.replace('0d0105', '0d0100'), BODIES.CREATE.replace('20020400', '20020000')])
      await peer.exchange('CREATE', wrong, 'ACK(CREATE)');
    await writeOneFile(peer);
    expect(handler.calls.slice(1)).toEqual([
      ...['REFUSED CREATE 3-318', 'REFUSED CREATE 2-200'],
      ...['CREATE FILE', 'END', 'DESELECTED'],
    ]);
  });
});

describe('a disk that fails in the middle', () => {
  test.each([
    ['2-213', '04'],
    ['2-219', '04'],
    ['2-220', '0c'],
  ] as const)('writing, %s: IDT with end code %s', async (diagnostic, endCode) => {
    const { peer, handler } = await session(() => undefined);
    await peer.openToWrite();
    handler.sinks[0]!.onWrite = () => handler.sinks[0]!.fail(refusal(diagnostic));
    peer.send('DTF', Buffer.from('abc'));
    const idt = await peer.expect('IDT');
    expect(diagnosticOf(idt)).toBe(diagnostic);
    expect(valueOf(idt.body, 19)?.toString('hex')).toBe(endCode);
    // In flight, and dropped.
    peer.send('DTF', Buffer.from('def'));
    peer.send('DTF.END', OK);
    peer.send('ACK(IDT)');
    await peer.closeFile();
    await writeOneFile(peer);
    await peer.release();
    await handler.over;
    expect(handler.imbalance).toEqual([]);
    expect(handler.calls[2]).toBe(`FAILED ${diagnostic} end ${Number.parseInt(endCode, 16)}`);
  });

  test.each([
    [
      'drained',
      (sink: MemorySink) => {
        sink.full = true;
        sink.stored = () => new Promise(() => undefined);
      },
    ],
    ['a checkpoint', (sink: MemorySink) => (sink.stored = () => Promise.reject(refusal('2-219')))],
  ] as const)('%s rejects', async (_, arm) => {
    const { peer, handler } = await session(() => undefined);
    await peer.openToWrite();
    const sink = handler.sinks[0]!;
    arm(sink);
    sink.onWrite = () => {
      if (sink.full) setImmediate(() => sink.fail(refusal('2-219')));
    };
    peer.send('DTF', Buffer.from('abc'));
    peer.send('SYN', '140101');
    expect(diagnosticOf(await peer.expect('IDT'))).toBe('2-219');
    peer.send('ACK(IDT)');
    await peer.closeFile();
    expect(handler.calls.slice(1)).toEqual(['CREATE FILE', 'FAILED 2-219 end 4', 'DESELECTED']);
    expect(handler.bugs).toEqual([]);
  });

  test('while the end is there already: the file is not delivered', async () => {
    const { peer, handler } = await session(() => undefined);
    await peer.openToWrite();
    handler.sinks[0]!.onWrite = () => {
      handler.sinks[0]!.fail(refusal('2-219'));
    };
    const whole = [peer.entity('DTF', Buffer.from('abc')), peer.entity('DTF.END', OK), peer.entity('TRANS.END')];
    peer.write(Buffer.concat(whole));
    expect(diagnosticOf(await peer.expect('IDT'))).toBe('2-219');
    peer.send('ACK(IDT)');
    await peer.closeFile();
    expect(handler.calls.slice(1)).toEqual(['CREATE FILE', 'FAILED 2-219 end 4', 'DESELECTED']);
  });

  test('reading: IDT, and the session serves the next file', async () => {
    const { peer, handler } = await session((handler) => {
      handler.source = () => {
        const source = new EndlessSource(500);
        source.beforeFill = (fill) => {
          if (fill === 0) throw refusal('2-213');
        };
        handler.source = () => new MemorySource([Buffer.from('abc')]);
        return source;
      };
    });
    await peer.openToRead();
    expect(diagnosticOf(await peer.expect('IDT'))).toBe('2-213');
    peer.send('ACK(IDT)');
    await peer.closeFile();
    await peer.openToRead();
    expect((await peer.expect('DTF')).body.toString()).toBe('abc');
    await peer.expect('DTF.END');
    await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
    await peer.closeFile();
    await peer.release();
    await handler.over;
    expect(handler.imbalance).toEqual([]);
  });

  test('a source that is still reading when its transfer is interrupted does no harm to the next', async () => {
    const reading = gate();
    const slow = gate();
    const { peer, handler } = await session((handler) => {
      handler.source = () => {
        const source = new EndlessSource(500);
        source.beforeFill = () => {
          reading.open();
          return slow.passed;
        };
        handler.source = () => new MemorySource([Buffer.from('second')]);
        return source;
      };
    });
    await peer.openToRead();
    await reading.passed;
    await peer.exchange('IDT', '0203 0200d8 130110', 'ACK(IDT)');
    peer.send('CRF', OK);
    // The application is told when nothing reads its file any more, and not before.
    expect(handler.failures).toEqual([]);
    slow.refuse(new Error('late'));
    await peer.expect('ACK(CRF)');
    expect(handler.calls.slice(2)).toEqual(['FAILED 2-216 end 16']);
    await peer.exchange('DESELECT', OK, 'ACK(DESELECT)');
    await peer.openToRead();
    expect((await peer.expect('DTF')).body.toString()).toBe('second');
    await peer.expect('DTF.END');
    expect(handler.bugs).toEqual([]);
  });
});

describe('the connection goes while the application is asked', () => {
  test.each(['create', 'select', 'write', 'read', 'endTransfer'] as const)('%s', async (method) => {
    const asked = gate();
    const answer = gate();
    const listening = await listen({}, (handler) => {
      handler.source = () => new EndlessSource(100);
      handler.hooks[method] = () => {
        asked.open();
        return answer.passed;
      };
    });
    const peer = await rawPeer(listening.port);
    await peer.open();
    const handler = listening.handlers[0]!;
    if (method === 'create') peer.send('CREATE', BODIES.CREATE);
    else if (method === 'select') peer.send('SELECT', BODIES.SELECT);
    else {
      const [name, body] =
        method === 'read' ? (['SELECT', BODIES.SELECT] as const) : (['CREATE', BODIES.CREATE] as const);
      await peer.exchange(name, body, `ACK(${name})`);
      await peer.exchange('ORF', '', 'ACK(ORF)');
      if (method === 'read') peer.send('READ', BODIES.READ);
      else peer.send('WRITE');
      if (method === 'endTransfer') {
        await peer.expect('ACK(WRITE)');
        peer.send('DTF.END', OK);
        peer.send('TRANS.END');
      }
    }
    await asked.passed;
    peer.reset();
    // When a later connection is served, the listener has seen the reset.
    await (await rawPeer(listening.port)).open();
    expect(handler.log.at(-1)).not.toMatch(/^ENDED/);
    answer.open();
    expect((await handler.over)?.diagnostic).toBe('3-310');
    expect(handler.imbalance).toEqual([]);
    // A file whose delivery had begun is delivered: the partner will ask again, and be told.
    expect(handler.failures).toHaveLength(method === 'endTransfer' ? 0 : 1);
  });
});

describe('cancel and abort by the application', () => {
  const reason = refusal('2-216', 'stopped by an administrator');

  test('cancel interrupts a reading with IDT 12', async () => {
    const { peer, handler } = await session((handler) => (handler.source = () => new EndlessSource(4000)));
    await peer.openToRead();
    await peer.expect('DTF');
    handler.connection.cancel(reason);
    let seen = await peer.next();
    while (seen?.name === 'DTF' || seen?.name === 'SYN') seen = await peer.next();
    expect(said(seen!)).toEqual(['IDT', '2-216', 'stopped by an administrator']);
    expect(valueOf(seen!.body, 19)?.toString('hex')).toBe('0c');
    peer.send('ACK(IDT)');
    await peer.closeFile();
    expect(handler.calls.slice(2)).toEqual(['FAILED 2-216 end 12', 'DESELECTED']);
  });

  test('cancel while the file is being delivered: one end, whichever came first', async () => {
    const asked = gate();
    const answer = gate();
    const { peer, handler } = await session((handler) => {
      handler.hooks.endTransfer = () => {
        asked.open();
        return answer.passed;
      };
    });
    await peer.openToWrite();
    peer.send('DTF.END', OK);
    peer.send('TRANS.END');
    await asked.passed;
    handler.connection.cancel(reason);
    expect(diagnosticOf(await peer.expect('IDT'))).toBe('2-216');
    answer.open();
    peer.send('ACK(IDT)');
    await peer.closeFile();
    await peer.release();
    await handler.over;
    expect(handler.imbalance).toEqual([]);
    expect(handler.calls.slice(1)).toEqual(['CREATE FILE', 'END', 'DESELECTED', 'ENDED released']);
  });

  test.each(['cancel', 'abort'] as const)('%s without a transfer aborts', async (verb) => {
    const { peer, handler } = await session(() => undefined);
    await peer.exchange('CREATE', BODIES.CREATE, 'ACK(CREATE)');
    handler.connection[verb](reason);
    expect(said(await peer.expect('ABORT'))).toEqual(['ABORT', '2-216', 'stopped by an administrator']);
    peer.socket.end();
    expect(await handler.over).toBe(reason);
    expect(handler.imbalance).toEqual([]);
    handler.connection.cancel(reason);
    handler.connection.abort(reason);
  });

  test('terms and totals are there while they are true', async () => {
    const { peer, handler } = await session(() => undefined);
    expect(handler.connection.terms).toMatchObject({ syncInterval: 1024, syncWindow: 2 });
    expect(handler.connection.remoteAddress).toBe('127.0.0.1');
    await peer.openToWrite();
    peer.send('DTF', Buffer.alloc(600));
    peer.send('SYN', '140101');
    await peer.expect('ACK(SYN)');
    expect(handler.connection.totals).toEqual({ dataBytes: 600, articles: 1 });
  });
});
