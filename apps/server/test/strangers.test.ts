import { once } from 'node:events';

import { describe, expect, test } from '@jest/globals';
import { summaryOf } from '@pesit-node/protocol/testing';
import type { PesitError } from '@pesit-node/protocol';
import { FailureLimiter, PasswordVerifier } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';

import { PartnerPasswords } from '../src/admission/partner-passwords.js';
import { bytes, until, useNode } from './support/node.js';
import { passwords as cheap } from './support/passwords.js';
import { RawPeer } from './support/raw-peer.js';
import { connectAs } from './support/steps.js';

/** As many as in the experiment that found the hole. */
const BOGUS = 300;
/** Wrong passwords of one partner from one address that are looked at in a window: the tenth throttles, and two may run beside it. */
const LOOKED_AT = 12;
const WINDOW_MS = 10_000;

/** Who tries after ten wrong passwords of ACME from the first address: whether its password is looked at. */
const AFTER_TEN: readonly (readonly [from: string, address: string, partnerId: string, looked: boolean])[] = [
  ['192.0.2.7', '192.0.2.7', 'ACME', false],
  ['192.0.2.7', '::ffff:192.0.2.7', 'ACME', false],
  ['192.0.2.7', '192.0.2.7', 'BANK', true],
  ['192.0.2.7', '192.0.2.8', 'ACME', true],
  ['2001:db8::1', '2001:db8::ffff:2', 'ACME', false],
  ['2001:db8::1', '2001:db8:0:1::1', 'ACME', true],
  ['2001:db8::1', '192.0.2.7', 'ACME', true],
];

const newPasswords = (): PartnerPasswords => {
  const verifier = new PasswordVerifier({ check: (password) => Promise.resolve(password === 'right') });
  const renewals = { offer: () => undefined, hash: () => Promise.resolve('') };
  // A clock that stands still: however long ten checks take, they are within the window.
  return new PartnerPasswords(verifier, renewals, new FailureLimiter({ limit: 10, now: () => 0 }));
};

const showing = (remoteAddress: string, id: string, password: string) =>
  ({ partnerId: id, remoteAddress, column: 'password_hash', password, stored: `of ${id}` }) as const;

test('ten wrong ones that this node tries: the next is not looked at, and the partner is not held back from anywhere', async () => {
  const passwords = newPasswords();
  const wrong = (time: number) => showing('127.0.0.1', 'ACME', `wrong${time}`);
  for (let time = 0; time < 10; time++) expect(await passwords.tries(wrong(time))).toBe(false);
  await expect(passwords.tries(wrong(10))).rejects.toMatchObject({
    diagnostic: '3-322',
    message: expect.stringContaining('10 wrong passwords of ACME came from tests of this node'),
  });
  expect(await passwords.proves(wrong(10))).toBe(false);
  expect(await passwords.tries(showing('127.0.0.1', 'BANK', 'wrong'))).toBe(false);
  expect(await passwords.proves(showing('127.0.0.1', 'ACME', 'right'))).toBe(true);
});

test.each(AFTER_TEN)(
  'ten wrong ones from %s, then from %s as %s: looked at %j',
  async (from, address, partnerId, looked) => {
    const passwords = newPasswords();
    const shown = (...who: Parameters<typeof showing>) => passwords.proves(showing(...who));
    for (let time = 0; time < 10; time++) expect(await shown(from, 'ACME', `wrong${time}`)).toBe(false);
    const outcome = await shown(address, partnerId, 'right').catch(
      (error: unknown) => (error as PesitError).diagnostic,
    );
    expect(outcome).toBe(looked ? true : '3-322');
  },
);

withDatabase((harness) => {
  describe('300 bogus CONNECTs', () => {
    let looked = 0;
    const verifier = new PasswordVerifier({
      check: (password, stored) => {
        if (password.startsWith('bad')) looked++;
        return cheap.verify(password, stored);
      },
    });
    const node = useNode(harness, { verifier });
    let passwords = 0;

    /** A password that was never verified: the partner is new to the node. */
    const newPassword = async (partnerId: string): Promise<string> => {
      const password = `new~${1000 + passwords++}`;
      await node().call('put', `/api/v1/config/partners/${partnerId}`, { password });
      return password;
    };

    /** Each with a wrong password of its own; resolves with what they were told. */
    const attack = async (
      address: string,
      requester = 'ACME',
    ): Promise<{ readonly told: Promise<string[]>; readonly began: number }> => {
      looked = 0;
      const peers = await Promise.all(Array.from({ length: BOGUS }, () => RawPeer.from(address, node().port)));
      const began = performance.now();
      const told = peers.map(async (peer, i) => {
        const answer = summaryOf(await peer.send(connectAs({ requester, password: `bad${i}` })));
        peer.socket.destroy();
        return answer;
      });
      return { told: Promise.all(told), began };
    };

    const connected = async (options: { requester?: string; password: string }): Promise<void> => {
      await node().send(await node().connect({ ...options, connectTimeout: 120_000 }), 'IN', bytes(100));
    };

    /** It logs in and sends a file during an attack, behind no more wrong passwords than are looked at. @param began the attack */
    const comesThrough = async (began: number, options: { requester?: string; password: string }): Promise<void> => {
      await connected(options);
      const windows = Math.floor((performance.now() - began) / WINDOW_MS) + 1;
      expect(looked).toBeLessThanOrEqual(LOOKED_AT * windows);
    };

    const isRefusal = (answer: string): boolean => /^RCONNECT 3-(?:304|322)$/.test(answer);

    test('of another address: the partner that they name logs in behind few, and few passwords are looked at', async () => {
      const password = await newPassword('ACME');
      const { told, began } = await attack('127.0.0.2');
      await comesThrough(began, { password });
      const answers = await told;
      const windows = Math.floor((performance.now() - began) / WINDOW_MS) + 1;
      expect(answers.filter((answer) => !isRefusal(answer))).toEqual([]);
      expect(looked).toBeLessThanOrEqual(LOOKED_AT * windows);
      expect(answers.filter((answer) => answer.endsWith('3-304'))).toHaveLength(looked);
    });

    test('of its own address, behind one proxy: another partner logs in behind few', async () => {
      await node().partner('BANK2');
      const password = await newPassword('BANK2');
      const { told, began } = await attack('127.0.0.1');
      await comesThrough(began, { requester: 'BANK2', password });
      expect((await told).filter((answer) => !isRefusal(answer))).toEqual([]);
    });

    test('of its own address and in its name: a partner that was known before logs in, whatever is throttled', async () => {
      const password = await newPassword('ACME');
      await connected({ password });
      const { told, began } = await attack('127.0.0.1');
      await comesThrough(began, { password });
      await told;
      await connected({ password });
    });

    test('of its own address and in its name: one that was not known is told to come again, never that it is refused', async () => {
      const password = await newPassword('ACME');
      const { told } = await attack('127.0.0.1');
      const tries = [];
      for (let attempt = 0; attempt < 5; attempt++) {
        const peer = await RawPeer.from('127.0.0.1', node().port);
        tries.push(summaryOf(await peer.send(connectAs({ password }))));
        peer.socket.destroy();
      }
      await told;
      for (const answer of tries) expect(answer).toMatch(/^(?:ACONNECT|RCONNECT 3-322)$/);
    });

    test('leave a few lines in the log, and the next one says how many were left out', async () => {
      const before = node().log.entries().length;
      await (
        await attack('127.0.0.2')
      ).told;
      await (
        await attack('127.0.0.3', 'NOBODY')
      ).told;
      const lines = node().log.entries().slice(before);
      const refused = lines.filter(({ msg }) => msg === 'connection refused');
      expect(refused.filter(({ reason }) => String(reason).includes('ACME')).length).toBeGreaterThan(0);
      expect(refused.length).toBeLessThanOrEqual(20);
      const { refusedConnections } = await node().call('get', '/api/v1/servers/NODE1/status');
      expect(refusedConnections).toBe(2 * BOGUS);
    });
  });

  describe('a connection that is no partner', () => {
    const node = useNode(harness);

    test('leaves no line for each, and none of what is tolerated before somebody is proven', async () => {
      const before = node().log.entries().length;
      for (let i = 0; i < 40; i++) {
        const peer = await RawPeer.from('127.0.0.2', node().port);
        peer.write(Buffer.from('GET / HTTP/1.1\r\n\r\n'));
        await once(peer.socket, 'close');
      }
      const unknown = await RawPeer.from('127.0.0.2', node().port);
      // PI 200 is nothing that the specification has.
      await unknown.send(connectAs({ requester: 'NOBODY', more: Buffer.from([200, 1, 7]) }));
      unknown.socket.destroy();
      const lines = node().log.entries().slice(before);
      expect(lines.filter(({ msg }) => msg === 'connection rejected')).toHaveLength(10);
      expect(lines.filter(({ msg }) => msg === 'tolerated a deviation of the partner')).toEqual([]);
    });

    test('what is tolerated of a CONNECT has its line when its sender is proven', async () => {
      const peer = await RawPeer.open(node().port, connectAs({ more: Buffer.from([200, 1, 7]) }));
      const notices = () =>
        node()
          .log.entries()
          .filter(({ msg, partner }) => msg === 'tolerated a deviation of the partner' && partner === 'ACME');
      expect(notices()).toHaveLength(1);
      peer.socket.destroy();
    });
  });

  describe('when all checks are busy', () => {
    let end: () => void = () => undefined;
    let begun = 0;
    const verifier = new PasswordVerifier({
      ...{ maxRunning: 1, maxWaiting: 1 },
      check: async (password, stored) => {
        begun += 1;
        if (password.startsWith('bad')) await new Promise<void>((resolve) => (end = resolve));
        return cheap.verify(password, stored);
      },
    });
    const node = useNode(harness, { verifier });

    test('a right password that has no place is told to come again (3-322), not that it is wrong', async () => {
      const strangers = await Promise.all([1, 2].map(() => RawPeer.from('127.0.0.1', node().port)));
      const told = strangers.map((peer, i) => peer.send(connectAs({ password: `bad${i}` })));
      await until(() => begun === 1 || undefined);
      const partner = await RawPeer.from('127.0.0.1', node().port);
      const third = partner.send(connectAs());
      // Of three that want the two places one has none; which came last is not said.
      const first = await Promise.race([...told, third]);
      expect(summaryOf(first)).toBe('RCONNECT 3-322');
      end();
      await until(() => begun === 2 || undefined);
      end();
      for (const peer of [...strangers, partner]) peer.socket.destroy();
    });
  });
});
