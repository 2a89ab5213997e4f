/** A server that goes back in the file, and our requester with it (RESYN). */
import { describe, expect, test } from '@jest/globals';
import type { PesitRequester, RequesterOptions } from '../src/index.js';
import { connect, create, gate, rawServer, rejectionOf, select } from './support/harness.js';
import { MemorySink, MemorySource } from './support/memory.js';
import { START } from './support/partner.js';
import { respond } from './support/responder.js';
import { OK, valueOf } from './support/wire.js';
import type { RawPeer, Seen } from './support/wire.js';
import { ARTICLES, SYNC, at, point } from './support/resynchronising.js';

/** A server by hand that takes our file, and what it does at one moment. */
const notices = new Set<() => void>();

async function server(
  answers: Parameters<typeof respond>[1],
  options: Partial<RequesterOptions> = {},
): Promise<{ requester: PesitRequester; heard: Seen[] }> {
  const heard: Seen[] = [];
  const raw = await rawServer(async (peer) => {
    await respond(peer, { CONNECT: () => peer.send('ACONNECT', '060102 0703000104 170101'), ...answers }, heard);
    peer.socket.end();
  });
  const requester = await connect(raw.port, {
    connect: { requester: 'PART', server: 'SERV', accessType: 2, syncPoints: SYNC, resynchronisation: true },
    notice: () => {
      for (const told of notices) told();
    },
    ...options,
  });
  return { requester, heard };
}

const namesAndPoints = (heard: readonly Seen[]): string[] =>
  heard
    .map(({ name, body }) =>
      name.includes('SYN') ? `${name} ${(valueOf(body, 20) ?? valueOf(body, 18))?.at(-1)}` : name,
    )
    .filter((name) => name !== 'DTF');

describe('a server of ours goes back', () => {
  const FILE = ARTICLES.slice(0, 7);
  const END = ['DTF.END', 'TRANS.END', 'CRF', 'DESELECT'];
  const POINTS = ['SYN 1', 'SYN 2', 'SYN 3'];

  test.each([
    ['at DTF.END', 'DTF.END', ['DTF.END', 'TRANS.END', 'ACK(RESYN) 2', 'SYN 3', ...END]],
    ['at TRANS.END', 'TRANS.END', ['DTF.END', 'TRANS.END', 'ACK(RESYN) 2', 'SYN 3', ...END]],
  ] as const)('%s: the file is sent again from there, and ended again', async (_, when, expected) => {
    let once = false;
    const { requester, heard } = await server({
      SYN: (peer, seen) => {
        // A receiver does not go back behind what it has acknowledged.
        if (seen.body.at(-1)! < 3 || once) peer.send('ACK(SYN)', seen.body);
      },
      [when]: (peer: RawPeer) => {
        if (!once) peer.send('RESYN', point(2));
        else if (when === 'TRANS.END') peer.send('ACK(TRANS.END)', OK);
        once = true;
      },
      ...(when === 'DTF.END'
        ? {
            // The first one crosses our RESYN.
            'TRANS.END': (peer: RawPeer) => {
              if (heard.filter(({ name }) => name === 'TRANS.END').length > 1) peer.send('ACK(TRANS.END)', OK);
            },
          }
        : {}),
    });
    const source = new MemorySource(FILE);
    expect(await requester.sendFile({ request: create, source })).toEqual({ dataBytes: 3500, articles: 7 });
    expect(source.returns).toEqual([at(2)]);
    expect(namesAndPoints(heard).slice(4)).toEqual([...POINTS, ...expected]);
    expect(requester.usable).toBe(true);
  });

  test('while the file is read: the burst that is filled is void, and so is its end', async () => {
    const asked = gate();
    let once = false;
    const { requester, heard } = await server({
      CONNECT: (peer) => peer.send('ACONNECT', '060102 0703000102 170101'),
      SYN: async (peer, seen) => {
        if (seen.body.at(-1) === 2 && !once) {
          once = true;
          await asked.passed;
          peer.send('RESYN', point(1));
        } else peer.send('ACK(SYN)', seen.body);
      },
    });
    const source = new MemorySource(FILE);
    const wentBack = gate();
    // Two points fit into the window: the rest is a burst of its own, and it is the last.
    source.beforeFill = async (fill) => {
      if (fill !== 1) return;
      asked.open();
      await wentBack.passed;
    };
    const notice = (): void => {
      wentBack.open();
    };
    notices.add(notice);
    expect(await requester.sendFile({ request: create, source })).toEqual({ dataBytes: 3500, articles: 7 });
    notices.delete(notice);
    expect(source.returns).toEqual([at(1)]);
    expect(namesAndPoints(heard).slice(4)).toEqual(['SYN 1', 'SYN 2', 'ACK(RESYN) 1', 'SYN 2', 'SYN 3', ...END]);
  });

  test('to a point before the start of this attempt: it is restarted instead', async () => {
    const { requester, heard } = await server({
      WRITE: (peer) => peer.send('ACK(WRITE)', `${OK} 120102`),
      SYN: (peer, seen) => {
        if (seen.body.at(-1) === 3) peer.send('RESYN', point(0));
      },
    });
    const source = new MemorySource(ARTICLES.slice(4, 12));
    const error = await rejectionOf(
      requester.sendFile({ request: { ...create, restarted: true }, source, pointOf: (n) => Promise.resolve(at(n)) }),
    );
    expect(error).toMatchObject({ fault: 'local', diagnostic: '2-218' });
    expect(namesAndPoints(heard)).toContain('IDT');
    expect(source.returns).toEqual([]);
    expect(requester.usable).toBe(true);
  });

  test.each(['before DTF.END', 'after DTF.END', 'after TRANS.END'])('that sends, %s', async (when) => {
    let once = false;
    const again = (peer: RawPeer): void => {
      peer.write(
        Buffer.concat([...FILE.slice(2).map((article) => peer.entity('DTF', article)), peer.entity('DTF.END', OK)]),
      );
    };
    const { requester } = await server({
      READ: (peer) => {
        peer.send('ACK(READ)', OK);
        peer.send('DTF', FILE[0]);
        peer.send('DTF', FILE[1]);
        peer.send('SYN', '140101');
        peer.send('DTF', FILE[50 % 7]);
        if (when !== 'before DTF.END') peer.send('DTF.END', OK);
        if (when !== 'after TRANS.END') peer.send('RESYN', point(1));
      },
      'TRANS.END': (peer) => {
        if (when === 'after TRANS.END' && !once) peer.send('RESYN', point(1));
        else peer.send('ACK(TRANS.END)', OK);
        once = true;
      },
      'ACK(RESYN)': again,
    });
    const sink = new MemorySink();
    let stored = 0;
    const totals = await requester.receiveFile({
      request: select,
      open: () => Promise.resolve({ from: START, sink }),
      stored: () => {
        stored += 1;
        return Promise.resolve();
      },
    });
    expect(totals).toEqual({ dataBytes: 3500, articles: 7 });
    expect(sink.bytes.equals(Buffer.concat(FILE))).toBe(true);
    expect(sink.returns).toEqual([at(1)]);
    expect(stored).toBe(when === 'after TRANS.END' ? 2 : 1);
  });
});
