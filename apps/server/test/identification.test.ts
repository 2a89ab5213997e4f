import { connect } from 'node:net';

import { describe, expect, test } from '@jest/globals';
import { PesitRequester } from '@pesit-node/net';
import { PesitError } from '@pesit-node/protocol';
import { captureLog, findDatabase, loseDatabase, withDatabase } from '@pesit-node/service/testing';

import { MIGRATIONS } from '../src/migrations/index.js';
import { Trials } from '../src/trials/trials.js';
import { PASSWORD, TestNode, useNode } from './support/node.js';

const WRONG = 'b4d#pAss';

withDatabase((harness) => {
  const node = useNode(harness);

  type Connect = Parameters<ReturnType<typeof node>['connect']>[0];

  const refusal = async (options: Connect): Promise<PesitError> => {
    try {
      await node().connect(options);
    } catch (error) {
      if (error instanceof PesitError) return error;
      throw error;
    }
    throw new Error('the connection was accepted');
  };

  const reasons = (): readonly unknown[] =>
    node()
      .log.entries()
      .filter(({ msg }) => msg === 'connection refused')
      .map(({ reason }) => reason);

  test('the right partner is let in', async () => {
    const session = await node().connect();
    expect(session.usable).toBe(true);
    expect(session.terms).toMatchObject({ syncInterval: 65_536, syncWindow: 4, version: 2 });
  });

  test('only on the address of listener.host', async () => {
    const address = { port: node().port, host: '127.0.0.2' };
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => {
      connect(address).once('error', resolve);
    });
    expect(error.code).toBe('ECONNREFUSED');
  });

  test.each(['NOBODY', 'acme', 'ACME2', '../ACME', "x' or 'a'='a", 'A\u0000B', 'é'])(
    'an unknown partner, %j: 3-301',
    async (requester) => {
      const error = await refusal({ requester });
      expect(error).toMatchObject({ fault: 'refused', diagnostic: '3-301' });
      expect(reasons().at(-1)).toMatch(/\(PI 3\) is not configured/);
    },
  );

  test('wrong password and disabled partner: 3-304, in the same words; the log tells them apart', async () => {
    const wrong = await refusal({ password: WRONG });
    await node().call('put', '/api/v1/config/partners/ACME', { enabled: false });
    const disabled = await refusal({});
    const both = await refusal({ password: WRONG });
    expect([wrong, disabled, both].map(({ diagnostic }) => diagnostic)).toEqual(['3-304', '3-304', '3-304']);
    expect(new Set([wrong.message, disabled.message, both.message]).size).toBe(1);
    expect(reasons().slice(-3)).toEqual([
      'the password (PI 5) of ACME is wrong',
      'the partner ACME is disabled',
      'the password (PI 5) of ACME is wrong',
    ]);
  });

  test.each<[string, string | undefined]>([
    ['no password', undefined],
    ['an empty password', ''],
    ['the beginning of it', PASSWORD.slice(0, 7)],
    ['the password of another case', PASSWORD.toLowerCase()],
    ['a new password after the right one', `${PASSWORD}NEWPASS1`],
    ['a new password after a wrong one', `${WRONG}NEWPASS1`],
  ])('%s: 3-304', async (_, password) => {
    expect((await refusal({ password })).diagnostic).toBe('3-304');
  });

  test('PeSIT Wizard sends messages without PI 5: 3-304, and the log says that there was none', async () => {
    for (const password of [undefined, '']) await refusal({ password });
    const none =
      'ACME sent no password (PI 5), and without one only a partner connects that is bound to a certificate: configure it on the other side';
    expect(reasons().slice(-2)).toEqual([none, none]);
  });

  test('blanks that pad PI 5 do not count', async () => {
    await expect(node().connect({ password: `${PASSWORD}        ` })).resolves.toBeInstanceOf(PesitRequester);
  });

  test('a new password takes effect at once, the old one ends', async () => {
    await node().connect();
    await node().call('put', '/api/v1/config/partners/ACME', { password: 'n3w~Passw'.slice(0, 8) });
    expect((await refusal({})).diagnostic).toBe('3-304');
    await node().connect({ password: 'n3w~Pass' });
  });

  describe('a new password in the second half of PI 5', () => {
    const NEXT = 'nxt~Pa55';
    const ACME = '/api/v1/config/partners/ACME';
    const both = `${PASSWORD}${NEXT}`;
    const permit = () => node().call('put', ACME, { mayChangePassword: true });
    const stored = async () => {
      const columns = ['password_hash', 'credentials'];
      const row: unknown = await node().database.knex('partners').where('partner_id', 'ACME').first(columns);
      return row as { password_hash: string; credentials: string };
    };

    test('is taken where the partner may change it: audited, hashed, and the old one ends', async () => {
      await permit();
      const other = await node().connect();
      const session = await node().connect({ password: both });
      // The session that asked stays, the others end.
      await node().send(session, 'IN', Buffer.from('x'));
      await expect(node().send(other, 'IN', Buffer.from('x'))).rejects.toMatchObject({ diagnostic: '3-304' });
      expect((await refusal({})).diagnostic).toBe('3-304');
      await node().connect({ password: NEXT });
      expect((await stored()).password_hash).toMatch(/^\$scrypt\$/);
      const { content } = await node().call('get', '/api/v1/audit?objectType=partner&actor=partner%20ACME');
      expect(content).toMatchObject([
        {
          ...{ action: 'changed', object: 'ACME', address: '127.0.0.1' },
          details: '{"changes":{"password":{"before":"set","after":"changed"}}}',
        },
      ]);
    });

    test('counts at once on another pod, which has just taken the old one', async () => {
      await permit();
      const own = await harness.another({ ...node().database, searchPath: [MIGRATIONS.schema] });
      const other = new TestNode(own, node().data, captureLog(), {
        ...{ node: 'pod-b', answerMs: 0, settings: { 'listener.host': '127.0.0.2' } },
      });
      await other.start();
      try {
        const there = { host: '127.0.0.2' };
        await (await node().connect(there)).release();
        await (await node().connect({ password: both })).release();
        await (await node().connect({ ...there, password: NEXT })).release();
        expect((await refusal(there)).diagnostic).toBe('3-304');
      } finally {
        await other.stop();
      }
    });

    test('said again changes nothing more, and lets in: the first answer may have been lost', async () => {
      await permit();
      await (await node().connect({ password: both })).release();
      const before = await stored();
      await node().connect({ password: both });
      expect(await stored()).toEqual(before);
    });

    test('that was replaced since is refused, however often it is said', async () => {
      await permit();
      await node().connect({ password: both });
      await node().call('put', ACME, { password: 'third#Pw' });
      const before = await stored();
      expect((await refusal({ password: both })).diagnostic).toBe('3-304');
      expect(await stored()).toEqual(before);
    });

    test('said twice at the same time is stored once, and both are let in or told to come again', async () => {
      await permit();
      const outcomes = await Promise.allSettled([
        node().connect({ password: both }),
        node().connect({ password: both }),
      ]);
      const reasons = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as PesitError] : []));
      expect(reasons.every(({ diagnostic }) => diagnostic === '3-322' || diagnostic === '3-304')).toBe(true);
      expect(reasons.length).toBeLessThan(2);
      await node().connect({ password: NEXT });
      const { totalElements } = await node().call('get', '/api/v1/audit?objectType=partner&actor=partner%20ACME');
      expect(totalElements).toBe(1);
    });

    test.each([
      ['the same one', PASSWORD, undefined],
      ['blanks', '        ', undefined],
      ['one with a blank first', ' abc', /no blank first/],
      ['one that is not ASCII', 'p\u00e4ss', /printable ASCII/],
    ])('%s', async (_, next, reason) => {
      await permit();
      const before = await stored();
      const password = `${PASSWORD}${next}`;
      if (reason === undefined) await node().connect({ password });
      else {
        expect((await refusal({ password })).diagnostic).toBe('3-304');
        expect(reasons().at(-1)).toMatch(reason);
      }
      expect(await stored()).toEqual(before);
    });
  });

  test('another server identifier: taken, unless the listener is strict', async () => {
    await node().connect({ server: 'ELSE' });
    await node().call('put', '/api/v1/servers/NODE1', { strictServerId: true });
    const error = await refusal({ server: 'ELSE' });
    expect([error.diagnostic, error.message]).toEqual(['3-301', expect.stringContaining('ELSE')]);
    await node().connect({ server: 'NODE1' });
  });

  test('more sessions than the partner may have: 3-309, until one ends', async () => {
    await node().call('put', '/api/v1/config/partners/ACME', { maxConnections: 2 });
    const [first] = await Promise.all([node().connect(), node().connect()]);
    expect((await refusal({})).diagnostic).toBe('3-309');
    await first.release();
    await node().connect();
    expect((await refusal({})).diagnostic).toBe('3-309');
  });

  test('a partner without a limit of its own has that of the configuration', async () => {
    for (let session = 0; session < 32; session++) await node().connect();
    expect((await refusal({})).diagnostic).toBe('3-309');
    expect(reasons().at(-1)).toBe(
      'ACME has 32 sessions already, on all pods together: set its maxConnections, or let it wait',
    );
    await node().call('put', '/api/v1/config/partners/ACME', { maxConnections: 33 });
    await node().connect();
  });

  test('a refused partner takes no place', async () => {
    await node().call('put', '/api/v1/config/partners/ACME', { maxConnections: 1 });
    for (let i = 0; i < 3; i++) await refusal({ password: WRONG });
    await node().connect();
  });

  test('more sessions than the listener takes: 3-309, changed while it runs', async () => {
    await node().call('put', '/api/v1/servers/NODE1', { maxConnections: 1 });
    await node().connect();
    expect((await refusal({})).diagnostic).toBe('3-309');
    await node().call('put', '/api/v1/servers/NODE1', { maxConnections: 2 });
    await node().connect();
  });

  test('a listener that insists on one header takes no other', async () => {
    await node().call('put', '/api/v1/servers/NODE1', { tcpipHeader: false });
    await expect(refusal({})).resolves.toMatchObject({ fault: 'transport' });
    await node().call('put', '/api/v1/servers/NODE1', { tcpipHeader: true });
    await node().connect();
  });

  test('refusals are counted and leave no record in the history', async () => {
    await refusal({ requester: 'NOBODY' });
    await refusal({ password: WRONG });
    expect(await node().call('get', '/api/v1/servers/NODE1/status')).toMatchObject({ refusedConnections: 2 });
    expect(await node().history()).toEqual([]);
  });

  describe('a login that this node tries itself', () => {
    const ACME = '/api/v1/config/partners/ACME';
    const trial = (more: Readonly<Record<string, unknown>> = {}, partnerId = 'ACME') =>
      node().call('post', `/api/v1/config/partners/${partnerId}/test`, {
        ...{ password: PASSWORD, serverId: 'NODE1' },
        ...more,
      });
    const COMES =
      'The way from ACME to this node, its names, firewalls and balancers: the test came from this node itself.';

    test('is let in as the partner would be, and leaves nothing but an audit entry', async () => {
      const before = await node().call('get', ACME);
      const { advice, ...answer } = await trial({ virtualFile: 'IN' });
      // On a loaded machine the round trip alone is worth one.
      expect([null, expect.any(String)]).toContainEqual(advice);
      expect(answer).toEqual({
        ...{ success: true, latency: expect.any(Number), roundTrip: expect.any(Number), serverVersion: 2 },
        message: `NODE1 accepted a session of ACME on port ${node().port}`,
        negotiated: {
          ...{ dialect: 'length-prefixed', version: 2, accessType: 2, crc: false, resync: false },
          ...{ syncInterval: node().config['transfer.sync-point-interval'], syncWindow: 4 },
        },
        ...{ tls: null, notTried: [COMES] },
        virtualFile: {
          fileId: 'IN',
          write: { allowed: true, diagnostic: null, message: null },
          read: { allowed: false, diagnostic: '2-226', message: expect.stringContaining('has direction RECEIVE') },
        },
      });
      expect(await node().call('get', ACME)).toEqual(before);
      expect(await node().history()).toEqual([]);
      expect(await node().text('get', '/actuator/prometheus')).toMatch(/^pesit_sessions_total(\{\})? 0$/m);
      expect(await node().call('get', '/api/v1/audit?objectType=partner&action=login%20tested')).toMatchObject({
        content: [{ object: 'ACME', actor: 'operator' }],
      });
      expect(node().log.entries()).toContainEqual(
        expect.objectContaining({ partner: 'ACME', msg: 'login of the partner tried: it is let in' }),
      );
    });

    test('with a wrong password is told so; it is no refused connection', async () => {
      expect(await trial({ password: WRONG })).toMatchObject({
        ...{ success: false, errorCode: 'AUTH_FAILED', diagnostic: '3-304' },
        message: 'the password (PI 5) is not that of ACME: try the right one, or give the partner a new one',
      });
      expect(await node().call('get', '/api/v1/servers/NODE1/status')).toMatchObject({ refusedConnections: 0 });
      expect(await node().call('get', '/api/v1/audit?action=login%20failed')).toMatchObject({ content: [] });
      expect(node().log.lines.join('\n')).not.toContain(WRONG);
    });

    test('says what it cannot show', async () => {
      await node().call('put', ACME, { allowedAddresses: ['192.0.2.0/24'], preconnectId: 'EXPRESS' });
      expect((await refusal({})).diagnostic).toBe('3-304');
      expect(await trial()).toMatchObject({
        success: true,
        notTried: [
          COMES,
          'Whether ACME comes from one of its allowedAddresses (192.0.2.0/24).',
          'The pre-connection EXPRESS that is asked of ACME.',
        ],
      });
    });

    test('takes no place of the partner', async () => {
      await node().call('put', ACME, { maxConnections: 1 });
      const session = await node().connect();
      expect(await trial()).toMatchObject({ success: true });
      await node().send(session, 'IN', Buffer.from('x'));
    });

    test('on a listener that is full is answered in words; it is no refused connection', async () => {
      await node().call('put', '/api/v1/servers/NODE1', { maxConnections: 1 });
      const session = await node().connect();
      expect(await trial()).toMatchObject({
        ...{ success: false, errorCode: 'CONNECTION_FAILED', diagnostic: '3-309' },
        message:
          'the listener NODE1 is full, though the login of ACME is right: 1 of 1 places are taken, on all pods together; raise its maxConnections, or let ACME wait',
      });
      expect(await trial({ password: WRONG })).toMatchObject({ success: false, diagnostic: '3-304' });
      expect(await node().call('get', '/api/v1/servers/NODE1/status')).toMatchObject({
        ...{ activeConnections: 1, refusedConnections: 0 },
      });
      await session.release();
    });

    test.each<[string, string, Readonly<Record<string, unknown>>, string, string]>([
      ['a disabled partner', ACME, { enabled: false }, '3-304', 'the partner ACME is disabled'],
      ['one without this listener', ACME, { allowedListeners: ['NODE2'] }, '3-301', 'name it in its allowedListeners'],
      [
        'one that needs TLS',
        ACME,
        { tlsRequired: true },
        '3-310',
        'ACME has to come over TLS (its tlsRequired is true)',
      ],
      [
        'a listener behind a balancer',
        '/api/v1/servers/NODE1',
        { proxyProtocol: 'required', trustedProxies: ['192.0.2.7'] },
        '3-310',
        'the listener NODE1 takes connections from its balancers alone',
      ],
    ])('of %s is refused in words', async (_, path, change, diagnostic, words) => {
      await node().call('put', path, change);
      expect(await trial()).toMatchObject({ success: false, diagnostic, message: expect.stringContaining(words) });
    });

    test('on a listener that is stopped, or not there, for a partner that is not there', async () => {
      await expect(trial({}, 'NOBODY')).rejects.toThrow('404');
      await expect(trial({ serverId: 'NODE2' })).rejects.toThrow('404');
      await node().call('post', '/api/v1/servers/NODE1/stop');
      expect(await trial()).toMatchObject({
        ...{ success: false, errorCode: 'CONNECTION_FAILED' },
        message: 'the listener NODE1 does not run on this pod (STOPPED): start it, or ask a pod that runs it',
      });
    });

    test('is known by a text that only its own session can know', () => {
      const trials = new Trials();
      const { freeMessage } = trials.begin('ACME');
      expect(trials.of({ requester: 'ACME', freeMessage })?.partnerId).toBe('ACME');
      expect(trials.of({ requester: 'ACME2', freeMessage })).toBeUndefined();
      expect(trials.of({ requester: 'ACME', freeMessage: trials.begin('ACME2').freeMessage })).toBeUndefined();
      const trial = trials.of({ requester: 'ACME', freeMessage });
      if (trial !== undefined) trials.end(trial);
      expect(trials.of({ requester: 'ACME', freeMessage })).toBeUndefined();
    });
  });

  describe('while the database is away', () => {
    test('partners are told to call later: 3-322', async () => {
      loseDatabase(node().database);
      const error = await refusal({});
      findDatabase(node().database);
      expect(error.diagnostic).toBe('3-322');
      await node().connect();
    });
  });

  test('passwords are not in the log', () => {
    const said = node().log.lines.join('\n');
    expect(said).not.toContain(WRONG);
    expect(said).not.toContain('NEWPASS1');
    expect(said).not.toContain('n3w~Pass');
    expect(said).not.toContain('nxt~Pa55');
  });
});
