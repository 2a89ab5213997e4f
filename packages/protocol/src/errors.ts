import type { PeerDiagnostic } from './diagnostics.js';

/**
 * Errors by who is at fault (the taxonomy of every package). A peer's mistake never surfaces as anything else.
 *
 * - `local`: this node or its administrator (file missing, disk full, configuration)
 * - `remote`: the peer broke the protocol; `diagnostic` is what we answer
 * - `refused`: the peer said no; `diagnostic` is what it said
 * - `transport`: the connection went away
 * - `timeout`: the peer was silent too long
 */
export type Fault = 'local' | 'remote' | 'refused' | 'transport' | 'timeout';

export interface PesitErrorDetails {
  readonly fault: Fault;
  /** What to put in PI 2 (local, remote, timeout), or what the peer put there (refused). */
  readonly diagnostic: PeerDiagnostic;
  /** What the specification or the configuration wanted. */
  readonly expected?: string;
  /** What came instead. */
  readonly got?: string;
  /** The same for the peer (PI 29), where `message` names paths or other things of this machine. */
  readonly peerText?: string;
  /** PI 19 of the peer's IDT: 4 a restart follows, 8 suspended, 12 and 16 cancelled by server or requester. */
  readonly endCode?: number | undefined;
  readonly cause?: unknown;
}

/** The one error of the PeSIT packages. `message` is a sentence for an operator: what happened and what to do. */
export class PesitError extends Error {
  override readonly name = 'PesitError';
  readonly fault: Fault;
  readonly diagnostic: PeerDiagnostic;
  readonly expected: string | undefined;
  readonly got: string | undefined;
  readonly peerText: string | undefined;
  /** Of a transfer that the peer interrupted (IDT); undefined for every other error. */
  readonly endCode: number | undefined;

  constructor(message: string, details: PesitErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.fault = details.fault;
    this.diagnostic = details.diagnostic;
    this.expected = details.expected;
    this.got = details.got;
    this.peerText = details.peerText;
    this.endCode = details.endCode;
  }
}
