import type { Listener } from '../api/configuration.ts';
import { texts } from '../texts/index.ts';
import { Pill } from './pills.tsx';
import type { Mood } from './pills.tsx';

type Status = Listener['status'];

const MOODS: Readonly<Record<Status, Mood>> = {
  STOPPED: '',
  STARTING: 'run',
  RUNNING: 'good',
  STOPPING: 'warn',
  FAILED: 'bad',
};

export const ListenerPill = ({ status }: { readonly status: Status }) => (
  <Pill mood={MOODS[status]}>{texts.value.listenerStatus[status]}</Pill>
);

/** `6502, TLS 5001`. */
export const portsOf = ({ port, sslEnabled, tlsPort }: Pick<Listener, 'port' | 'sslEnabled' | 'tlsPort'>): string =>
  [...(port === null ? [] : [String(port)]), ...(sslEnabled ? [`TLS ${tlsPort ?? 5001}`] : [])].join(', ');
