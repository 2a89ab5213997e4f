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

/**
 * The condition, where code has to tell one failure from others. `diagnostic` is only what the partner gets: several of these
 * share one, and it may be chosen by the moment.
 *
 * - `cancelled`: somebody ended the transfer on purpose
 * - `certificate refused`: one side does not accept the certificate of the other (TLS); waiting does not mend it
 * - `claim lost`: another process has claimed the transfer, and has not said yet what became of it
 * - `damaged FPDU`: its CRC is wrong; those after it can be read (PI 1)
 * - `database away`: nothing can be looked up or recorded for now
 * - `disk full`: no space, or the quota of the operating system is used up
 * - `name taken`: another file has the final name
 * - `no place`: the remote server has as many sessions as it may: it was not asked
 * - `not shared`: the directory is not the one that the pods of the cluster share
 * - `point unknown`: the sync point was never placed by this side
 * - `setting unusable`: an administrator has to set something again
 * - `source changed`: the file to send is not the one that the transfer began with
 * - `staged file in use`: another attempt, here or in another process, is at work with it
 * - `TLS not agreed`: the sides have no version or cipher suite in common, or one does not speak TLS
 * - `unexpected`: a fault of this program
 */
export type ErrorCondition =
  | 'cancelled'
  | 'certificate refused'
  | 'claim lost'
  | 'damaged FPDU'
  | 'database away'
  | 'disk full'
  | 'name taken'
  | 'no place'
  | 'not shared'
  | 'point unknown'
  | 'setting unusable'
  | 'source changed'
  | 'staged file in use'
  | 'TLS not agreed'
  | 'unexpected';

export interface PesitErrorDetails {
  readonly fault: Fault;
  /** The value to put in PI 2 (local, remote, timeout), or the one that the peer put there (refused). */
  readonly diagnostic: PeerDiagnostic;
  /** The value that the specification or the configuration wanted. */
  readonly expected?: string;
  /** The value that came instead. */
  readonly got?: string;
  /** The same for the peer (PI 29), where `message` names paths or other things of this machine. */
  readonly peerText?: string;
  /** PI 19 of the peer's IDT: 4 a restart follows, 8 suspended, 12 and 16 cancelled by server or requester. */
  readonly endCode?: number | undefined;
  readonly condition?: ErrorCondition | undefined;
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
  /** PI 19 of an IDT with which the peer interrupted the transfer; undefined for every other error. */
  readonly endCode: number | undefined;
  readonly condition: ErrorCondition | undefined;

  constructor(message: string, details: PesitErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.fault = details.fault;
    this.diagnostic = details.diagnostic;
    this.expected = details.expected;
    this.got = details.got;
    this.peerText = details.peerText;
    this.endCode = details.endCode;
    this.condition = details.condition;
  }
}
