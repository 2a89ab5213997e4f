import { PesitError } from '@pesit-node/protocol';

/** `stopped`: this process ends; `no volume`: it cannot use its volumes; `lost`: another may run the transfer; `cancelled`: somebody wants it to end for good. */
export type InterruptionKind = 'stopped' | 'no volume' | 'lost' | 'cancelled';

/** 2-216 goes out with end code 16: no restart follows. Anything else with 4: one does (PI 19). */
const INTERRUPTIONS = {
  stopped: {
    diagnostic: '2-223',
    message: 'interrupted because this service was stopped',
    peerText: 'interrupted by the administration, a restart follows',
  },
  'no volume': {
    diagnostic: '2-223',
    message: 'given back because a volume of this pod cannot be used: another pod continues it',
    peerText: 'interrupted, a restart follows',
  },
  lost: {
    diagnostic: '2-223',
    message: 'given up because the lease of this process has run out: another process continues it',
    peerText: 'interrupted, a restart follows',
  },
  cancelled: {
    diagnostic: '2-216',
    condition: 'cancelled',
    message: 'cancelled on request',
    peerText: 'cancelled by the administration',
  },
} as const;

/** Why a running attempt is ended from this side: the reason of its `AbortSignal`. */
export class Interruption extends PesitError {
  readonly kind: InterruptionKind;

  constructor(kind: InterruptionKind) {
    const { message, ...details } = INTERRUPTIONS[kind];
    super(message, { fault: 'local', ...details });
    this.kind = kind;
  }
}
