/** Files both ways over a pair of sessions: contents, counts, sync points, window, restarts, several files, refusals. */
import { describe, expect, test } from '@jest/globals';
import type { FpduName, SyncPoint, SyncPointOptions } from '../src/index.js';
import { START, articlesOf, difference, entity, fpdu, hex, pi, valueOf } from '../src/testing/index.js';
import { expectedPoints, lengthsOf } from './support/points.js';
import { CREATE, Pair, SELECT, errorOf, notices, refusal } from './support/pair.js';
import type { PairOptions } from './support/pair.js';

const sum = (lengths: readonly number[]): number => lengths.reduce((a, b) => a + b, 0);

/** A pair whose sides both want the same points. */
function pairWith(syncPoints: SyncPointOptions | undefined, options: PairOptions = {}): Pair {
  const pair = new Pair(options);
  pair.behaviour.answer = { syncPoints };
  pair.connect({ syncPoints });
  return pair;
}

const synsOf = (events: Pair['serverEvents'], kind: 'SYN' | 'ACK(SYN)'): SyncPoint[] =>
  events.flatMap((event) => (event.kind === kind ? [event.point] : []));

const FILES: readonly (readonly [name: string, lengths: readonly number[]])[] = [
  ['nothing', []],
  ['one byte', [1]],
  ['one article as long as an entity', [4090]],
  ['one byte more', [4091]],
  ['the longest article', [65_535]],
  ['a hundred small articles', Array.from({ length: 100 }, (_, i) => 1 + i)],
  ['a thousand articles of 80 bytes', Array<number>(1000).fill(80)],
  ['articles of every size', [1, 9000, 2, 4090, 3, 4091, 4, 2043, 2043, 5, 12_000, 65_535, 6, 1024, 1024, 1024]],
];

const WAYS: readonly PairOptions[] = [
  { dialect: 'length-prefixed', crc: false, longest: 1 << 20 },
  { dialect: 'length-prefixed', crc: false, longest: 700, seed: 2 },
  { dialect: 'raw', crc: false, longest: 1 << 20 },
  { dialect: 'length-prefixed', crc: true, longest: 3000, seed: 3 },
  { dialect: 'raw', crc: true, longest: 3000, seed: 4 },
];

describe.each(WAYS)('%j', (options) => {
  test.each(FILES)('%s, written', (_, lengths) => {
    const articles = articlesOf(lengths);
    for (const syncPoints of [undefined, { intervalKb: 1, window: 1 }, { intervalKb: 32, window: 0 }]) {
      const pair = pairWith(syncPoints, options);
      const answer = pair.writeFile(articles);
      expect(difference(pair.lastReceived, articles)).toBeUndefined();
      expect(answer).toEqual({ diagnostic: '0-000', dataBytes: sum(lengths), articles: lengths.length });
      expect(pair.server.totals).toEqual({ dataBytes: sum(lengths), articles: lengths.length });
      const interval = (syncPoints?.intervalKb ?? 0) * 1024;
      const points = expectedPoints(lengths, interval, START);
      expect(synsOf(pair.serverEvents, 'SYN')).toEqual(points);
      expect(synsOf(pair.requesterEvents, 'ACK(SYN)')).toEqual(syncPoints?.window === 0 ? [] : points);
      expect([notices(pair.serverEvents), notices(pair.requesterEvents)]).toEqual([[], []]);
    }
  });

  test.each(FILES)('%s, read', (_, lengths) => {
    const articles = articlesOf(lengths);
    for (const syncPoints of [undefined, { intervalKb: 1, window: 1 }, { intervalKb: 32, window: 0 }]) {
      const pair = pairWith(syncPoints, options);
      pair.behaviour.articles = articles;
      const answer = pair.readFile();
      expect(difference(pair.read.articles, articles)).toBeUndefined();
      expect(answer).toEqual({ diagnostic: '0-000', dataBytes: sum(lengths), articles: lengths.length });
      const points = expectedPoints(lengths, (syncPoints?.intervalKb ?? 0) * 1024, START);
      expect(synsOf(pair.requesterEvents, 'SYN')).toEqual(points);
      expect(synsOf(pair.serverEvents, 'ACK(SYN)')).toEqual(syncPoints?.window === 0 ? [] : points);
      expect([notices(pair.serverEvents), notices(pair.requesterEvents)]).toEqual([[], []]);
    }
  });
});

test('the FPDUs of a written file, in order', () => {
  const pair = pairWith({ intervalKb: 1, window: 1 });
  pair.writeFile(articlesOf([1000, 1000]));
  pair.requester.release();
  pair.settle();
  expect(pair.fpdus('requester').map(({ name }) => name)).toEqual(
    'CONNECT CREATE ORF WRITE DTF SYN DTF DTF.END TRANS.END CRF DESELECT RELEASE'.split(' '),
  );
  expect(pair.fpdus('server').map(({ name }) => name)).toEqual(
    'ACONNECT ACK(CREATE) ACK(ORF) ACK(WRITE) ACK(SYN) ACK(TRANS.END) ACK(CRF) ACK(DESELECT) RELCONF'.split(' '),
  );
  // ID.DST is the peer's, ID.SRC is 0 but in CONNECT, ACONNECT, RELEASE, RELCONF.
  for (const { name, destination, source } of pair.fpdus('requester')) {
    expect([name, destination]).toEqual([name, name === 'CONNECT' ? 0 : 9]);
    expect([name, source]).toEqual([name, name === 'CONNECT' || name === 'RELEASE' ? 5 : 0]);
  }
  for (const { name, destination, source } of pair.fpdus('server')) {
    expect([name, destination, source]).toEqual([name, 5, name === 'ACONNECT' || name === 'RELCONF' ? 9 : 0]);
  }
  expect(errorOf(pair.requesterEvents, 'ENDED')).toBeUndefined();
  expect([pair.requester.phase, pair.server.phase]).toEqual(['closed', 'closed']);
});

test('TRANS.END carries the totals', () => {
  const pair = pairWith(undefined);
  pair.writeFile(articlesOf([300, 400]));
  const end = pair.fpdus('requester').find(({ name }) => name === 'TRANS.END')!;
  expect(end.body.toString('hex')).toBe('1b0202bc1c0102');
});

describe('more articles than PI 28 can count', () => {
  const from = { number: 1, dataBytes: 10, articles: 0xffff_ffff };
  const bodyOf = (fpdus: readonly { name: FpduName; body: Buffer }[], name: FpduName): string =>
    fpdus.find((one) => one.name === name)!.body.toString('hex');

  test('are left out on both sides, and the file arrives', () => {
    const pair = pairWith({ intervalKb: 1, window: 2 });
    pair.behaviour.from = from;
    expect(pair.writeFile([Buffer.from('x')], { restarted: true }, from)).toEqual({
      diagnostic: '0-000',
      dataBytes: 11,
    });
    expect(bodyOf(pair.fpdus('requester'), 'TRANS.END')).toBe('1b010b');
    expect(bodyOf(pair.fpdus('server'), 'ACK(TRANS.END)')).toBe('0203000000' + '1b010b');
  });

  test.each(['1c0100', '1c04ffffffff', '1c0101'])('are not compared with %s of a partner; the bytes are', (count) => {
    for (const [bytes, answer] of [
      ['1b010b', 'ACK(TRANS.END)'],
      ['1b010a', 'ABORT'],
    ] as const) {
      const pair = pairWith({ intervalKb: 1, window: 2 });
      pair.behaviour.from = from;
      pair.openForWriting({ restarted: true });
      pair.alone('server', fpdu('DTF', 9, 0, '78'), fpdu('DTF.END', 9, 0, '0203000000'));
      expect(pair.alone('server', fpdu('TRANS.END', 9, 0, bytes, count))[0]!.name).toBe(answer);
    }
  });
});

describe('window', () => {
  test.each([1, 2, 3, 255])('of %i closes when so many points wait, and opens again', (window) => {
    const pair = pairWith({ intervalKb: 1, window });
    pair.behaviour.acknowledge = false;
    const articles = articlesOf(Array<number>(300).fill(700));
    pair.openForWriting();
    pair.requester.startSending(START);
    let at = pair.send(articles);
    expect(at).toBe(window);
    expect(pair.requester.windowFull).toBe(true);
    expect(pair.unacknowledged).toHaveLength(window);

    // One acknowledgement opens it for one more point.
    pair.server.acknowledgeSyn(1);
    pair.settle();
    expect(pair.requester.windowFull).toBe(false);
    at = pair.send(articles, at);
    expect(at).toBe(window + 1);

    // One for the last stands for all.
    pair.server.acknowledgeSyn(window + 1);
    pair.settle();
    expect(synsOf(pair.requesterEvents, 'ACK(SYN)').map(({ number }) => number)).toEqual([1, window + 1]);
    pair.behaviour.acknowledge = true;
    expect(pair.send(articles, at)).toBe(300);
  });

  test('a server that waits for the window is woken by the acknowledgement', () => {
    const pair = pairWith({ intervalKb: 1, window: 2 });
    pair.behaviour.acknowledge = false;
    pair.behaviour.articles = articlesOf(Array<number>(10).fill(1024));
    pair.openForReading();
    expect(pair.read.articles).toHaveLength(2);
    expect(pair.server.windowFull).toBe(true);
    for (let number = 1; number <= 9; number++) {
      pair.requester.acknowledgeSyn(number);
      pair.settle();
    }
    expect(difference(pair.read.articles, pair.behaviour.articles)).toBeUndefined();
    expect(pair.closeFile().diagnostic).toBe('0-000');
  });

  test('a sender may end with points unacknowledged; the late ACK(SYN) is taken', () => {
    const pair = pairWith({ intervalKb: 1, window: 4 });
    pair.behaviour.acknowledge = false;
    pair.openForWriting();
    pair.requester.startSending(START);
    pair.send(articlesOf([1000, 1000, 1000]));
    pair.requester.endData();
    pair.settle();
    pair.server.acknowledgeSyn(1);
    pair.settle();
    expect(pair.requester.state).toBe('TDE07');
    // ACK(SYN) 2 and TRANS.END cross.
    pair.behaviour.ignore = ['TRANS.END'];
    pair.requester.endTransfer();
    pair.server.acknowledgeSyn(2);
    pair.settle();
    expect(pair.requester.state).toBe('TDE08A');
    expect(synsOf(pair.requesterEvents, 'ACK(SYN)').map(({ number }) => number)).toEqual([1, 2]);
    // After TRANS.END it says nothing new: it does not leave.
    expect(pair.server.state).toBe('TDE08B');
    pair.step('ACK(TRANS.END)', () => pair.server.acceptEnd());
  });

  test('an acknowledgement that comes too late is not sent', () => {
    const pair = pairWith({ intervalKb: 1, window: 4 });
    pair.behaviour.acknowledge = false;
    pair.writeFile(articlesOf([1000, 1000, 1000]));
    const before = pair.fpdus('server').length;
    pair.server.acknowledgeSyn(1);
    // … not even when the next file is already under way and has no such point.
    pair.openForWriting({ transferId: 2 });
    pair.server.acknowledgeSyn(2);
    pair.settle();
    expect(
      pair
        .fpdus('server')
        .slice(before)
        .map(({ name }) => name),
    ).not.toContain('ACK(SYN)');
    expect(pair.requester.phase).toBe('open');
  });

  test('a repeated or stale ACK(SYN) changes nothing; one of the future ends the connection', () => {
    const pair = pairWith({ intervalKb: 1, window: 4 });
    pair.openForWriting();
    pair.requester.startSending(START);
    pair.send(articlesOf([1000, 1000, 1000]));
    for (const number of ['02', '01']) pair.inject('requester', entity(fpdu('ACK(SYN)', 5, 0, `1401${number}`)));
    expect(synsOf(pair.requesterEvents, 'ACK(SYN)').map(({ number }) => number)).toEqual([1, 2]);
    expect(notices(pair.requesterEvents)).toHaveLength(2);
    pair.inject('requester', entity(fpdu('ACK(SYN)', 5, 0, '140103')));
    expect(errorOf(pair.requesterEvents, 'ENDED')).toMatchObject({ fault: 'remote', diagnostic: '3-311' });
  });
});

describe('restart', () => {
  const lengths = Array.from({ length: 60 }, (_, i) => 1 + ((i * 331) % 900));
  const articles = articlesOf(lengths);
  const points = expectedPoints(lengths, 1024, START);

  test('writing goes on from the point of ACK(WRITE), with its totals', () => {
    const from = points[6]!;
    const pair = pairWith({ intervalKb: 1, window: 2 });
    pair.behaviour.from = from;
    expect(pair.openForWriting({ restarted: true }).restartPoint).toBe(7);
    pair.requester.startSending(from);
    pair.send(articles, from.articles);
    pair.requester.endData();
    pair.settle();
    expect(pair.closeFile()).toEqual({ diagnostic: '0-000', dataBytes: sum(lengths), articles: 60 });
    expect(difference(pair.lastReceived, articles.slice(from.articles))).toBeUndefined();
    expect(synsOf(pair.serverEvents, 'SYN')).toEqual(expectedPoints(lengths.slice(from.articles), 1024, from));
    expect(valueOf(pair.fpdus('requester').find(({ name }) => name === 'CREATE')!.body, 15)!.toString('hex')).toBe(
      '01',
    );
  });

  test('reading goes on from the point of READ', () => {
    const from = points[3]!;
    const pair = pairWith({ intervalKb: 1, window: 2 });
    pair.behaviour.articles = articles;
    pair.behaviour.points.set(4, { ...from, index: from.articles });
    pair.readFile({ restarted: true }, from);
    expect(difference(pair.read.articles, articles.slice(from.articles))).toBeUndefined();
    expect(synsOf(pair.requesterEvents, 'SYN')).toEqual(expectedPoints(lengths.slice(from.articles), 1024, from));
    expect(pair.requester.totals).toEqual({ dataBytes: sum(lengths), articles: 60 });
  });

  test('the counts of the last attempt alone are accepted, and noted', () => {
    const from = points[6]!;
    const pair = pairWith({ intervalKb: 1, window: 2 });
    pair.behaviour.from = from;
    pair.openForWriting({ restarted: true });
    pair.alone('server', fpdu('DTF', 9, 0, Buffer.alloc(10, 1)), fpdu('DTF.END', 9, 0, '0203000000'));
    const [answer] = pair.alone('server', fpdu('TRANS.END', 9, 0, '1b010a 1c0101'));
    expect(notices(pair.serverEvents).join()).toContain('last attempt alone');
    expect(errorOf(pair.serverEvents, 'ENDED')).toBeUndefined();
    expect(valueOf(answer!.body, 2)!.toString('hex')).toBe('000000');
  });
});

test('several files in one session, in both directions, with their own counts and points', () => {
  const pair = pairWith({ intervalKb: 1, window: 2 }, { longest: 900 });
  for (let round = 1; round <= 3; round++) {
    const up = articlesOf([500 * round, 600, 700], round);
    const down = articlesOf([900, 300 * round, 10], round + 10);
    expect(pair.writeFile(up, { transferId: round })).toMatchObject({ articles: 3, dataBytes: sum(lengthsOf(up)) });
    expect(difference(pair.lastReceived, up)).toBeUndefined();
    pair.behaviour.articles = down;
    expect(pair.readFile()).toMatchObject({ articles: 3, dataBytes: sum(lengthsOf(down)) });
    expect(difference(pair.read.articles, down)).toBeUndefined();
    pair.behaviour.articles = [];
    expect(pair.readFile()).toMatchObject({ articles: 0, dataBytes: 0 });
    expect(pair.writeFile([])).toMatchObject({ articles: 0, dataBytes: 0 });
  }
  expect([pair.requester.state, pair.server.state]).toEqual(['CN03', 'CN03']);
});

describe('a refused file leaves the session usable', () => {
  const refuse: Partial<Record<FpduName, [(pair: Pair) => void, FpduName, string]>> = {
    CREATE: [(pair) => pair.requester.create(CREATE), 'ACK(CREATE)', 'CN03'],
    SELECT: [(pair) => pair.requester.select(SELECT), 'ACK(SELECT)', 'CN03'],
  };

  test.each(Object.entries(refuse))('%s', (name, [verb, answer, state]) => {
    const pair = pairWith(undefined);
    pair.behaviour.refuse = { [name]: refusal('2-226', '/srv/secret is not for you', 'not for you') };
    const parameters = pair.step(answer, () => verb(pair));
    expect(parameters).toMatchObject({ diagnostic: '2-226' });
    expect(parameters.diagnosticComplement!.toString()).toBe('not for you');
    expect([pair.requester.state, pair.server.state]).toEqual([state, state]);
    pair.behaviour.refuse = {};
    expect(pair.writeFile(articlesOf([10])).diagnostic).toBe('0-000');
  });

  test('ORF, WRITE and READ: the requester closes and deselects, then sends the next', () => {
    const pair = pairWith(undefined);
    const negative = (answer: FpduName, verb: () => void): void => {
      const parameters = pair.step(answer, verb);
      expect(parameters.diagnostic).toBe('2-211');
      expect(parameters.diagnosticComplement!.toString()).toBe('file cannot be opened');
    };
    const error = refusal('2-211', 'EACCES /srv/inbox/file');
    pair.behaviour.refuse = { ORF: error, WRITE: error, READ: error };

    pair.step('ACK(CREATE)', () => pair.requester.create(CREATE));
    negative('ACK(ORF)', () => pair.requester.open());
    expect(pair.requester.state).toBe('SF03');
    pair.step('ACK(DESELECT)', () => pair.requester.deselect());

    pair.behaviour.refuse = { WRITE: error, READ: error };
    pair.step('ACK(CREATE)', () => pair.requester.create(CREATE));
    pair.step('ACK(ORF)', () => pair.requester.open());
    negative('ACK(WRITE)', () => pair.requester.write());
    expect(pair.requester.state).toBe('OF02');
    pair.leaveFile();

    pair.step('ACK(SELECT)', () => pair.requester.select(SELECT));
    pair.step('ACK(ORF)', () => pair.requester.open());
    negative('ACK(READ)', () => pair.requester.read(START));
    pair.leaveFile();

    pair.behaviour.refuse = {};
    expect(pair.writeFile(articlesOf([10, 20])).diagnostic).toBe('0-000');
    pair.behaviour.articles = articlesOf([5]);
    expect(pair.readFile().diagnostic).toBe('0-000');
  });

  test('TRANS.END: the file is closed and deselected all the same', () => {
    const pair = pairWith(undefined);
    pair.behaviour.refuse = { 'TRANS.END': refusal('2-213', 'EIO /srv/inbox/file') };
    const answer = pair.writeFile(articlesOf([10]));
    expect(answer).toMatchObject({ diagnostic: '2-213', dataBytes: 10, articles: 1 });
    expect(answer.diagnosticComplement!.toString()).toBe('blocking input/output error');
    pair.behaviour.refuse = {};
    expect(pair.writeFile(articlesOf([10])).diagnostic).toBe('0-000');
  });

  test('counts in a negative ACK(TRANS.END) mean nothing', () => {
    const pair = pairWith(undefined);
    pair.behaviour.ignore = ['TRANS.END'];
    pair.openForWriting();
    pair.requester.startSending(START);
    pair.requester.endData();
    pair.requester.endTransfer();
    pair.settle();
    pair.inject('requester', entity(fpdu('ACK(TRANS.END)', 5, 0, '0203 0200d5 1b0163 1c0163')));
    expect(pair.requester.state).toBe('OF02');
  });

  test.each([
    ['PI 13 = 0', '0d0100', '20020400', '3-318'],
    ['PI 32 = 0', '0d0101', '200100', '2-200'],
  ])('CREATE with %s', (_, transferId, recordLength, diagnostic) => {
    const pair = pairWith(undefined);
    const create = fpdu(
      'CREATE',
      9,
      0,
      '0906 0b0100 0c0146',
      transferId,
      '110100 19021000',
      pi(30, '1f0180', recordLength),
      '2803 2a0101',
    );
    const [answer] = pair.alone('server', create);
    expect(pair.serverEvents.some((event) => event.kind === 'FPDU' && event.name === 'CREATE')).toBe(false);
    expect(pair.server.state).toBe('CN03');
    const code = valueOf(answer!.body, 2)!;
    expect(`${code[0]}-${code.readUInt16BE(1)}`).toBe(diagnostic);
    expect(pair.serverEvents.filter(({ kind }) => kind === 'REFUSED')).toMatchObject([
      { name: 'CREATE', parameters: { maxEntitySize: 4096 }, error: { fault: 'remote', diagnostic } },
    ]);
  });
});

test('every attribute of a file travels, both ways', () => {
  const pair = pairWith(undefined);
  pair.step('ACK(CREATE)', () =>
    pair.requester.create({
      ...CREATE,
      fileIdentifier: { requester: 'APP', server: 'USER', fileType: 0, fileName: 'FILE' },
      transferId: 0xfffffe,
      restarted: true,
      priority: 2,
      dataCode: 1,
      recordFormat: 0,
      recordLength: 512,
      fileLabel: 'report.txt',
      maxReservationKb: 2 ** 40,
      creationDate: '261120101112',
      originalSender: 'FIRST',
      finalReceiver: 'LAST',
      freeMessage: hex('00ff'),
    }),
  );
  const create = pair.serverEvents.find((event) => event.kind === 'FPDU' && event.name === 'CREATE');
  expect(create).toMatchObject({
    parameters: {
      fileIdentifier: { requester: 'APP', server: 'USER', fileType: 0, fileName: 'FILE' },
      transferId: 0xfffffe,
      restarted: 1,
      priority: 2,
      dataCode: 1,
      logicalAttributes: { recordFormat: 0, recordLength: 512, fileLabel: 'report.txt' },
      physicalAttributes: { reservationUnit: 0, maxReservation: 0xffff_ffff },
      historicalAttributes: { creationDate: '261120101112' },
      originalSender: 'FIRST',
      finalReceiver: 'LAST',
      freeMessage: hex('00ff'),
    },
  });
  pair.step('ACK(DESELECT)', () => pair.requester.deselect());

  pair.behaviour.ignore = ['SELECT'];
  pair.requester.select({ ...SELECT, attributesWanted: 0x80 });
  pair.settle();
  const answer = pair.step('ACK(SELECT)', () => {
    pair.server.acceptSelect({
      maxEntitySize: 2048,
      fileName: 'FOUND',
      transferId: 3,
      dataCode: 2,
      recordFormat: 0x80,
      recordLength: 100,
      fileLabel: 'label',
      maxReservationKb: 2 ** 40,
      creationDate: '261120101112',
      freeMessage: hex('01'),
    });
  });
  expect(answer).toEqual({
    diagnostic: '0-000',
    fileIdentifier: { fileType: 0, fileName: 'FOUND' },
    transferId: 3,
    dataCode: 2,
    maxEntitySize: 2048,
    logicalAttributes: { recordFormat: 0x80, recordLength: 100, fileLabel: 'label' },
    physicalAttributes: { reservationUnit: 0, maxReservation: 0xffff_ffff },
    historicalAttributes: { creationDate: '261120101112' },
    freeMessage: hex('01'),
  });
  expect(valueOf(pair.fpdus('requester').at(-1)!.body, 14)!.toString('hex')).toBe('80');
});

test('SELECT: a PI 13 that is not 0 is echoed, 0 is given one', () => {
  const pair = pairWith(undefined);
  expect(pair.readFile({ transferId: 0x24cb })).toMatchObject({ diagnostic: '0-000' });
  expect(pair.openForReading({ transferId: 0 }).transferId).toBe(77);
  const ids = pair
    .fpdus('server')
    .filter(({ name }) => name === 'ACK(SELECT)')
    .map(({ body }) => valueOf(body, 13)!.toString('hex'));
  expect(ids).toEqual(['24cb', '4d']);
});

test('names of application and user in group 9 are given back as they came', () => {
  const pair = pairWith(undefined);
  const selected = pair.openForReading({
    fileIdentifier: { requester: 'APP', server: 'USER', fileType: 0, fileName: 'FILE' },
  });
  expect(selected.fileIdentifier).toEqual({ requester: 'APP', server: 'USER', fileType: 0, fileName: 'FILE' });
});

test('PI 21: ACK(ORF) answers it when it was asked, and only then', () => {
  const pair = pairWith(undefined);
  pair.step('ACK(CREATE)', () => pair.requester.create(CREATE));
  expect(pair.step('ACK(ORF)', () => pair.requester.open({ used: true, mode: 3 }))).toEqual({
    diagnostic: '0-000',
    compression: { used: false, mode: 0 },
  });
  pair.step('ACK(CRF)', () => pair.requester.close());
  expect(pair.step('ACK(ORF)', () => pair.requester.open())).toEqual({ diagnostic: '0-000' });
});
