/**
 * SYN and ACK(SYN) as they nearly always are: PI 20 and nothing else. Thousands go with a large file, so they are read and
 * written without the tables, to the same bytes; whatever else one may hold is left to `decoding.ts` and `encoding.ts`.
 */
import { FPDU_HEADER_LENGTH, FPDUS } from './fpdus.js';
import type { FpduName } from './fpdus.js';
import { writeHeader } from './headers.js';
import { PARAMETERS } from './parameters.js';
import type { Parameters } from './parameters.js';

/** PI 20 when the body is that alone, and well formed. */
export const decodeLoneSyncPoint = (name: FpduName, body: Buffer): number | undefined => {
  if (name !== 'SYN' && name !== 'ACK(SYN)') return undefined;
  const { length } = body;
  if (length < 3 || length > 5 || body[0] !== PARAMETERS.syncPoint.code || body[1] !== length - 2) return undefined;
  return body.readUIntBE(2, length - 2);
};

/** As `encodeFpdu`; undefined for all that needs the table. */
export const encodeLoneSyncPoint = (
  name: FpduName,
  destination: number,
  source: number,
  parameters: Parameters,
  lead: number,
): Buffer | undefined => {
  if (name !== 'SYN' && name !== 'ACK(SYN)') return undefined;
  const { syncPoint } = parameters;
  if (syncPoint === undefined || Object.keys(parameters).length > 1) return undefined;
  if (!Number.isSafeInteger(syncPoint) || syncPoint < 0 || syncPoint > 0xff_ffff) return undefined;
  const width = syncPoint > 0xffff ? 3 : syncPoint > 0xff ? 2 : 1;
  const length = FPDU_HEADER_LENGTH + 2 + width;
  const out = Buffer.allocUnsafe(lead + length);
  writeHeader(out, lead, length, FPDUS[name].phase, FPDUS[name].type, destination, source);
  out[lead + FPDU_HEADER_LENGTH] = PARAMETERS.syncPoint.code;
  out[lead + FPDU_HEADER_LENGTH + 1] = width;
  out.writeUIntBE(syncPoint, lead + FPDU_HEADER_LENGTH + 2, width);
  return out;
};
