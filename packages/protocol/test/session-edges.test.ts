/** Where a session ends or changes while a request still waits for its answer. */
import { describe, expect, test } from '@jest/globals';
import { PesitError, RequesterSession, ServerSession } from '../src/index.js';
import type { SessionEvent } from '../src/index.js';
import { MINIMAL, dissect, entity, fpdu, text } from '../src/testing/index.js';
import type { Name } from '../src/testing/index.js';

const reason = new PesitError('cancelled by an administrator', { fault: 'local', diagnostic: '2-216' });

/** A server whose peer is the test. */
function server() {
  const session = new ServerSession({ dialect: 'length-prefixed', now: 0, connectionId: 9 });
  const events: SessionEvent[] = [];
  const settle = (): string[] => {
    for (let event = session.nextEvent(); event !== undefined; event = session.nextEvent()) events.push(event);
    return dissect(Buffer.concat(session.takeOutput()), 'length-prefixed').map(({ name }) => name);
  };
  const send = (name: Name, body = (MINIMAL as Record<string, string>)[name] ?? ''): void => {
    session.receive(entity(fpdu(name, name === 'CONNECT' ? 0 : 9, name === 'CONNECT' ? 7 : 0, body)), 0);
    settle();
  };
  return { session, events, settle, send };
}

function writing() {
  const side = server();
  side.send('CONNECT');
  side.session.acceptConnection({});
  side.send('CREATE');
  side.session.acceptCreate({ maxEntitySize: 4096 });
  side.send('ORF');
  side.session.acceptOpen();
  side.send('WRITE');
  side.session.acceptWrite({ number: 0, dataBytes: 0, articles: 0 });
  side.session.receive(entity(fpdu('DTF', 9, 0, text('article'))), 0);
  side.settle();
  return side;
}

describe('an interruption while TRANS.END waits for its answer', () => {
  test('by this side: TRANS.END is no longer to be answered', () => {
    const { session, send, settle, events } = writing();
    send('DTF.END');
    send('TRANS.END');
    expect(session.awaits('TRANS.END')).toBe(true);
    expect(session.interrupt(12, reason)).toBe(true);
    expect(session.awaits('TRANS.END')).toBe(false);
    expect(settle()).toEqual(['IDT']);
    send('ACK(IDT)');
    expect(events.at(-1)).toMatchObject({ kind: 'INTERRUPTED', by: 'us', endCode: 12 });
  });

  test('by the peer: the same', () => {
    const { session, send } = writing();
    send('DTF.END');
    send('TRANS.END');
    send('IDT');
    expect(session.awaits('TRANS.END')).toBe(false);
  });
});

describe('totals are those of the selected file', () => {
  test('on the server', () => {
    const { session, send } = writing();
    expect(session.totals).toEqual({ dataBytes: 7, articles: 1 });
    send('DTF.END');
    send('TRANS.END');
    session.acceptEnd();
    send('CRF');
    session.acceptClose();
    send('DESELECT');
    session.acceptDeselect();
    expect(session.totals).toEqual({ dataBytes: 7, articles: 1 });
    send('CREATE');
    session.acceptCreate({ maxEntitySize: 4096 });
    expect(session.totals).toEqual({ dataBytes: 0, articles: 0 });
  });

  test('on the requester', () => {
    const session = new RequesterSession({ dialect: 'length-prefixed', now: 0, connectionId: 7 });
    const receive = (name: Name, source = 0): void => {
      session.receive(entity(fpdu(name, 7, source, (MINIMAL as Record<string, string>)[name] ?? '')), 0);
    };
    const select = {
      fileIdentifier: { fileType: 0, fileName: 'F' },
      transferId: 0,
      maxEntitySize: 4096,
    };
    session.connect({ requester: 'A', server: 'B', accessType: 2 });
    receive('ACONNECT', 9);
    session.select(select);
    receive('ACK(SELECT)');
    session.open();
    receive('ACK(ORF)');
    session.read({ number: 0, dataBytes: 0, articles: 0 });
    receive('ACK(READ)');
    session.receive(entity(fpdu('DTF', 7, 0, text('article'))), 0);
    receive('DTF.END');
    session.endTransfer();
    receive('ACK(TRANS.END)');
    session.close();
    receive('ACK(CRF)');
    session.deselect();
    receive('ACK(DESELECT)');
    expect(session.totals).toEqual({ dataBytes: 7, articles: 1 });
    session.select(select);
    expect(session.totals).toEqual({ dataBytes: 0, articles: 0 });
  });
});

test('a requester that closes right after RELEASE has released the connection', () => {
  const { session, send, events, settle } = server();
  send('CONNECT');
  session.acceptConnection({});
  send('RELEASE');
  session.connectionLost(1);
  settle();
  expect(events.at(-1)).toEqual({ kind: 'ENDED', error: undefined });
});
