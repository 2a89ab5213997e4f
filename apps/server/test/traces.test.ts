import { describe, expect, test } from '@jest/globals';
import { withDatabase, freePort } from '@pesit-node/service/testing';

import { bytes, refusedWith, TestNode, until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { WRITING } from './support/steps.js';

interface Session {
  readonly session: string;
  readonly outcome: string | null;
  readonly transfers: readonly string[];
  readonly [field: string]: unknown;
}

const PATH = '/api/v1/config/partners/ACME/trace';
const WRONG = 'wr0ng#Pw';
const PRECONNECT_PASSWORD = 'PR3C0N#7';

withDatabase((harness) => {
  // Written when it is asked for: a request and its transfer are never written apart.
  const node = useNode(harness, { traceGatherMs: 3_600_000 });

  const sessions = async (): Promise<readonly Session[]> => (await node().call('get', PATH))['content'] as Session[];
  /** The newest, when it is over. */
  const ended = (): Promise<Session> =>
    until(async () => (await sessions()).find(({ outcome }, index) => index === 0 && outcome !== null));
  /** Its lines, without time and session. */
  const lines = async ({ session }: Session): Promise<readonly string[]> =>
    (await node().text('get', `${PATH}/${session}`))
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.replace(/^\S+Z [0-9a-f-]{36} /, ''));
  /** Only what passed or happened, e.g. `<-- CREATE`. */
  const story = async (session: Session): Promise<readonly string[]> =>
    (await lines(session)).map((line) => line.replace(/^\S+ /, '').replace(/ (to|from) \d.*/, ''));
  const switchOn = () => node().call('put', PATH, { minutes: 5 });

  test('a session of a traced partner is there, line by line', async () => {
    await switchOn();
    expect(await node().call('get', '/api/v1/config/partners/ACME')).toMatchObject({ traceUntil: expect.any(String) });
    await RawPeer.open(node().port, ...WRITING);
    const session = await ended();
    const [record] = await node().history();
    const id = String(record!.id);
    expect(session).toMatchObject({
      ...{ session: record!['sessionId'], outcome: 'released', transfers: [id], node: 'node-a', listener: 'NODE1' },
      ...{ remoteAddress: expect.stringMatching(/127\.0\.0\.1$/), dialect: 'length-prefixed', lines: 22 },
    });
    expect(await story(session)).toEqual([
      ...['<-- CONNECT', '--> ACONNECT', '<-- CREATE', '--> ACK(CREATE)', '<-- ORF', '--> ACK(ORF)'],
      ...['<-- WRITE', '--> ACK(WRITE)', '<-- data: 1 FPDU, 25 bytes', '<-- SYN', '--> ACK(SYN)'],
      ...['<-- data: 1 FPDU, 25 bytes', '<-- DTF.END', '<-- TRANS.END', '--> ACK(TRANS.END)'],
      ...['<-- CRF', '--> ACK(CRF)', '<-- DESELECT', '--> ACK(DESELECT)', '<-- RELEASE', '--> RELCONF', '--- released'],
    ]);
    const all = await lines(session);
    expect(all[0]).toBe(
      '- <-- CONNECT to 0 from 1: PI 3 (requester identification) "ACME", PI 4 (server identification) "NODE1", ' +
        'PI 5 (access control) ********, PI 6 (version) 2 E, PI 7 (sync points) 64 KB, window 4, PI 22 (access type) 2 both',
    );
    expect(all[2]).toMatch(new RegExp(`^${id} <-- CREATE to .* PI 12 \\(file name\\) "IN"`));
    // From its request to the end of its file, every line has the transfer.
    expect(all.map((line) => line.split(' ')[0])).toEqual([
      ...['-', '-'],
      ...Array.from({ length: 17 }, () => id),
      ...['-', '-', '-'],
    ]);
  });

  test('nothing is kept of a partner without trace, nor of an unknown one', async () => {
    const session = await node().connect();
    await node().send(session, 'IN', bytes(10));
    await session.release();
    await expect(node().connect({ requester: 'NOBODY' })).rejects.toEqual(refusedWith('3-301'));
    expect(await sessions()).toEqual([]);
    await switchOn();
    await expect(node().connect({ requester: 'NOBODY' })).rejects.toEqual(refusedWith('3-301'));
    expect(await node().database.knex('session_traces')).toEqual([]);
  });

  test('the switch counts for the next session, and for running ones when it is turned off', async () => {
    const before = await node().connect();
    await switchOn();
    await node().send(before, 'IN', bytes(10));
    expect(await sessions()).toEqual([]);
    const traced = await node().connect();
    expect(await until(async () => ((await sessions()).length === 1 ? true : undefined))).toBe(true);
    await node().call('delete', PATH);
    await node().send(traced, 'IN', bytes(10));
    const [session] = await sessions();
    // What is written next finds the switch off.
    expect((await story(session!)).slice(0, 2)).toEqual(['<-- CONNECT', '--> ACONNECT']);
    await node().connect();
    expect(await sessions()).toHaveLength(1);
  });

  describe('who is refused', () => {
    test('is in the trace of the partner that its CONNECT names, without the password', async () => {
      await switchOn();
      await expect(node().connect({ password: WRONG })).rejects.toEqual(refusedWith('3-304'));
      const session = await ended();
      expect(session.outcome).toMatch(/^connection ended: 3-304 /);
      expect(await story(session)).toEqual([
        '<-- CONNECT',
        '--- connection refused: 3-304 requester not authorised: the password (PI 5) of ACME is wrong',
        '--> RCONNECT',
        expect.stringMatching(/^--- connection ended: 3-304 /),
      ]);
    });

    test('by a pre-connection, too', async () => {
      await node().call('put', '/api/v1/config/partners/ACME', {
        preconnectId: 'ACMEPRE',
        preconnectPassword: PRECONNECT_PASSWORD,
      });
      await switchOn();
      const preconnection = { identifier: 'ACMEPRE', password: WRONG };
      await expect(node().connect({ preconnection })).rejects.toEqual(refusedWith('3-304'));
      expect(await lines(await ended())).toEqual([
        '- <-- pre-connection PESIT: identifier "ACMEPRE", password ********',
        '- --> NAK0',
        '- --- pre-connection refused: the password is wrong',
      ]);
      const session = await node().connect({
        preconnection: { identifier: 'ACMEPRE', password: PRECONNECT_PASSWORD },
      });
      await session.release();
      const accepted = await until(async () => (await sessions()).find(({ outcome }) => outcome === 'released'));
      expect((await story(accepted)).slice(0, 3)).toEqual([
        '<-- pre-connection PESIT: identifier "ACMEPRE", password ********',
        '--> ACK0',
        '<-- CONNECT',
      ]);
    });

    test('a file that is refused says why on both sides of the line', async () => {
      await switchOn();
      const session = await node().connect();
      await expect(node().send(session, 'OUT', bytes(1))).rejects.toEqual(refusedWith('2-226'));
      await session.release();
      const said = await lines(await ended());
      expect(said.filter((line) => line.includes('2-226'))).toEqual([
        expect.stringMatching(/^- --- transfer refused: 2-226 transfer refused: /),
        expect.stringMatching(/^- --> ACK\(CREATE\) to \d+: PI 2 \(diagnostic\) 2-226 transfer refused/),
      ]);
    });
  });

  test('no secret is in any trace, nor in what the database keeps of it', async () => {
    await switchOn();
    await expect(node().connect({ password: WRONG })).rejects.toEqual(refusedWith('3-304'));
    const session = await node().connect();
    await node().send(session, 'IN', bytes(100));
    await session.release();
    await until(async () => ((await sessions()).every(({ outcome }) => outcome !== null) ? true : undefined));
    const all = await node().text('get', `${PATH}/content`);
    expect(all.match(/^# session /gm)).toHaveLength(2);
    const { rows } = await node().database.knex.raw<{ rows: unknown[] }>(
      'select t.*, p.* from session_traces t join session_trace_parts p on p.trace = t.id',
    );
    for (const secret of [WRONG, PRECONNECT_PASSWORD, Buffer.from(WRONG).toString('hex')]) {
      expect(all).not.toContain(secret);
      expect(JSON.stringify(rows)).not.toContain(secret);
    }
  });

  test('a trace is there after a restart, and goes with the partner', async () => {
    await switchOn();
    const session = await node().connect();
    await node().send(session, 'IN', bytes(100));
    await node().restart();
    const state = await node().call('get', PATH);
    expect(state).toMatchObject({ active: true, totalElements: 1 });
    expect(await story((state['content'] as Session[])[0]!)).toEqual(
      expect.arrayContaining(['<-- CONNECT', '--> ACK(TRANS.END)']),
    );
    await node().call('delete', '/api/v1/config/partners/ACME');
    await expect(node().call('get', PATH)).rejects.toThrow('404');
    expect(await node().database.knex('session_trace_parts')).toEqual([]);
  });

  test('the switch of one pod counts for another, and each shows the sessions of both', async () => {
    const other = new TestNode(await harness.another(node().database), node().data, node().log, { node: 'node-b' });
    await other.start();
    try {
      const port = await freePort();
      await other.call('post', '/api/v1/servers', { serverId: 'NODE2', port, autoStart: false });
      await other.call('post', '/api/v1/servers/NODE2/start');
      await switchOn();
      const there = await node().connect({ port });
      await there.release();
      // Written by the other pod some times a second.
      const session = await ended();
      expect(session).toMatchObject({ node: 'node-b', listener: 'NODE2', outcome: 'released' });
      expect(await story(session)).toContain('<-- CONNECT');
      await other.call('delete', PATH);
      await (await node().connect()).release();
      expect(await sessions()).toHaveLength(1);
    } finally {
      await other.stop();
    }
  });

  test('a message has its record, too', async () => {
    await switchOn();
    const session = await node().connect();
    const request = { fileIdentifier: { fileType: 0xffff, fileName: 'IN' }, transferId: 33 };
    await session.sendMessage({ request: { ...request, message: Buffer.alloc(60_000, 'm') } });
    await session.release();
    const { id } = (await node().history())[0]!;
    const said = (await lines(await ended())).filter((line) => line.startsWith(`${id} `));
    expect(said[0]).toMatch(/ <-- MSGDM to /);
    expect(said.at(-1)).toMatch(/ --> ACK\(MSG\) to /);
  });

  describe('what a partner says at CONNECT', () => {
    test('PI 99 is in the log and in lastSeen, readable and bounded', async () => {
      await node().connect({ freeMessage: Buffer.from(`hello \u001b[31m${' '.repeat(100)}`) });
      const [line] = node()
        .log.entries()
        .filter((entry) => 'freeMessage' in entry);
      const freeMessage = `base64:${Buffer.from(`hello \u001b[31m${' '.repeat(100)}`).toString('base64')}`;
      expect(line).toMatchObject({ freeMessage });
      await until(async () => {
        const { lastSeen } = (await node().call('get', '/api/v1/config/partners/ACME')) as { lastSeen: object | null };
        return lastSeen !== null && 'freeMessage' in lastSeen && lastSeen.freeMessage === freeMessage
          ? true
          : undefined;
      });
      await node().connect({ freeMessage: Buffer.from('BATCH 12'.padEnd(254)) });
      await until(() =>
        node()
          .log.entries()
          .find((entry) => entry['freeMessage'] === 'BATCH 12'),
      );
    });
  });
});
