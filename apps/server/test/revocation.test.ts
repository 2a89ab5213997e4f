/** What becomes of a partner's open sessions when its password, its rights or the partner itself is changed. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { nameOf, summaryOf } from '@pesit-node/protocol/testing';
import { captureLog, withDatabase, freePort } from '@pesit-node/service/testing';
import type { Config } from '@pesit-node/service';
import type { TestDatabase } from '@pesit-node/service/testing';

import { withRedis } from '../../../packages/cluster/test/support/redis.js';
import { OpenSessions } from '../src/admission/open-sessions.js';
import type { PartnerStanding } from '../src/partners/fields.js';
import { PartnerStore } from '../src/partners/store.js';
import { MIGRATIONS } from '../src/migrations/index.js';
import { PASSWORD, TestNode, until, useNode } from './support/node.js';
import { passwords } from './support/passwords.js';
import { RawPeer } from './support/raw-peer.js';
import {
  CONNECT,
  CRF,
  create,
  DATA,
  DESELECT,
  DTF,
  DTF_END,
  endOf,
  message,
  ORF,
  READ,
  RELEASE,
  select,
  transEnd,
  WRITE,
} from './support/steps.js';
import type { Step } from './support/steps.js';

const ACME = '/api/v1/config/partners/ACME';
const HOUR = 3_600_000;

type Change = (node: TestNode) => Promise<unknown>;
const put =
  (fields: Readonly<Record<string, unknown>>): Change =>
  (node) =>
    node.call('put', ACME, fields);
const remove: Change = (node) => node.call('delete', `${ACME}?force=true`);

/** What an administrator does, with what the session ends, and what the log says of it. */
const CHANGES: readonly (readonly [what: string, change: Change, diagnostic: string, reason: RegExp])[] = [
  ['its password is changed', put({ password: 'n3w~Pass' }), '3-304', /^the password, .* of ACME were changed/],
  ['the same password is set again', put({ password: PASSWORD }), '3-304', /^the password, .* of ACME were changed/],
  ['it is disabled', put({ enabled: false }), '3-322', /^the partner ACME was disabled$/],
  ['it is deleted', remove, '3-304', /^the partner ACME was deleted$/],
  [
    'it is deleted and created anew',
    async (node) => {
      await remove(node);
      await node.partner('ACME');
    },
    '3-304',
    /^the partner ACME was deleted$/,
  ],
  ['it may only read', put({ allowedOperations: ['READ'] }), '3-304', /may no longer WRITE \(allowedOperations\)$/],
  ['it may only write', put({ accessType: 'WRITE' }), '3-304', /may no longer READ \(allowedOperations\)$/],
  ['a pre-connection is asked of it', put({ preconnectId: 'PRE1' }), '3-304', /the pre-connection .* of ACME were/],
  [
    'its listener is not granted to it any more',
    put({ allowedListeners: ['OTHER'] }),
    '3-304',
    /^the partner ACME is no longer granted the listener NODE1 \(allowedListeners\)$/,
  ],
  [
    'it may only come from elsewhere',
    put({ allowedAddresses: ['192.0.2.0/24'] }),
    '3-304',
    /^ACME came from 127.0.0.1, which its allowedAddresses leave out: /,
  ],
];

/** What ends nothing. */
const HARMLESS: readonly (readonly [what: string, change: Change])[] = [
  ['a description', put({ description: 'of the accounts', name: 'Acme' })],
  ['compression of a virtual file', (node) => node.call('put', '/api/v1/config/files/IN', { compression: 'both' })],
  ['facilities', put({ multiArticle: false, concatenation: false, maxConnections: 1 })],
  ['enabled, which it is', put({ enabled: true })],
  ['the rights that it has', put({ accessType: 'BOTH', preconnectId: null, preconnectPassword: null })],
  ['another list of files', put({ allowedFiles: ['IN', 'OUT'] })],
  ['its address', put({ allowedAddresses: ['127.0.0.1'] })],
  ['its listener, by name', put({ allowedListeners: ['NODE1'] })],
  [
    'the same password, hashed anew',
    async ({ database: { knex } }) => {
      const [row] = await knex('partners').select<{ password_hash: string }[]>('password_hash');
      const before = row?.password_hash ?? '';
      const store = new PartnerStore(knex);
      expect(await store.renewHash('ACME', 'password_hash', before, await passwords.hash(PASSWORD))).toBe(true);
    },
  ],
  ['nothing, in a PUT of what GET answers', async (node) => node.call('put', ACME, await node.call('get', ACME))],
];

/** As another pod does it that nobody hears: the service learns of it when it looks. */
const unheard = (database: TestDatabase, sql: string): Promise<unknown> => database.knex.raw(sql);
const UNHEARD: readonly (readonly [what: string, sql: string, diagnostic: string])[] = [
  ['another password', 'update partners set credentials = gen_random_uuid()', '3-304'],
  ['a partner that was disabled', 'update partners set enabled = false', '3-322'],
  [
    'a partner that was disabled and changed',
    'update partners set enabled = false, credentials = gen_random_uuid()',
    '3-304',
  ],
  ['a partner that was deleted', 'delete from partners', '3-304'],
  [
    'a partner that was deleted and created anew',
    `with gone as (delete from partners returning password_hash)
     insert into partners (partner_id, password_hash, enabled, access_type)
       select 'ANEW', password_hash, true, 'BOTH' from gone;
     update partners set partner_id = 'ACME' where partner_id = 'ANEW'`,
    '3-304',
  ],
];

withDatabase((harness) => {
  describe('the sessions of a partner', () => {
    const peers: RawPeer[] = [];
    // Before the node stops, which would wait for them.
    afterEach(() => {
      for (const { socket } of peers.splice(0)) socket.destroy();
    });

    const node = useNode(harness, { partnerLookMs: HOUR });
    let before = 0;
    const open = async (...steps: readonly Step[]): Promise<RawPeer> => {
      const peer = await RawPeer.open(node().port, CONNECT, ...steps);
      peers.push(peer);
      return peer;
    };
    const reasons = (): readonly unknown[] =>
      node()
        .log.entries()
        .slice(before)
        .filter(({ msg }) => String(msg).startsWith('session has to end'))
        .map(({ reason }) => reason);

    beforeEach(() => {
      before = node().log.lines.length;
    });

    test.each(CHANGES)('when %s: those at rest are aborted at once', async (_, change, diagnostic, reason) => {
      await node().partner('OTHER');
      const [one, two] = [await open(), await open()];
      await change(node());
      for (const peer of [one, two]) {
        expect(summaryOf(await peer.next())).toBe(`ABORT ${diagnostic}`);
        peer.socket.end();
        await peer.closed();
      }
      expect(reasons()).toEqual([expect.stringMatching(reason), expect.stringMatching(reason)]);
      expect(await node().history()).toEqual([]);
    });

    test.each(CHANGES)('when %s: a file that is being written ends before', async (_, change, diagnostic) => {
      const peer = await open(create(), ORF, WRITE, DTF);
      await change(node());
      await peer.sendAll(DTF);
      const steps = [...endOf(2), CRF, DESELECT, create({ transferId: 10 }), RELEASE];
      const answers = [];
      for (const step of steps)
        if (step.answered) answers.push(summaryOf(await peer.send(step)));
        else await peer.send(step);
      expect(answers).toEqual([
        ...['ACK(TRANS.END) 0-000', 'ACK(CRF) 0-000', 'ACK(DESELECT) 0-000'],
        ...[`ACK(CREATE) ${diagnostic}`, 'RELCONF'],
      ]);
      expect((await node().received('IN')).map(String)).toEqual([`${DATA}${DATA}`]);
      expect(reasons()).toHaveLength(1);
    });

    test.each([CHANGES[0]!, CHANGES[2]!])(
      'when %s: a file that is being read ends before',
      async (_, change, diagnostic) => {
        await writeFile(join(node().data, 'OUT/out/statement'), DATA);
        const peer = await open(select('OUT'), ORF);
        await change(node());
        expect(nameOf(await peer.send(READ))).toBe('ACK(READ)');
        // DTF and DTF.END in one entity.
        const data = await peer.next();
        expect(data?.toString('latin1', 6, 6 + DATA.length)).toBe(DATA);
        expect(nameOf(data?.subarray(6 + DATA.length))).toBe('DTF.END');
        const answers = [];
        for (const step of [transEnd(DATA.length, 1), CRF, DESELECT]) answers.push(summaryOf(await peer.send(step)));
        expect(answers).toEqual(['ACK(TRANS.END) 0-000', 'ACK(CRF) 0-000', 'ACK(DESELECT) 0-000']);
        expect(await node().history()).toMatchObject([{ direction: 'SEND', status: 'COMPLETED' }]);
        expect(summaryOf(await peer.send(message(Buffer.from('hello'))))).toBe(`ACK(MSG) ${diagnostic}`);
      },
    );

    test.each(HARMLESS)('go on when this changes: %s', async (_, change) => {
      const peer = await open();
      const credentials = (): Promise<unknown> => node().database.knex('partners').select('credentials');
      const kept = await credentials();
      await change(node());
      // Makes the service look, whatever the change did.
      await node().call('put', ACME, { allowedListeners: ['NODE?'] });
      expect(summaryOf(await peer.sendAll(create()))).toBe('ACK(CREATE) 0-000');
      expect(await credentials()).toEqual(kept);
      expect(reasons()).toEqual([]);
    });

    test('go on when it gains an operation', async () => {
      await node().call('put', ACME, { accessType: 'READ' });
      const peer = await open();
      await node().call('put', ACME, { accessType: 'BOTH' });
      expect(summaryOf(await peer.sendAll(create()))).toBe('ACK(CREATE) 0-000');
    });

    test('end, those of one partner, and others go on', async () => {
      await node().partner('OTHER');
      const other = await node().connect({ requester: 'OTHER' });
      const own = await open();
      await node().call('put', ACME, { enabled: false });
      expect(summaryOf(await own.next())).toBe('ABORT 3-322');
      await node().send(other, 'IN', Buffer.from('goes on'));
      expect(await node().received('IN')).toHaveLength(1);
    });

    describe.each(UNHEARD)('that know nothing of %s', (_, sql, diagnostic) => {
      test.each([
        ['CREATE', create(), 'ACK(CREATE)'],
        ['SELECT', select('OUT'), 'ACK(SELECT)'],
        ['MSG', message(Buffer.from('hello')), 'ACK(MSG)'],
      ])('are told so at the next %s', async (__, step, answer) => {
        const peer = await open();
        await unheard(node().database, sql);
        expect(summaryOf(await peer.send(step))).toBe(`${answer} ${diagnostic}`);
        expect(summaryOf(await peer.send(RELEASE))).toBe('RELCONF');
        expect(reasons()).toHaveLength(1);
      });
    });

    test('the record of what was refused says why', async () => {
      const peer = await open();
      await unheard(node().database, 'update partners set enabled = false');
      expect(summaryOf(await peer.send(create()))).toBe('ACK(CREATE) 3-322');
      const [record] = await node().history();
      expect(record).toMatchObject({
        ...{
          status: 'FAILED',
          diagnostic: '3-322',
          errorMessage: expect.stringMatching(/the partner ACME was disabled/),
        },
      });
    });
  });

  describe('pods', () => {
    const log = captureLog();
    let data: string;
    let pods: TestNode[];

    /** Each on an address of its own: with Redis both listen on every port as soon as one is started. */
    const start = async (
      partnerLookMs: number,
      settings: Partial<Config<'server'>> = {},
    ): Promise<readonly [TestNode, TestNode]> => {
      const database = await harness.open({ migrations: [MIGRATIONS] });
      const pod = (own: TestDatabase, node: string, host: string) =>
        new TestNode(own, data, log, {
          ...{ node, partnerLookMs, answerMs: 0 },
          settings: { ...settings, 'listener.host': host },
        });
      const first = pod(database, 'pod-a', '127.0.0.2');
      const second = pod(await harness.another(database), 'pod-b', '127.0.0.1');
      pods = [first, second];
      for (const pod of pods) await pod.start();
      await first.configure();
      const port = (second.port = await freePort());
      await second.call('post', '/api/v1/servers', { serverId: 'NODE2', port, autoStart: false });
      await second.call('post', '/api/v1/servers/NODE2/start');
      return [first, second];
    };

    beforeEach(async () => {
      pods = [];
      data = await mkdtemp(join(tmpdir(), 'pesit-pods-'));
    });

    afterEach(async () => {
      for (const pod of pods) await pod.stop();
      await rm(data, { recursive: true, force: true });
    });

    /** What is changed on one pod ends the sessions on the other. */
    const endsElsewhere = async ([here, there]: readonly [TestNode, TestNode]): Promise<void> => {
      const idle = await RawPeer.open(there.port, CONNECT);
      const busy = await RawPeer.open(there.port, CONNECT, create(), ORF, WRITE, DTF);
      await here.call('put', ACME, { password: 'n3w~Pass' });
      expect(summaryOf(await idle.next())).toBe('ABORT 3-304');
      // Its session was looked at together with the other.
      await busy.sendAll(DTF_END);
      expect(summaryOf(await busy.sendAll(transEnd(DATA.length, 1)))).toBe('ACK(TRANS.END) 0-000');
      await busy.sendAll(CRF, DESELECT);
      expect(summaryOf(await busy.sendAll(select('OUT')))).toBe('ACK(SELECT) 3-304');
      expect(summaryOf(await busy.sendAll(RELEASE))).toBe('RELCONF');
      for (const { socket } of [idle, busy]) socket.destroy();
    };

    test('without a word of each other: at the next look at the database', async () => {
      await endsElsewhere(await start(20));
    });

    withRedis(({ url, unique }) => {
      test('that hear each other through Redis: at once', async () => {
        const settings = { 'cluster.enabled': true, 'cluster.name': unique(), 'redis.url': url };
        const both = await start(HOUR, settings);
        await until(() => both.every(({ node }) => node.cluster.redisConnected === true) || undefined);
        await endsElsewhere(both);
      });
    });
  });
});

describe('a look at open sessions', () => {
  const standing = (credentials: string): PartnerStanding => ({
    ...{ partner_id: 'ACME', credentials, enabled: true, access_type: 'BOTH', allowed_files: null },
    ...{
      allowed_listeners: null,
      allowed_addresses: null,
      max_bytes_per_second: null,
      tls_required: false,
      certificate_fingerprint: null,
    },
    ...{ certificate_subject: null, certificate_san: null },
  });

  test('leaves a session alone that came while the database was asked: it may know better', async () => {
    let answer: (standings: readonly PartnerStanding[]) => void = () => undefined;
    const sessions = new OpenSessions({ standings: () => new Promise((resolve) => (answer = resolve)) });
    const looks: (string | undefined)[] = [];
    const session = (name: string) => ({
      partnerId: 'ACME',
      look: (now?: PartnerStanding) => void looks.push(`${name} ${now?.credentials}`),
      leave: () => undefined,
      lookAtCertificate: () => Promise.resolve(),
    });
    sessions.add(session('before'));
    const over = sessions.look();
    sessions.add(session('meanwhile'));
    answer([standing('old')]);
    await over;
    expect(looks).toEqual(['before old']);
  });

  test('asks nothing of the database where there is none, and once for each partner', async () => {
    const asked: (readonly string[])[] = [];
    const sessions = new OpenSessions({
      standings: (ids) => {
        asked.push(ids);
        return Promise.resolve([]);
      },
    });
    await sessions.look();
    const looks: unknown[] = [];
    const session = (partnerId: string) => ({
      partnerId,
      look: (now: unknown) => void looks.push([partnerId, now]),
      leave: () => undefined,
      lookAtCertificate: () => Promise.resolve(),
    });
    const gone = session('GONE');
    for (const one of [session('A'), session('A'), session('B'), gone]) sessions.add(one);
    sessions.remove(gone);
    await sessions.look();
    expect(asked).toEqual([['A', 'B']]);
    expect(looks).toEqual([
      ['A', undefined],
      ['A', undefined],
      ['B', undefined],
    ]);
  });

  test('one whose certificate cannot be judged keeps no other from its end', async () => {
    const sessions = new OpenSessions({ standings: () => Promise.resolve([]) });
    const looks: string[] = [];
    for (const partnerId of ['A', 'B', 'C']) {
      const lookAtCertificate = (): Promise<void> => {
        looks.push(partnerId);
        return partnerId === 'A' ? Promise.reject(new Error('there is no truststore')) : Promise.resolve();
      };
      sessions.add({ partnerId, look: () => undefined, leave: () => undefined, lookAtCertificate });
    }
    await expect(sessions.lookAtCertificates()).rejects.toThrow('there is no truststore');
    expect(looks).toEqual(['A', 'B', 'C']);
  });
});
