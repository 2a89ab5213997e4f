/** The six bytes before every FPDU (§4.7.1). */

/** Writes the six bytes of an FPDU header (§4.7.1) at `offset`. */
export const writeHeader = (
  out: Buffer,
  offset: number,
  length: number,
  phase: number,
  type: number,
  destination: number,
  source: number,
): void => {
  out[offset] = length >>> 8;
  out[offset + 1] = length & 0xff;
  out[offset + 2] = phase;
  out[offset + 3] = type;
  out[offset + 4] = destination;
  out[offset + 5] = source;
};
