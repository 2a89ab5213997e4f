/** Whether a transfer ended as every transfer must. */
import { KB, MB, type SessionPlan, type TransferPlan } from './plan.js';
import type { Json } from './rest.js';

export interface Observation {
  /** SHA-256 of the source, hex. */
  readonly hash: string;
  /** Contents of the directory where the file arrives. */
  readonly delivered: readonly { readonly path: string; readonly size: number; readonly hash: string }[];
  /** Names in its staging directory. */
  readonly leftovers: readonly string[];
  /** Records of the client app for this transfer, and those that the server app has made in this round. */
  readonly clientRecords: readonly Json[];
  readonly serverRecords: readonly Json[];
  /** Article bytes that the sender put on the wire, over all attempts. */
  readonly dataBytes: number;
  /** Attempts that came as far as WRITE or READ. */
  readonly attempts: number;
  /** Resynchronisations that were answered. */
  readonly resyns: number;
}

export type Fate = 'lost' | 'doubled' | 'wrong' | 'unfinished';

export interface Finding {
  readonly fate: Fate;
  readonly text: string;
}

/** A sender that never waits for an acknowledgement has so much in flight: two bursts and the buffers of two sockets. */
const IN_FLIGHT = 16 * MB;

/** The file as it counts on the wire (PI 27): TF pads, TV leaves out the LF, the others are as they are. */
export const articleBytes = (record: Json): number => Number(record['bytesTransferred'] ?? 0);

/**
 * The most that one interruption may cost: what the window lets be unacknowledged, and what one flush answers (the megabyte
 * that may wait for the disk). Without points it is the whole file; without acknowledgements, what is in flight.
 */
export const resendLimit = ({ interval, window }: SessionPlan, total: number): number => {
  if (interval === 0) return total;
  return window === 0 ? interval * KB + IN_FLIGHT : window * interval * KB + MB;
};

/** Article bytes that went over the wire more than once. */
export const resentBytes = ({ dataBytes, clientRecords }: Observation): number =>
  clientRecords[0] === undefined ? 0 : Math.max(0, dataBytes - articleBytes(clientRecords[0]));

const isOpen = ({ status }: Json): boolean => status === 'PENDING' || status === 'IN_PROGRESS';

const judgeFile = ({ file }: TransferPlan, { delivered, hash }: Observation): Finding[] => {
  const findings: Finding[] = [];
  if (delivered.length === 0) findings.push({ fate: 'lost', text: 'no file was delivered' });
  if (delivered.length > 1)
    findings.push({
      fate: 'doubled',
      text: `${delivered.length} files: ${delivered.map(({ path }) => path).join(', ')}`,
    });
  for (const one of delivered) {
    if (one.hash !== hash)
      findings.push({ fate: 'wrong', text: `${one.path}: ${one.size} bytes, ${file.size} were sent, or other ones` });
  }
  return findings;
};

const judgeRecords = (side: string, records: readonly Json[], { file }: TransferPlan, hash: string): Finding[] => {
  const findings: Finding[] = [];
  const completed = records.filter(({ status }) => status === 'COMPLETED');
  if (completed.length === 0)
    findings.push({ fate: 'unfinished', text: `the ${side} app has no COMPLETED record, but ${statuses(records)}` });
  if (completed.length > 1) findings.push({ fate: 'doubled', text: `the ${side} app has ${statuses(records)}` });
  for (const record of records.filter(isOpen))
    findings.push({
      fate: 'unfinished',
      text: `the ${side} app keeps record ${String(record['id'])} ${String(record['status'])}`,
    });
  for (const { id, size, checksum } of completed) {
    if (size !== file.size)
      findings.push({
        fate: 'wrong',
        text: `record ${String(id)} of the ${side} app says size ${String(size)}, not ${file.size}`,
      });
    if (checksum !== `sha256:${hash}`)
      findings.push({
        fate: 'wrong',
        text: `record ${String(id)} of the ${side} app says ${String(checksum)}, not sha256:${hash}`,
      });
  }
  return findings;
};

/** Their statuses and diagnostics in a line. */
export const statuses = (records: readonly Json[]): string =>
  records.length === 0
    ? 'none'
    : records
        .map(({ status, diagnostic }) => `${String(status)} (${typeof diagnostic === 'string' ? diagnostic : '-'})`)
        .join(', ');

/** Everything that is not as it must be; empty when the transfer is well. */
export const judge = (plan: TransferPlan, session: SessionPlan, observation: Observation): readonly Finding[] => {
  const { clientRecords, serverRecords, leftovers, hash, attempts, resyns } = observation;
  const findings = [
    ...judgeFile(plan, observation),
    ...judgeRecords('client', clientRecords, plan, hash),
    ...judgeRecords('server', serverRecords, plan, hash),
  ];
  if (leftovers.length > 0)
    findings.push({ fate: 'wrong', text: `left in the staging directory: ${leftovers.join(', ')}` });
  const [client] = clientRecords;
  if (client === undefined) return findings;
  for (const server of serverRecords.filter(({ status }) => status === 'COMPLETED')) {
    for (const count of ['bytesTransferred', 'articles'] as const) {
      if (server[count] !== client[count])
        findings.push({
          fate: 'wrong',
          text: `${count}: ${String(client[count])} in the client app, ${String(server[count])} in the server app`,
        });
    }
  }
  const limit = (Math.max(0, attempts - 1) + resyns) * resendLimit(session, articleBytes(client));
  const resent = resentBytes(observation);
  if (resent > limit)
    findings.push({
      fate: 'wrong',
      text: `${resent} bytes were sent again in ${attempts} attempts, ${limit} are the limit`,
    });
  return findings;
};
