import type { Direction, Status } from '../api/transfers.ts';
import { texts } from '../texts/index.ts';

export type Mood = 'good' | 'bad' | 'warn' | 'run' | '';

export const MOODS: Readonly<Record<Status, Mood>> = {
  PENDING: 'warn',
  IN_PROGRESS: 'run',
  COMPLETED: 'good',
  FAILED: 'bad',
  CANCELLED: '',
};

/** A state in a word and a colour; the word alone says it, too. */
export const Pill = ({ mood, children }: { readonly mood: Mood; readonly children: string }) => (
  <span class={`pill ${mood}`}>{children}</span>
);

export const StatusPill = ({ status }: { readonly status: Status }) => (
  <Pill mood={MOODS[status]}>{texts.value.status[status]}</Pill>
);

export const DirectionWord = ({ direction }: { readonly direction: Direction }) => (
  <span class="together">
    <span aria-hidden="true">{direction === 'SEND' ? '↑' : '↓'}</span> {texts.value.direction[direction]}
  </span>
);
