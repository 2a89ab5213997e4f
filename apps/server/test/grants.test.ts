/** Which partner may use which virtual file and listener, and that who may not is told what is said of an unknown one. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { summaryOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { addressProblem } from '../src/admission/addresses.js';
import { PASSWORD, refusedWith, useNode } from './support/node.js';
import type { TestNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, connectAs, create, select } from './support/steps.js';
import { faultyFields, useRest } from './support/rest.js';

type Grants = readonly string[] | null;

/** Grants of BANK2, and of the virtual file BANK1.IN; whether BANK2 may use it by default, and with `access.default: none`. */
const CASES: readonly (readonly [files: Grants, partners: Grants, all: boolean, none: boolean])[] = [
  [null, null, true, false],
  [['BANK1.IN'], null, true, true],
  [['BANK1.*'], null, true, true],
  [['BANK?.[A-I]N'], null, true, true],
  [['*'], null, true, true],
  [['BANK2.*', 'COMMON'], null, false, false],
  [['BANK1'], null, false, false],
  [['bank1.in'], null, false, false],
  [[], null, false, false],
  [null, ['BANK2'], true, true],
  [null, ['BANK*'], true, true],
  [null, ['BANK1'], false, false],
  [null, [], false, false],
  [['BANK1.IN'], ['BANK2'], true, true],
  [['BANK1.IN'], ['BANK1'], false, false],
  [['BANK2.IN'], ['BANK2'], false, false],
];

/** `allowedAddresses`, and which of these addresses they let in. */
const ADDRESSES = [
  '192.0.2.7',
  '::ffff:192.0.2.7',
  '::ffff:c000:207',
  '192.0.3.7',
  '2001:db8::7',
  '2001:db8:1::7',
  'unknown',
];
const FROM: readonly (readonly [allowed: Grants, lets: string])[] = [
  [null, 'yes yes yes yes yes yes yes'],
  [['192.0.2.7'], 'yes yes yes no no no no'],
  [['192.0.2.0/24'], 'yes yes yes no no no no'],
  [['::ffff:192.0.2.0/120'], 'yes yes yes no no no no'],
  [['0.0.0.0/0'], 'yes yes yes yes no no no'],
  [['2001:db8::/48'], 'no no no no yes no no'],
  [['2001:DB8:0:0::7', '192.0.3.0/24'], 'no no no yes yes no no'],
];

test.each(FROM)('allowedAddresses %j: %s', (allowed, lets) => {
  const partner = { partner_id: 'ACME', allowed_addresses: allowed };
  const told = ADDRESSES.map((address) => (addressProblem(partner, address) === undefined ? 'yes' : 'no'));
  expect(told.join(' ')).toBe(lets);
});

withDatabase((harness) => {
  for (const byDefault of ['all', 'none'] as const) {
    describe(`with access.default ${byDefault}`, () => {
      const node = useNode(harness, { settings: { 'access.default': byDefault } });

      /** What BANK2 is told that writes and reads a virtual file, its bytes from PI 2 on. */
      const answers = async (fileName: string): Promise<readonly (readonly [string, string])[]> => {
        const peer = await RawPeer.open(node().port, connectAs({ requester: 'BANK2' }));
        const all = [];
        for (const step of [create({ fileName }), select(fileName)]) {
          const answer = await peer.send(step);
          all.push([summaryOf(answer), answer!.toString('latin1').replaceAll(fileName, 'NAME').slice(6)] as const);
        }
        peer.socket.destroy();
        return all;
      };

      test('who is not allowed is told what is said of an unknown file, to the byte', async () => {
        await node().partner('BANK2', { allowedListeners: ['*'] });
        await node().virtualFile('BANK1.IN');
        const unknown = await answers('BANK9.IN');
        expect(unknown.map(([what]) => what)).toEqual(['ACK(CREATE) 2-226', 'ACK(SELECT) 2-205']);
        for (const [allowedFiles, allowedPartners, all, none] of CASES) {
          await node().call('put', '/api/v1/config/partners/BANK2', { allowedFiles });
          await node().call('put', '/api/v1/config/files/BANK1.IN', { allowedPartners });
          const [write, read] = await answers('BANK1.IN');
          const grants = { allowedFiles, allowedPartners };
          if (byDefault === 'all' ? all : none) {
            expect({ grants, write: write![0] }).toEqual({ grants, write: 'ACK(CREATE) 0-000' });
            continue;
          }
          expect({ grants, told: [write, read] }).toEqual({ grants, told: unknown });
          const refused = (await node().history('&status=FAILED')).slice(0, 2);
          expect(refused.map(({ direction }) => direction)).toEqual(['SEND', 'RECEIVE']);
          for (const { errorMessage } of refused) {
            expect(errorMessage).toMatch(/BANK2 is not granted the virtual file "BANK1.IN": .*allowedFiles/);
          }
        }
      });
    });
  }

  describe('a partner', () => {
    const node = useNode(harness);

    const two = async (): Promise<TestNode> => {
      await node().partner('BANK1');
      await node().partner('BANK2');
      await node().virtualFile('FOR-BANK1', { allowedPartners: ['BANK1'] });
      return node();
    };

    test('cannot read the file meant for another one, nor write into its directory', async () => {
      const { data } = await two();
      await writeFile(join(data, 'FOR-BANK1/out/statement.txt'), 'of BANK1');
      const other = await node().connect({ requester: 'BANK2' });
      await expect(node().receive(other, 'FOR-BANK1')).rejects.toEqual(refusedWith('2-205'));
      await expect(node().send(other, 'FOR-BANK1', Buffer.from('x'))).rejects.toEqual(refusedWith('2-226'));
      expect(await readdir(join(data, 'FOR-BANK1/in'))).toEqual([]);
      const own = await node().connect({ requester: 'BANK1' });
      expect(String(await node().receive(own, 'FOR-BANK1'))).toBe('of BANK1');
      await node().send(own, 'FOR-BANK1', Buffer.from('mine'));
      expect((await node().received('FOR-BANK1')).map(String)).toEqual(['mine']);
    });

    test('that loses a grant during the session has lost it for the next file', async () => {
      await two();
      const session = await node().connect({ requester: 'BANK1' });
      await node().send(session, 'FOR-BANK1', Buffer.from('first'));
      await node().call('put', '/api/v1/config/partners/BANK1', { allowedFiles: ['OTHER'] });
      await expect(node().send(session, 'FOR-BANK1', Buffer.from('second'))).rejects.toEqual(refusedWith('2-226'));
      await node().call('put', '/api/v1/config/partners/BANK1', { allowedFiles: null });
      await node().send(session, 'FOR-BANK1', Buffer.from('third'));
      expect(await node().received('FOR-BANK1')).toHaveLength(2);
    });
  });

  describe('a listener', () => {
    const node = useNode(harness);

    const connecting = async (password: string, more?: Buffer): Promise<string> => {
      const peer = await RawPeer.open(node().port);
      const answer = await peer.send(connectAs({ password, ...(more === undefined ? {} : { more }) }));
      peer.socket.destroy();
      return answer!.toString('latin1', 6);
    };
    const allow = (allowedListeners: Grants) =>
      node().call('put', '/api/v1/config/partners/ACME', { allowedListeners });

    test('that is not granted to a partner does not know it, whatever its password', async () => {
      await allow(['OTHER', 'NODE2']);
      const unknown = await RawPeer.open(node().port);
      const answer = await unknown.send(connectAs({ requester: 'NOBODY' }));
      unknown.socket.destroy();
      expect(summaryOf(answer)).toBe('RCONNECT 3-301');
      for (const password of [PASSWORD, 'wrong'])
        expect(await connecting(password)).toBe(answer!.toString('latin1', 6));
      expect(
        node()
          .log.entries()
          .findLast(({ msg }) => msg === 'connection refused'),
      ).toMatchObject({
        reason: expect.stringMatching(/ACME is not granted the listener NODE1: .*allowedListeners/),
      });
    });

    test('that is granted takes the partner', async () => {
      for (const grants of [['NODE1'], ['NODE?'], ['OTHER', 'N*'], null]) {
        await allow(grants);
        const peer = await RawPeer.open(node().port);
        expect([grants, summaryOf(await peer.send(CONNECT))]).toEqual([grants, 'ACONNECT']);
        peer.socket.destroy();
      }
    });
  });

  describe('a partner with allowedAddresses', () => {
    const node = useNode(harness);
    const PRECONNECTION = { identifier: 'PRE1', password: 'PRE~pass' };

    const connecting = async (address: string, password = PASSWORD): Promise<string> => {
      const peer = await RawPeer.from(address, node().port);
      const answer = await peer.send(connectAs({ password }));
      peer.socket.destroy();
      return answer!.toString('latin1', 6);
    };
    const refusals = () =>
      node().call('get', '/api/v1/audit?objectType=session&action=refused') as Promise<{
        readonly content?: readonly { readonly object: string; readonly details: string }[];
      }>;

    test('is refused from elsewhere with the words of a wrong password, and let in from there; each is audited', async () => {
      await node().call('put', '/api/v1/config/partners/ACME', { allowedAddresses: ['127.0.0.2', '2001:db8::/32'] });
      const wrong = await connecting('127.0.0.2', 'wrong');
      expect(await connecting('127.0.0.1')).toBe(wrong);
      // Its password is not looked at.
      expect(await connecting('127.0.0.3', 'wrong')).toBe(wrong);
      const peer = await RawPeer.from('127.0.0.2', node().port);
      expect(summaryOf(await peer.send(CONNECT))).toBe('ACONNECT');
      peer.socket.destroy();
      const { content = [] } = await refusals();
      expect(content.map(({ object, details }) => [object, JSON.parse(details)])).toEqual(
        ['127.0.0.3', '127.0.0.1', '127.0.0.2'].map((remoteAddress) => [
          'ACME',
          {
            ...{ diagnostic: '3-304', listener: 'NODE1', remoteAddress },
            reason: expect.stringMatching(
              remoteAddress === '127.0.0.2'
                ? /: the password \(PI 5\) of ACME is wrong$/
                : new RegExp(`: ACME came from ${remoteAddress}, which its allowedAddresses leave out: `),
            ),
          },
        ]),
      );
    });

    test('that tries from elsewhere again and again makes one entry', async () => {
      await node().call('put', '/api/v1/config/partners/ACME', { allowedAddresses: ['192.0.2.0/24'] });
      for (let time = 0; time < 12; time++) await connecting('127.0.0.1');
      expect((await refusals()).content).toHaveLength(1);
      expect(await node().call('get', '/api/v1/servers/NODE1')).toMatchObject({ refusedConnections: 12 });
    });

    test('does not come by its pre-connection from elsewhere', async () => {
      const allow = (allowedAddresses: Grants) =>
        node().call('put', '/api/v1/config/partners/ACME', {
          ...{ allowedAddresses, preconnectId: PRECONNECTION.identifier, preconnectPassword: PRECONNECTION.password },
        });
      await allow(['192.0.2.0/24']);
      await expect(node().connect({ preconnection: PRECONNECTION })).rejects.toEqual(refusedWith('3-304'));
      expect(node().log.lines.join()).toContain('NAK0');
      const { content = [] } = await refusals();
      expect(content.map(({ details }) => JSON.parse(details))).toEqual([
        expect.objectContaining({
          ...{ diagnostic: '3-304', listener: 'NODE1', remoteAddress: '127.0.0.1' },
          reason: expect.stringContaining('its allowedAddresses leave out') as unknown,
        }),
      ]);
      await allow(['127.0.0.1']);
      await node().connect({ preconnection: PRECONNECTION });
    });
  });

  describe('a listener with access.default none', () => {
    const node = useNode(harness, { settings: { 'access.default': 'none' } });

    test('knows only partners to which it is granted', async () => {
      const first = await RawPeer.open(node().port);
      expect(summaryOf(await first.send(CONNECT))).toBe('RCONNECT 3-301');
      first.socket.destroy();
      await node().call('put', '/api/v1/config/partners/ACME', { allowedListeners: ['NODE*'] });
      const second = await RawPeer.open(node().port);
      expect(summaryOf(await second.send(CONNECT))).toBe('ACONNECT');
      second.socket.destroy();
    });
  });

  describe('the interface', () => {
    const rest = useRest(harness);
    const PARTNERS = '/api/v1/config/partners';
    const FILES = '/api/v1/config/files';

    test('keeps grants, answers them, and clears them with null', async () => {
      const made = { partnerId: 'B', password: 'Zq!7xUp0', allowedFiles: ['A', 'B*'], allowedListeners: [] };
      const created = await rest.post(PARTNERS, made);
      expect(created.body).toMatchObject({ allowedFiles: ['A', 'B*'], allowedListeners: [] });
      expect((await rest.put(`${PARTNERS}/B`, { name: 'x' })).body).toMatchObject({ allowedFiles: ['A', 'B*'] });
      const cleared = await rest.put(`${PARTNERS}/B`, { allowedFiles: null, allowedListeners: null });
      expect(cleared.body).toMatchObject({ allowedFiles: null, allowedListeners: null });
      await rest.post(FILES, { fileId: 'F', allowedPartners: ['B'] });
      expect((await rest.get(`${FILES}/F`)).body).toMatchObject({ allowedPartners: ['B'] });
      expect((await rest.put(`${FILES}/F`, { allowedPartners: null })).body).toMatchObject({ allowedPartners: null });
    });

    test('refuses what cannot be a grant, by its place', async () => {
      for (const grant of ['a/b', '', 'F\u00c9', 'x'.repeat(256), 7, null]) {
        const partner = await rest.post(PARTNERS, {
          partnerId: 'B',
          password: 'Zq!7xUp0',
          allowedFiles: ['OK', grant],
        });
        expect([grant, partner.status, faultyFields(partner)]).toEqual([grant, 400, ['allowedFiles[1]']]);
        const file = await rest.post(FILES, { fileId: 'F', allowedPartners: [grant] });
        expect([grant, file.status, faultyFields(file)]).toEqual([grant, 400, ['allowedPartners[0]']]);
      }
    });

    test('refuses what is no address, by its place, and a list of none', async () => {
      for (const [list, fault, message] of [
        [['192.0.2.7', '192.0.2.0/33'], 'allowedAddresses[1]', /^expected an address or .*, got "192\.0\.2\.0\/33"$/],
        [['bank.example'], 'allowedAddresses[0]', /, got "bank\.example"$/],
        [[' '.repeat(51)], 'allowedAddresses[0]', /^expected at most 50 characters, got 51$/],
        [[], 'allowedAddresses', /^expected an address; /],
        ['192.0.2.7', 'allowedAddresses', /^expected a list /],
      ] as const) {
        const asked = { partnerId: 'B', password: 'Zq!7xUp0', allowedAddresses: list };
        const partner = await rest.post(PARTNERS, asked);
        expect([list, partner.status, [...new Set(faultyFields(partner))]]).toEqual([list, 400, [fault]]);
        expect((partner.body as { details: readonly { message: string }[] }).details[0]?.message).toMatch(message);
      }
    });

    test('refuses a grant that is no list', async () => {
      const file = await rest.post(FILES, { fileId: 'F', allowedPartners: 'BANK1' });
      expect([file.status, faultyFields(file)]).toEqual([400, ['allowedPartners']]);
    });
  });
});
