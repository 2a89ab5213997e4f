const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;

/** Limits of traces: bytes of text unless it says otherwise. */
export const TRACE_LIMITS = {
  /** Kept of a session: its first lines, and the newest. */
  head: 256 * KIBIBYTE,
  tail: 768 * KIBIBYTE,
  /** Lines are written in parts of about this size. */
  part: 64 * KIBIBYTE,
  /** Characters. */
  line: 4000,
  /** Transfers of a session that its list names. */
  transfersOfSession: 100,
  /** Sessions kept of one partner or remote server: the newest. */
  sessionsOfOwner: 100,
  bytesOfOwner: 20 * MEBIBYTE,
  /** Kept of all of them together. */
  bytes: 200 * MEBIBYTE,
  /** Sessions that one process records at a time. */
  sessionsAtATime: 200,
  /** Longest time for which a trace can be switched on. */
  minutes: 1440,
} as const;
