/**
 * Sessions of other products, recorded on the wire: one record an entity, `direction(1) · length(2) · entity`, direction
 * 0 from the requester and 1 from the server.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';

export type Side = 'requester' | 'server';

export interface RecordedEntity {
  readonly from: Side;
  /** Without the two-byte length of the wire. */
  readonly bytes: Buffer;
}

const directory = path.join(import.meta.dirname, '..', 'recordings');

export const RECORDINGS = [
  'cx-pull-1mb',
  'cx-push-1mb',
  'pw-message-fpdu',
  'pw-message-pi99',
  'pw-pull-0',
  'pw-pull-64k-multi',
  'pw-push-0',
  'pw-push-1byte',
  'pw-push-64k-nosync',
  'pw-push-beyond-entity',
  'pw-push-unknown-file',
  'pw-push-wrong-password',
] as const;

export type RecordingName = (typeof RECORDINGS)[number];

export function recording(name: RecordingName): RecordedEntity[] {
  const file = readFileSync(path.join(directory, `${name}.raw`));
  const entities: RecordedEntity[] = [];
  let offset = 0;
  while (offset < file.length) {
    const length = file.readUInt16BE(offset + 1);
    entities.push({
      from: file[offset] === 0 ? 'requester' : 'server',
      bytes: file.subarray(offset + 3, offset + 3 + length),
    });
    offset += 3 + length;
  }
  return entities;
}
