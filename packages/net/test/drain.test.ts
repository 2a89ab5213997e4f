/** PesitListener.close: idle sessions at once, running transfers within the grace, and nobody forgotten. */
import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import { PesitListener } from '../src/index.js';
import { articlesOf, atEnd, connect, create, gate, listen, rawPeer, rejectionOf } from './support/harness.js';
import { MemorySource } from './support/memory.js';
import { BODIES, OK, diagnosticOf, valueOf } from './support/wire.js';

const draining = new PesitError('the node is draining', {
  fault: 'local',
  diagnostic: '3-322',
  peerText: 'come again in a minute',
});
const HOUR = 3_600_000;

async function refuses(port: number): Promise<void> {
  const socket = connectSocket({ port, host: '127.0.0.1' });
  const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
  expect(error.code).toBe('ECONNREFUSED');
}

/** A listener whose application is asked, and answers when the test says so. */
async function held(hook: 'connect' | 'transferFailed') {
  const asked = gate();
  const answer = gate();
  const listening = await listen({}, (handler) => {
    handler.hooks[hook] = () => {
      asked.open();
      return answer.passed;
    };
  });
  return { asked, answer, listening };
}

test('idle sessions are aborted at once with the diagnostic and its words', async () => {
  const listening = await listen();
  const [first, second] = [await rawPeer(listening.port), await rawPeer(listening.port)];
  await first.open();
  await second.open();
  const closed = listening.listener.close(draining, HOUR);
  for (const peer of [first, second]) {
    const abort = await peer.expect('ABORT');
    expect(diagnosticOf(abort)).toBe('3-322');
    expect(valueOf(abort.body, 29)?.toString()).toBe('come again in a minute');
    peer.socket.end();
  }
  await closed;
  expect(listening.handlers.map(({ calls }) => calls.at(-1))).toEqual(['ENDED 3-322', 'ENDED 3-322']);
  await refuses(listening.port);
});

test('connections without CONNECT are closed, whatever they have sent', async () => {
  const asked = gate();
  const judged = gate();
  const listening = await listen({
    preconnect: () => {
      asked.open();
      return judged.passed;
    },
  });
  const peers = await Promise.all(Array.from({ length: 4 }, () => rawPeer(listening.port)));
  peers[1]!.write('0018');
  peers[2]!.write('002c 002c 4020 0007 03');
  peers[3]!.write('d7c5e2c9e3404040 d7c1d9e3d5c5d940 e2c5c3d9c5e34040');
  await asked.passed;
  await listening.handler();
  await listening.listener.close(draining, HOUR);
  judged.open();
  await Promise.all(peers.map((peer) => peer.closed));
  expect(listening.handlers).toHaveLength(1);
  expect(listening.handlers[0]!.calls).toHaveLength(1);
});

test('a message that is being stored is answered; then its session ends', async () => {
  const asked = gate();
  const stored = gate();
  const listening = await listen({ timers: { close: 30 } }, (handler) => {
    handler.takeMessages();
    handler.hooks.message = async () => {
      asked.open();
      await stored.passed;
    };
  });
  const peer = await rawPeer(listening.port);
  await peer.open();
  peer.send('MSG', '0907 0b02ffff 0c014d 0d0101');
  await asked.passed;
  const closed = listening.listener.close(draining, HOUR);
  stored.open();
  expect(diagnosticOf(await peer.expect('ACK(MSG)'))).toBe('0-000');
  expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-322');
  peer.socket.end();
  await closed;
  expect(listening.handlers[0]!.messages).toHaveLength(1);
  expect(listening.handlers[0]!.imbalance).toEqual([]);
});

test('a transfer that runs ends in peace; then its session does, released by its partner', async () => {
  const listening = await listen();
  const peer = await rawPeer(listening.port);
  await peer.open();
  await peer.openToWrite();
  let closed = false;
  const closing = listening.listener.close(draining, HOUR).then(() => (closed = true));
  await refuses(listening.port);
  peer.send('DTF', Buffer.from('abc'));
  peer.send('DTF.END', OK);
  await peer.exchange('TRANS.END', '1b0103 1c0101', 'ACK(TRANS.END)');
  await peer.exchange('CRF', OK, 'ACK(CRF)');
  expect(closed).toBe(false);
  await peer.exchange('DESELECT', OK, 'ACK(DESELECT)');
  await peer.exchange('RELEASE', OK, 'RELCONF');
  peer.socket.end();
  await closing;
  expect(listening.handlers[0]!.calls.slice(1)).toEqual(['CREATE FILE', 'END', 'DESELECTED', 'ENDED released']);
});

test('a port that answers until the end refuses who comes meanwhile with the reason, and is free then', async () => {
  const listening = await listen();
  const peer = await rawPeer(listening.port);
  await peer.open();
  await peer.openToWrite();
  const closing = listening.listener.close(draining, HOUR, 0);
  const late = await rawPeer(listening.port);
  late.send('CONNECT', BODIES.CONNECT);
  expect(diagnosticOf(await late.expect('RCONNECT'))).toBe('3-322');
  late.socket.end();
  const silent = await rawPeer(listening.port);
  peer.send('DTF.END', OK);
  await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
  await peer.exchange('CRF', OK, 'ACK(CRF)');
  await peer.exchange('DESELECT', OK, 'ACK(DESELECT)');
  await peer.exchange('RELEASE', OK, 'RELCONF');
  peer.socket.end();
  await closing;
  await silent.closed;
  await refuses(listening.port);
});

test('a partner that does not release after its file is aborted after the time of a closing session', async () => {
  const listening = await listen({ timers: { close: 30 } });
  const peer = await rawPeer(listening.port);
  await peer.open();
  await peer.openToWrite();
  const closing = listening.listener.close(draining, HOUR);
  peer.send('DTF.END', OK);
  await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
  await peer.closeFile();
  expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-322');
  peer.socket.end();
  await closing;
  expect(listening.handlers[0]!.calls.slice(1)).toEqual(['CREATE FILE', 'END', 'DESELECTED', 'ENDED 3-322']);
});

/** Ends the grace of a drain; resolves after it: timers of one length fire in the order in which they were set. */
async function endGrace(listener: PesitListener): Promise<void> {
  const hurried = listener.close(draining, 0);
  atEnd(() => hurried);
  await new Promise((resolve) => setTimeout(resolve, 0));
}

test.each([
  ['a file that is written', 'openToWrite'],
  ['a file that is read', 'openToRead'],
] as const)(
  '%s that has ended when the time of the drain is over is still closed, deselected and released',
  async (_, open) => {
    const listening = await listen({}, (handler) => (handler.source = () => new MemorySource([])));
    const peer = await rawPeer(listening.port);
    await peer.open();
    await peer[open]();
    const closing = listening.listener.close(draining, HOUR);
    if (open === 'openToWrite') peer.send('DTF.END', OK);
    else await peer.expect('DTF.END');
    await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
    await endGrace(listening.listener);
    await peer.exchange('CRF', OK, 'ACK(CRF)');
    await peer.exchange('DESELECT', OK, 'ACK(DESELECT)');
    await peer.exchange('RELEASE', OK, 'RELCONF');
    peer.socket.end();
    await closing;
    expect(listening.handlers[0]!.calls.at(-1)).toBe('ENDED released');
  },
);

test('a partner whose file was deselected before the time of the drain was over still releases in peace', async () => {
  const listening = await listen();
  const peer = await rawPeer(listening.port);
  await peer.open();
  await peer.openToWrite();
  const closing = listening.listener.close(draining, HOUR);
  peer.send('DTF.END', OK);
  await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
  await peer.closeFile();
  await endGrace(listening.listener);
  await peer.exchange('RELEASE', OK, 'RELCONF');
  peer.socket.end();
  await closing;
  expect(listening.handlers[0]!.calls.at(-1)).toBe('ENDED released');
});

test('a requester with files to send gets the reason for the next one', async () => {
  const listening = await listen();
  const requester = await connect(listening.port);
  const closing: Promise<void>[] = [];
  const source = new MemorySource(articlesOf([5000, 5000]));
  source.beforeFill = () => {
    if (closing.length === 0) closing.push(listening.listener.close(draining, HOUR));
  };
  await requester.sendFile({ request: create, source });
  const error = await rejectionOf(requester.sendFile({ request: create, source: new MemorySource([]) }));
  expect(error).toMatchObject({ fault: 'refused', diagnostic: '3-322' });
  expect(error.message).toContain('come again in a minute');
  await requester.release();
  await Promise.all(closing);
});

test('a CREATE that crosses the closing is refused with the reason, and the session ends', async () => {
  const deselected = gate();
  const listening = await listen(
    { timers: { close: 30 } },
    (handler) => (handler.hooks.deselected = () => deselected.passed),
  );
  const peer = await rawPeer(listening.port);
  await peer.open();
  await peer.openToWrite();
  const closing = listening.listener.close(draining, HOUR);
  peer.send('DTF.END', OK);
  await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
  await peer.closeFile();
  await new Promise((resolve) => peer.socket.write(peer.entity('CREATE', BODIES.CREATE), resolve));
  // It is there when a later connection attempt has been answered.
  await refuses(listening.port);
  deselected.open();
  const answer = await peer.next();
  // Either the file is refused, or the session was over before it was read.
  if (answer?.name === 'ACK(CREATE)') {
    expect(diagnosticOf(answer)).toBe('3-322');
    await peer.expect('ABORT');
  } else expect(answer?.name).toBe('ABORT');
  peer.socket.end();
  await closing;
  expect(listening.handlers[0]!.log.filter((line) => line.startsWith('CREATE'))).toHaveLength(1);
  expect(listening.handlers[0]!.imbalance).toEqual([]);
});

test('a partner that is being identified is refused with RCONNECT', async () => {
  const { asked, answer, listening } = await held('connect');
  const peer = await rawPeer(listening.port);
  peer.send('CONNECT', BODIES.CONNECT);
  await asked.passed;
  const closing = listening.listener.close(draining, HOUR);
  answer.open();
  expect(diagnosticOf(await peer.expect('RCONNECT'))).toBe('3-322');
  peer.socket.end();
  await closing;
  expect(listening.handlers[0]!.calls.at(-1)).toBe('ENDED 3-322');
});

describe('beyond the grace', () => {
  test('a transfer is interrupted: a restart follows; its handler is told before close resolves', async () => {
    const { asked, answer: told, listening } = await held('transferFailed');
    const peer = await rawPeer(listening.port);
    await peer.open();
    await peer.openToWrite();
    let closed = false;
    const closing = listening.listener.close(draining, 30).then(() => (closed = true));
    const interruption = await peer.expect('IDT');
    expect(diagnosticOf(interruption)).toBe('3-322');
    // PI 19 = 4.
    expect(interruption.body.toString('hex')).toContain('130104');
    peer.send('ACK(IDT)');
    await asked.passed;
    expect(listening.handlers[0]!.calls.at(-1)).toBe('FAILED 3-322 end 4');
    expect(closed).toBe(false);
    told.open();
    await peer.closeFile();
    await peer.exchange('RELEASE', OK, 'RELCONF');
    peer.socket.end();
    await closing;
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });

  test('a partner that does not answer the interruption is aborted', async () => {
    const listening = await listen({ timers: { close: 30 } });
    const peer = await rawPeer(listening.port);
    await peer.open();
    await peer.openToWrite();
    const closing = listening.listener.close(draining, 0);
    await peer.expect('IDT');
    expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-322');
    peer.socket.end();
    await closing;
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });

  test('a partner that does not close does not keep the listener', async () => {
    const listening = await listen({ timers: { close: 30 } });
    const peer = await rawPeer(listening.port);
    peer.socket.allowHalfOpen = true;
    await peer.open();
    await peer.openToWrite();
    await listening.listener.close(draining, 0);
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });

  test('a second close shortens the grace of the first; both resolve, and a third', async () => {
    const listening = await listen({ timers: { close: 30 } });
    const peer = await rawPeer(listening.port);
    await peer.open();
    await peer.openToWrite();
    const first = listening.listener.close(draining, HOUR);
    const harder = new PesitError('now', { fault: 'local', diagnostic: '3-316' });
    const second = listening.listener.close(harder, 0);
    expect(diagnosticOf(await peer.expect('IDT'))).toBe('3-316');
    expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-316');
    peer.socket.end();
    await Promise.all([first, second]);
    await listening.listener.close(draining, HOUR);
    expect(listening.handlers[0]!.calls.at(-1)).toBe('ENDED 3-316');
  });
});

describe('a port that is given up', () => {
  test('is free at once, and its sessions go on: the file that runs, the next one, and those that do nothing', async () => {
    const listening = await listen();
    const [peer, idle] = [await rawPeer(listening.port), await rawPeer(listening.port)];
    await peer.open();
    await idle.open();
    await peer.openToWrite();
    let over = false;
    const abandoned = listening.listener.abandon().then(() => (over = true));
    await refuses(listening.port);
    peer.send('DTF.END', OK);
    await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
    await peer.closeFile();
    for (const each of [peer, idle]) {
      await each.openToWrite();
      each.send('DTF.END', OK);
      await each.exchange('TRANS.END', '', 'ACK(TRANS.END)');
      await each.closeFile();
    }
    expect([listening.listener.activeConnections, over]).toEqual([2, false]);
    for (const each of [peer, idle]) {
      await each.release();
      each.socket.end();
    }
    await abandoned;
    expect(listening.handlers.map(({ calls }) => calls.at(-1))).toEqual(['ENDED released', 'ENDED released']);
  });

  test('can be closed afterwards', async () => {
    const listening = await listen();
    const peer = await rawPeer(listening.port);
    await peer.open();
    const abandoned = listening.listener.abandon();
    const closed = listening.listener.close(draining, HOUR);
    expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-322');
    peer.socket.end();
    await Promise.all([abandoned, closed]);
  });
});

describe('a session that is retired', () => {
  const retired = new PesitError('the password was changed', {
    fault: 'local',
    diagnostic: '3-304',
    peerText: 'connect again',
  });

  test('and does nothing is aborted at once with the reason; others are not touched', async () => {
    const listening = await listen();
    const [peer, other] = [await rawPeer(listening.port), await rawPeer(listening.port)];
    await peer.open();
    await other.open();
    listening.handlers[0]!.connection.retire(retired);
    const abort = await peer.expect('ABORT');
    expect([diagnosticOf(abort), valueOf(abort.body, 29)?.toString()]).toEqual(['3-304', 'connect again']);
    peer.socket.end();
    await other.release();
  });

  test('ends its file, is refused the next one with the reason, and may release', async () => {
    const listening = await listen();
    const peer = await rawPeer(listening.port);
    await peer.open();
    await peer.openToWrite();
    listening.handlers[0]!.connection.retire(retired);
    peer.send('DTF', Buffer.from('abc'));
    peer.send('DTF.END', OK);
    await peer.exchange('TRANS.END', '1b0103 1c0101', 'ACK(TRANS.END)');
    await peer.closeFile();
    expect(diagnosticOf(await peer.exchange('CREATE', BODIES.CREATE, 'ACK(CREATE)'))).toBe('3-304');
    await peer.exchange('RELEASE', OK, 'RELCONF');
    peer.socket.end();
    await listening.handlers[0]!.over;
    expect(listening.handlers[0]!.calls.slice(1)).toEqual(['CREATE FILE', 'END', 'DESELECTED', 'ENDED released']);
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });

  test('after its file is aborted with the reason when it does not release', async () => {
    const listening = await listen({ timers: { close: 30 } });
    const peer = await rawPeer(listening.port);
    await peer.open();
    await peer.openToWrite();
    listening.handlers[0]!.connection.retire(retired);
    peer.send('DTF.END', OK);
    await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
    await peer.closeFile();
    expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-304');
    peer.socket.end();
    expect((await listening.handlers[0]!.over)?.diagnostic).toBe('3-304');
  });
});

test('the port is free again, and a port in use is an error that says so', async () => {
  const listening = await listen();
  const options = {
    host: '127.0.0.1',
    port: listening.port,
    maxConnections: 1,
    tcpipHeader: 'auto' as const,
    accept: listening.accept,
    rejected: () => undefined,
  };
  await expect(PesitListener.listen(options)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  await listening.listener.close(draining, 0);
  const again = await PesitListener.listen(options);
  expect(again.port).toBe(options.port);
  await again.close(draining, 0);
});
