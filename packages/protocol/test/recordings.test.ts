/**
 * Recorded sessions of other products: the recorded requester against our server session, the recorded server against our
 * requester session. What the two recordings of Connect:Express lack is filled by hand (`support/replay.ts`).
 */
import { describe, expect, test } from '@jest/globals';
import { ENTITY_PREFIX_LENGTH } from '../src/index.js';
import type { SessionEvent, SyncPointOptions } from '../src/index.js';
import { START, difference, entity, valueOf } from '../src/testing/index.js';
import type { Name } from '../src/testing/index.js';
import { Pair, describe as inWords, errorOf, notices, refusal } from './support/pair.js';
import { RECORDINGS } from './support/recordings.js';
import type { RecordingName } from './support/recordings.js';
import { CX_ARTICLES, isData, recordedArticles, recordedFpdus } from './support/replay.js';
import type { Recorded } from './support/replay.js';

const number = (value: Buffer | undefined): number => (value === undefined ? 0 : value.readUIntBE(0, value.length));

/** Consecutive data FPDUs count as one: how articles are packed is each sender's own affair. */
function shape(fpdus: readonly { name: Name }[]): string {
  const names = fpdus.map((one) => (/^DTF(.A)?$/.test(one.name) ? 'DATA' : one.name));
  return names.filter((name, i) => name !== 'DATA' || names[i - 1] !== 'DATA').join(' ');
}

/** FPDUs that are the same to the last byte, whoever wrote them. */
const SAME: readonly Name[] = [
  'ORF',
  'WRITE',
  'READ',
  'DTF.END',
  'CRF',
  'DESELECT',
  'RELEASE',
  'SYN',
  'ACK(SYN)',
  'ACK(WRITE)',
  'ACK(READ)',
  'ACK(CRF)',
  'ACK(DESELECT)',
  'RELCONF',
];

const bytesOf = (fpdus: readonly { name: Name; destination: number; source: number; body: Buffer }[]): string[] =>
  fpdus
    .filter((one) => SAME.includes(one.name))
    .map((one) => `${one.name} ${one.destination} ${one.source} ${one.body.toString('hex')}`);

interface Facts {
  /** What our server wants for PI 7. */
  readonly syncPoints: SyncPointOptions | undefined;
  /** What our server serves to a recorded pull: articles that give as many points as the recorded requester acknowledges. */
  readonly serve?: readonly Buffer[];
  readonly refuse?: Pair['behaviour']['refuse'];
  /** What the sessions tolerate, in order. */
  readonly serverNotices?: readonly string[];
  readonly requesterNotices?: readonly string[];
}

const thousand = Array.from({ length: 66 }, (_, i) => Buffer.alloc(1000, i));

const FACTS: Readonly<Record<RecordingName, Facts>> = {
  'cx-push-1mb': {
    syncPoints: { intervalKb: 32, window: 2 },
    serverNotices: ['CREATE: PGI 50 (historical attributes) is empty: taken as absent'],
    requesterNotices: [
      'ACK(TRANS.END): expected 1048576 bytes in 1024 articles, got 1048576 bytes in 768 articles: tolerated, as the bytes are right',
    ],
  },
  'cx-pull-1mb': {
    syncPoints: { intervalKb: 32, window: 2 },
    serve: CX_ARTICLES,
    requesterNotices: [
      'ACK(TRANS.END): expected 1048576 bytes in 1024 articles, got 1048576 bytes in 342 articles: tolerated, as the bytes are right',
    ],
  },
  'pw-push-0': { syncPoints: { intervalKb: 100, window: 1 }, requesterNotices: ['window'] },
  'pw-push-1byte': { syncPoints: { intervalKb: 100, window: 1 }, requesterNotices: ['window'] },
  'pw-push-64k-nosync': { syncPoints: { intervalKb: 100, window: 1 }, requesterNotices: ['window'] },
  'pw-push-beyond-entity': {
    syncPoints: undefined,
    serverNotices: ['data in an entity of 32006 bytes, PI 25 allows 4096: taken'],
    requesterNotices: ['window'],
  },
  'pw-push-unknown-file': {
    syncPoints: undefined,
    refuse: { CREATE: refusal('2-205', 'no virtual file NOSUCH') },
    requesterNotices: ['window'],
  },
  'pw-push-wrong-password': { syncPoints: undefined, refuse: { CONNECT: refusal('3-304', 'wrong password') } },
  'pw-pull-0': {
    syncPoints: { intervalKb: 64, window: 1 },
    serve: [],
    serverNotices: ['TRANS.END: parameter 2 of 3 bytes is not part of this FPDU: skipped'],
    requesterNotices: ['window'],
  },
  'pw-pull-64k-multi': {
    // 40 KB: the recorded requester acknowledges one point, so there must be one in 65,536 bytes.
    syncPoints: { intervalKb: 40, window: 1 },
    serve: thousand,
    serverNotices: ['TRANS.END: parameter 2 of 3 bytes is not part of this FPDU: skipped'],
    requesterNotices: [
      'window',
      'ACK(TRANS.END): expected 65536 bytes in 66 articles, got 65536 bytes in 17 articles: tolerated, as the bytes are right',
    ],
  },
  'pw-message-fpdu': {
    syncPoints: undefined,
    refuse: { MSG: refusal('2-209', 'not today') },
    serverNotices: ['MSG: PI 11 (file type) is missing: tolerated'],
  },
  'pw-message-pi99': { syncPoints: undefined },
};

function expectNotices(events: Pair['serverEvents'], expected: readonly string[] = []): void {
  const got = notices(events).map((text) => (text.startsWith('ACONNECT: PI 7 is larger') ? 'window' : text));
  expect(got).toEqual(expected);
}

test('every recording is replayed', () => {
  expect(Object.keys(FACTS).sort()).toEqual([...RECORDINGS].sort());
});

describe.each(RECORDINGS)('%s: the recorded requester against our server', (name) => {
  const facts = FACTS[name];
  const fpdus = recordedFpdus(name);
  const requests = fpdus.filter(({ from }) => from === 'requester');
  const answers = fpdus.filter(({ from }) => from === 'server');
  const articles = recordedArticles(requests);
  const serverId = answers[0]!.name === 'ACONNECT' ? answers[0]!.source : 9;

  test.each([1 << 20, 100, 7])('in pieces of at most %i bytes', (longest) => {
    const pair = new Pair({ longest, seed: longest, serverId });
    Object.assign(pair.behaviour, { answer: { syncPoints: facts.syncPoints }, maxEntitySize: 4096 });
    pair.behaviour.refuse = facts.refuse ?? {};
    pair.behaviour.articles = facts.serve ?? [];
    const sent = requests.flatMap(({ bytes }) => pair.alone('server', bytes));

    // The recorded server sends what it has; ours serves articles of its own.
    const expected = answers.filter((one) => facts.serve === undefined || !isData(one));
    expect(shape(sent.filter((one) => facts.serve === undefined || !isData(one)))).toBe(shape(expected));
    if (!name.startsWith('pw-pull')) expect(bytesOf(sent)).toEqual(bytesOf(expected));
    if (name === 'cx-push-1mb') {
      for (const answer of ['ACONNECT', 'ACK(CREATE)', 'ACK(TRANS.END)'] as const) {
        const [ours, theirs] = [sent, expected].map((list) => list.find((one) => one.name === answer)!.body);
        if (answer !== 'ACK(TRANS.END)') expect(ours!.toString('hex')).toBe(theirs!.toString('hex'));
        else expect([number(valueOf(ours!, 27)), number(valueOf(ours!, 28))]).toEqual([1 << 20, 1024]);
      }
    }
    if (requests.some((one) => one.name === 'WRITE')) expect(difference(pair.lastReceived, articles)).toBeUndefined();
    if (facts.serve !== undefined) expect(difference(recordedArticles(sent), facts.serve)).toBeUndefined();
    expectNotices(pair.serverEvents, facts.serverNotices);
    const error = errorOf(pair.serverEvents, 'ENDED');
    if (name === 'pw-push-wrong-password') expect(error).toMatchObject({ fault: 'local', diagnostic: '3-304' });
    else expect([inWords(pair.serverEvents), error]).toEqual([expect.any(String), undefined]);
    expect(pair.server.phase).toBe(name === 'pw-push-unknown-file' ? 'open' : 'closing');
  });
});

test('recorded messages are shown as they came', () => {
  const shownBy = (name: RecordingName): Extract<SessionEvent, { kind: 'FPDU' }>[] => {
    const pair = new Pair();
    pair.behaviour.refuse = FACTS[name].refuse ?? {};
    for (const one of recordedFpdus(name)) if (one.from === 'requester') pair.alone('server', one.bytes);
    return pair.serverEvents.flatMap((event) => (event.kind === 'FPDU' ? [event] : []));
  };
  const message = shownBy('pw-message-fpdu').find((event) => event.name === 'MSG')!.parameters;
  expect(message).toMatchObject({ fileIdentifier: { fileName: 'MESSAGE' }, transferId: 1 });
  expect(message.message!.toString()).toBe('Bonjour, ceci est un message');
  expect(shownBy('pw-message-pi99')[0]!.parameters.freeMessage!.toString()).toBe('hello in PI 99');
});

/** Replays the recorded server: our requester runs the verbs that the recorded one ran, and gets the recorded answers. */
function replayServer(pair: Pair, fpdus: readonly Recorded[]): Recorded[] {
  const { requester } = pair;
  const articles = recordedArticles(fpdus.filter(({ from }) => from === 'requester'));
  const sent: Recorded[] = [];
  let at = 0;
  let next = 0;
  const take = (): void => {
    for (const one of pair.output('requester')) sent.push({ ...one, from: 'requester', bytes: Buffer.alloc(0) });
  };
  /** Feeds what the server sent after the last FPDU of the requester that was replayed. */
  const feed = (limit = Number.POSITIVE_INFINITY): void => {
    for (let count = 0; count < limit && fpdus[at]?.from === 'server'; count++) {
      sent.push(
        ...pair
          .alone('requester', fpdus[at++]!.bytes)
          .map((one) => ({ ...one, from: 'requester' as const, bytes: one.body })),
      );
    }
  };
  while (at < fpdus.length) {
    const one = fpdus[at++]!;
    const text = (code: number, body = one.body): string => valueOf(body, code)?.toString('latin1') ?? '';
    const group = (code: number): Buffer => valueOf(one.body, code) ?? Buffer.alloc(0);
    const common = {
      fileIdentifier: { fileType: 0, fileName: text(12, group(9)) },
      transferId: number(valueOf(one.body, 13)),
      maxEntitySize: number(valueOf(one.body, 25)),
    };
    switch (one.name) {
      case 'CONNECT': {
        const sync = valueOf(one.body, 7);
        requester.connect({
          requester: text(3),
          server: text(4),
          password: text(5),
          syncPoints: sync === undefined ? undefined : { intervalKb: sync.readUInt16BE(0), window: sync[2]! },
          accessType: number(valueOf(one.body, 22)) as 0 | 1 | 2,
          freeMessage: valueOf(one.body, 99),
        });
        break;
      }
      case 'CREATE':
        requester.create({
          ...common,
          dataCode: number(valueOf(one.body, 16)),
          recordFormat: 0x80,
          recordLength: number(valueOf(group(30), 32)),
          maxReservationKb: number(valueOf(group(40), 42)),
        });
        break;
      case 'SELECT':
        requester.select({ ...common, freeMessage: valueOf(one.body, 99) });
        break;
      case 'ORF':
        requester.open(valueOf(one.body, 21) === undefined ? undefined : { used: false, mode: 0 });
        break;
      case 'WRITE':
        requester.write();
        take();
        feed();
        requester.startSending(START);
        // Ours packs and waits by its own rules: the recorded acknowledgements come when the window is full.
        while (next < articles.length) {
          next = pair.sendAlone(articles, next, (from) =>
            sent.push(...from.map((f) => ({ ...f, from: 'requester' as const, bytes: f.body }))),
          );
          while (fpdus[at]?.from === 'requester' && fpdus[at]!.name !== 'DTF.END') at++;
          feed(1);
        }
        while (fpdus[at]!.name !== 'DTF.END') at++;
        continue;
      case 'READ':
        requester.read(START);
        break;
      case 'DTF.END':
        requester.endData();
        break;
      case 'TRANS.END':
        requester.endTransfer();
        break;
      case 'CRF':
        requester.close();
        break;
      case 'DESELECT':
        requester.deselect();
        break;
      case 'RELEASE':
        requester.release();
        break;
      case 'MSG':
        requester.sendMessage({ ...common, maxEntitySize: 4096, message: valueOf(one.body, 91) });
        break;
      default:
        // ACK(SYN) and ACK(IDT) leave by themselves.
        break;
    }
    take();
    feed();
  }
  return sent;
}

describe.each(RECORDINGS)('%s: the recorded server against our requester', (name) => {
  const facts = FACTS[name];
  const fpdus = recordedFpdus(name);
  const requests = fpdus.filter(({ from }) => from === 'requester');
  const answers = fpdus.filter(({ from }) => from === 'server');
  const requesterId = requests[0]!.source;

  test.each([1 << 20, 100, 7])('in pieces of at most %i bytes', (longest) => {
    const pair = new Pair({ longest, seed: longest, requesterId });
    const sent = replayServer(pair, fpdus);
    expect(shape(sent)).toBe(shape(requests));
    expect(bytesOf(sent)).toEqual(bytesOf(requests));
    if (name.startsWith('cx')) {
      for (const fpdu of ['CONNECT', 'TRANS.END'] as const) {
        const [ours, theirs] = [sent, requests].map((list) =>
          list.find((one) => one.name === fpdu)!.body.toString('hex'),
        );
        expect(ours).toBe(theirs);
      }
    }
    expect(difference(recordedArticles(sent), recordedArticles(requests))).toBeUndefined();
    expect(difference(pair.read.articles, recordedArticles(answers))).toBeUndefined();
    expectNotices(pair.requesterEvents, facts.requesterNotices);
    const error = errorOf(pair.requesterEvents, 'ENDED');
    if (name === 'pw-push-wrong-password') {
      expect(error).toMatchObject({ fault: 'refused', diagnostic: '3-304' });
      expect(error!.message).toContain("Invalid password for partner 'SECURED'");
    } else expect(error).toBeUndefined();
    if (name === 'pw-push-unknown-file') {
      const refused = pair.requesterEvents.flatMap((event) => (event.kind === 'FPDU' ? [event] : [])).at(-1)!;
      expect(refused).toMatchObject({ name: 'ACK(CREATE)', parameters: { diagnostic: '2-205' } });
      expect(pair.requester.state).toBe('CN03');
    } else expect(pair.requester.phase).toBe('closing');
  });
});

test('the recordings are what their notes say', () => {
  const data = recordedFpdus('cx-push-1mb');
  expect(data.filter(({ name }) => name === 'SYN')).toHaveLength(31);
  expect(recordedArticles(data)).toHaveLength(1024);
  expect(recordedArticles(recordedFpdus('pw-push-beyond-entity')).map(({ length }) => length)).toEqual([
    32_000, 32_000, 1536,
  ]);
  expect(recordedArticles(recordedFpdus('pw-pull-64k-multi'))).toHaveLength(66);
  expect(ENTITY_PREFIX_LENGTH['length-prefixed']).toBe(entity().length);
});
