/** Files through a session that this side opened, against servers that say no, break off, or go silent. */
import { describe, expect, test } from '@jest/globals';
import { connectTcp } from '../src/tcp-transport.js';
import { articlesOf, create, rejectionOf, select } from './support/harness.js';
import { MemorySink, MemorySource } from './support/memory.js';
import { START } from './support/partner.js';
import { data, namesOf } from './support/responder.js';
import type { Answers } from './support/responder.js';
import { BODIES, OK, complement, diagnostic, diagnosticOf } from './support/wire.js';
import type { Name, RawPeer, Seen } from './support/wire.js';
import { session, send, receive, run } from './support/requesting.js';

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

test('the end of a small file leaves in one write: its data, DTF.END and TRANS.END', async () => {
  const writes: Buffer[] = [];
  const { requester } = await session(
    {},
    {
      transport: async (to) => {
        const connected = await connectTcp(to);
        const { transport } = connected;
        const write = transport.write.bind(transport);
        transport.write = (parts, taken) => {
          writes.push(Buffer.concat(parts));
          write(parts, taken);
        };
        return connected;
      },
    },
  );
  expect(await send(requester)).toEqual({ dataBytes: 3, articles: 1 });
  await requester.release();
  // CONNECT, CREATE, ORF, WRITE, the data, CRF, DESELECT, RELEASE.
  expect(writes).toHaveLength(8);
  expect(writes[4]?.toString('latin1')).toContain('abc');
  // PI 27 and PI 28 of TRANS.END.
  expect(writes[4]?.subarray(-6).toString('hex')).toBe('1b01031c0101');
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
    expect(diagnosticOf(heard.find(({ name }) => name === 'IDT'))).toBe('2-214');
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
    expect(diagnosticOf(heard.at(-1))).toBe('3-319');
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
    expect(diagnosticOf(heard.at(-1))).toBe('3-311');
  });
});
