/**
 * The cost of the protocol engine alone: two sessions in this process, from the room for an article to the view
 * of it at the other end, over bytes that no socket has seen. No files: each article is filled from memory.
 */
import { RequesterSession, ServerSession, burstBufferSize } from '@pesit-node/protocol';
import type { Session } from '@pesit-node/protocol';
import type { Measurement } from './figures.js';

const BURST_SIZE = 512 * 1024;
/** Bytes that one read of a socket brings. */
const READ_SIZE = 64 * 1024;
const ENTITY = 32_768;
const START = { number: 0, dataBytes: 0, articles: 0 } as const;

/** Sends about `bytes` bytes in articles of `length` bytes, as many in one DTF as it takes; without sync points. */
export const codecRun = (length: number, bytes: number): Measurement => {
  const record = Buffer.alloc(length, '0123456789');
  const records = Math.ceil(bytes / length);
  const { requester, server } = writing(length);
  const buffer = Buffer.allocUnsafeSlow(burstBufferSize(ENTITY, BURST_SIZE));
  const cpuBefore = process.cpuUsage();
  const began = process.hrtime.bigint();
  let arrived = 0;
  let left = records;
  while (left > 0) {
    const burst = requester.beginBurst(buffer);
    while (left > 0 && burst.reserve(length)) left -= 1;
    for (const slot of burst.slots) slot.set(record);
    const sent = requester.endBurst();
    for (let from = 0; from < sent.length; from += READ_SIZE) {
      server.receive(sent.subarray(from, from + READ_SIZE), 0);
      for (let event = server.nextEvent(); event !== undefined; event = server.nextEvent()) {
        if (event.kind === 'ARTICLES') arrived += event.batch.ends.length;
      }
    }
  }
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  const { user, system } = process.cpuUsage(cpuBefore);
  if (arrived !== records) throw new Error(`codec: sent ${records} records, ${arrived} arrived`);
  return {
    seconds,
    bytes: records * length,
    records,
    transfers: 1,
    processes: [
      {
        name: 'codec',
        cpuSeconds: (user + system) / 1e6,
        peakRssMb: (process.resourceUsage().maxRSS * 1024) / 1e6,
      },
    ],
  };
};

/** Two ends that agreed on a file to write, in entities of 32 KB. */
const writing = (recordLength: number): { readonly requester: RequesterSession; readonly server: ServerSession } => {
  const common = { dialect: 'length-prefixed', now: 0 } as const;
  const requester = new RequesterSession({ ...common, connectionId: 1 });
  const server = new ServerSession({ ...common, connectionId: 2 });
  const pass = (from: Session, to: Session): void => {
    for (const bytes of from.takeOutput()) to.receive(bytes, 0);
    while (to.nextEvent() !== undefined);
  };
  const step = (ask: () => void, answer: () => void): void => {
    ask();
    pass(requester, server);
    answer();
    pass(server, requester);
  };
  step(
    () => requester.connect({ requester: 'BENCH', server: 'BENCHSRV', accessType: 0 }),
    () => server.acceptConnection({}),
  );
  step(
    () =>
      requester.create({
        fileIdentifier: { fileType: 0, fileName: 'FILE' },
        transferId: 1,
        maxEntitySize: ENTITY,
        recordFormat: 0,
        recordLength,
        maxReservationKb: 1,
      }),
    () => server.acceptCreate({ maxEntitySize: ENTITY }),
  );
  step(
    () => requester.open(),
    () => server.acceptOpen(),
  );
  step(
    () => requester.write(),
    () => server.acceptWrite(START),
  );
  requester.startSending(START);
  return { requester, server };
};
