import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import { EventStream } from '@pesit-node/service';
import type { NewAuditEntry } from '@pesit-node/service';
import { auditTransfers, SESSION_REFUSED, TRANSFER_ENDED, TRANSFER_REFUSED } from '@pesit-node/transfers';
import type { EndStatus } from '@pesit-node/transfers';

let events: EventStream;
let noted: NewAuditEntry[];
let which: 'all' | 'failures' | 'none';

beforeEach(() => {
  events = new EventStream({
    ...{ app: 'server', node: 'pod-1' },
    failed: (error) => {
      throw error;
    },
  });
  noted = [];
  which = 'failures';
  const note = (entry: NewAuditEntry): void => void noted.push(entry);
  auditTransfers(
    events,
    { note, include: () => undefined },
    () => which,
    () => 1_000_000_000_000,
  );
});
afterEach(() => {
  events.close();
});

const ends = (id: number, status: EndStatus | undefined): void => {
  const transfer = {
    ...({ type: 'FILE', direction: 'SEND', peer: 'ACME' } as const),
    id,
    name: 'F',
    progress: () => undefined,
  };
  events.publish(TRANSFER_ENDED, { session: undefined, transfer, status, diagnostic: '2-211', facts: {} });
};
const refused = (counted: boolean): void => {
  const about = { session: undefined, type: 'FILE', direction: 'SEND', peer: 'ACME', error: undefined } as const;
  events.publish(TRANSFER_REFUSED, { ...about, status: 'FAILED', diagnostic: '2-205', counted, facts: {} });
};
const said = () => noted.map(({ action, objectType, object }) => [action, objectType, object]);

test.each([
  [
    'failures',
    [
      ['failed', 'transfer', '2'],
      ['cancelled', 'transfer', '3'],
      ['refused', 'transfer', undefined],
    ],
  ],
  [
    'all',
    [
      ['completed', 'transfer', '1'],
      ['failed', 'transfer', '2'],
      ['cancelled', 'transfer', '3'],
      ['refused', 'transfer', undefined],
    ],
  ],
  ['none', []],
] as const)('audit.transfers: %s', (value, expected) => {
  which = value;
  ends(1, 'COMPLETED');
  ends(2, 'FAILED');
  // Another attempt follows.
  ends(2, undefined);
  ends(3, 'CANCELLED');
  refused(false);
  refused(true);
  expect(said()).toEqual(expected);
});

test('an outcome says which file of whom, and why', () => {
  ends(2, 'FAILED');
  expect(noted[0]?.details).toMatchObject({
    type: 'FILE',
    direction: 'SEND',
    peer: 'ACME',
    name: 'F',
    diagnostic: '2-211',
  });
});

test('a storm of failures makes no more than its share; completed ones are not bounded', () => {
  which = 'all';
  for (let id = 0; id < 1000; id++) ends(id, 'FAILED');
  expect(noted).toHaveLength(600);
  for (let id = 0; id < 1000; id++) ends(id, 'COMPLETED');
  expect(noted).toHaveLength(1600);
});

test('a certificate that was refused: one entry for an address and a reason, and those of partners are still noted', () => {
  const refuse = (remoteAddress: string, code: string, certificate?: string): void => {
    const session = { facts: { remoteAddress, listener: 'NODE1' } };
    const about = { session, diagnostic: undefined, error: undefined, certificate };
    events.publish(SESSION_REFUSED, { ...about, facts: { reason: 'why', code } });
  };
  for (let time = 0; time < 20; time++) refuse('192.0.2.7', 'TLS_UNKNOWN_CA', `a CA named ${time} ${'x'.repeat(500)}`);
  refuse('192.0.2.7', 'TLS_NOT_SPOKEN');
  const [only, ...more] = noted;
  expect(more).toEqual([]);
  const reason = `a CA named 0 ${'x'.repeat(500)}`.slice(0, 300);
  const details = { code: 'TLS_UNKNOWN_CA', listener: 'NODE1', remoteAddress: '192.0.2.7', reason };
  expect(only).toEqual({ action: 'refused', objectType: 'session', details });
  for (let host = 0; host < 1000; host++) refuse(`2001:db8::${host}`, 'TLS_UNKNOWN_CA', 'a CA');
  expect(noted).toHaveLength(60);
  const error = new PesitError('wrong password', { diagnostic: '3-304', fault: 'remote' });
  events.publish(SESSION_REFUSED, {
    ...{ session: { facts: {} }, diagnostic: '3-304', error, named: 'ACME', facts: {} },
  });
  expect(noted).toHaveLength(61);
});

test('refused sessions: one entry for an address and whom it says to be', () => {
  const refuse = (remoteAddress: string, error: unknown): void => {
    const session = { facts: { remoteAddress, listener: 'NODE1' } };
    events.publish(SESSION_REFUSED, { session, diagnostic: '3-304', error, named: 'ACME', facts: {} });
  };
  const wrong = new PesitError('wrong password', { diagnostic: '3-304', fault: 'remote' });
  for (let time = 0; time < 20; time++) refuse('192.0.2.7', wrong);
  refuse('192.0.2.8', wrong);
  refuse('192.0.2.9', new Error('a fault of ours'));
  expect(said()).toEqual([
    ['refused', 'session', 'ACME'],
    ['refused', 'session', 'ACME'],
  ]);
  expect(noted[0]?.details).toMatchObject({ diagnostic: '3-304', listener: 'NODE1', remoteAddress: '192.0.2.7' });
});
