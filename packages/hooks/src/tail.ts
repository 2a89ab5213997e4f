/** Bytes of output that are kept. */
export const KEPT_BYTES = 4096;

/** The last bytes of an output as a text that PostgreSQL takes: no NUL and no other control character but tab and line ends. */
export const tailOf = (bytes: Buffer): string =>
  bytes
    .subarray(-KEPT_BYTES)
    .toString()
    .replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g, '\ufffd');
