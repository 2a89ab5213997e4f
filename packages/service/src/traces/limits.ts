const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;

/** What traces may cost: bytes of text unless it says otherwise. */
export const TRACE_LIMITS = {
  /** Of a session the first lines are kept, and the newest. */
  head: 256 * KIBIBYTE,
  tail: 768 * KIBIBYTE,
  /** Lines are written in parts of about this size. */
  part: 64 * KIBIBYTE,
  /** Characters. */
  line: 4000,
  /** Transfers of a session that its list names. */
  transfersOfSession: 100,
  /** Of one partner or remote server: the newest sessions are kept. */
  sessionsOfOwner: 100,
  bytesOfOwner: 20 * MEBIBYTE,
  /** Of all of them together. */
  bytes: 200 * MEBIBYTE,
  /** Sessions that one process records at a time. */
  sessionsAtATime: 200,
  /** Longest time for which a trace can be switched on. */
  minutes: 1440,
} as const;
