/**
 * The CRC of PI 1 (§4.7.1): the ISO 8073 checksum (Fletcher, modulo 255), two bytes after each FPDU.
 * Over the FPDU and its CRC both sums are 0.
 */

/** Bytes of the CRC behind an FPDU; its length field does not count them. */
export const CRC_LENGTH = 2;

/** Bytes between two reductions: 255·n²/2 + 510·n stays below 2^31, so the sums stay small integers. */
const REDUCE_EVERY = 4000;

/** @returns the two CRC bytes of `parts` taken as one FPDU, as a 16-bit number. */
export const checksum = (parts: readonly Buffer[]): number => {
  let c0 = 0;
  let c1 = 0;
  for (const part of parts) {
    for (let start = 0; start < part.length; start += REDUCE_EVERY) {
      const end = Math.min(start + REDUCE_EVERY, part.length);
      let i = start;
      // Four bytes at a time, in small integers: no sum waits for the one before it, and half the time of a byte at a time.
      for (; i + 4 <= end; i += 4) {
        const a = part[i] as number;
        const b = part[i + 1] as number;
        const c = part[i + 2] as number;
        const d = part[i + 3] as number;
        c1 = (c1 + 4 * (c0 + a) + 3 * b + 2 * c + d) | 0;
        c0 = (c0 + a + b + c + d) | 0;
      }
      for (; i < end; i++) {
        c0 = (c0 + (part[i] as number)) | 0;
        c1 = (c1 + c0) | 0;
      }
      c0 %= 255;
      c1 %= 255;
    }
  }
  // The two bytes of the CRC itself count as zeros: c1 is extended by c0 twice.
  c1 = (c1 + 2 * c0) % 255;
  const first = (c0 - c1 + 255) % 255;
  const second = (((c1 - 2 * c0) % 255) + 255) % 255;
  return (first << 8) | second;
};
