/** Damage, from a flipped bit to FPDUs of another session: the parts of what arrived that a peer can get wrong. */
import type { Chance } from '@pesit-node/protocol/testing';

/** Values at which something begins or ends: signs, lengths with two bytes, groups. */
const EDGES = [0, 1, 2, 5, 6, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xfe, 0xff] as const;
/** More than this is not made of a session that was shorter: damage is not to grow by itself. */
const MAX_INPUT = 1 << 17;

const damageByte = (bytes: Buffer, chance: Chance): void => {
  const at = chance.below(bytes.length);
  if (chance.below(2) === 0) bytes[at] = (bytes[at] as number) ^ (1 << chance.below(8));
  else bytes[at] = chance.below(3) === 0 ? chance.below(256) : chance.pick(EDGES);
};

/** One change of a byte string: a byte, a piece taken out, put in, doubled, or everything behind a place. */
export const damaged = (bytes: Buffer, chance: Chance): Buffer => {
  if (bytes.length === 0) return Buffer.from([chance.below(256)]);
  const at = chance.below(bytes.length);
  const length = 1 + chance.below(Math.min(bytes.length - at, chance.pick([1, 4, 64, 5000])));
  switch (chance.below(8)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
    case 2:
      return Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)]);
    case 3:
      return Buffer.concat([
        bytes.subarray(0, at),
        chance.fill(Buffer.alloc(chance.between(1, 20))),
        bytes.subarray(at),
      ]);
    default: {
      const copy = Buffer.from(bytes);
      for (let k = chance.below(3); k >= 0; k--) damageByte(copy, chance);
      return copy;
    }
  }
};

/** The length of an FPDU says how long it is again. */
const withLength = (fpdu: Buffer): Buffer => {
  if (fpdu.length < 2) return fpdu;
  const copy = Buffer.from(fpdu);
  copy.writeUInt16BE(Math.min(fpdu.length, 0xffff));
  return copy;
};

/** One change of a sequence of FPDUs: one damaged, left out, doubled, exchanged with its neighbour, or one of another session. */
export const rearranged = (fpdus: readonly Buffer[], chance: Chance, strangers: readonly Buffer[]): Buffer[] => {
  const changed = [...fpdus];
  const at = chance.below(fpdus.length + 1);
  const one = changed[at] ?? Buffer.alloc(0);
  switch (chance.below(8)) {
    case 0:
      changed.splice(at, 1);
      break;
    case 1:
      changed.splice(at, 0, ...Array.from({ length: chance.pick([1, 1, 1, 3, 40]) }, () => one));
      break;
    case 2:
      changed.splice(at, 2, ...changed.slice(at, at + 2).reverse());
      break;
    case 3:
      changed.splice(at, chance.below(2), chance.pick(strangers));
      break;
    case 4:
      changed.length = Math.min(at, changed.length);
      break;
    default:
      // Mostly a body that is wrong in an FPDU that is right: what a codec alone would not let through.
      if (one.length > 0) changed[at] = chance.below(4) === 0 ? damaged(one, chance) : withLength(damaged(one, chance));
  }
  let total = 0;
  const end = changed.findIndex((fpdu) => (total += fpdu.length + 4) > MAX_INPUT);
  return end < 0 ? changed : changed.slice(0, end);
};

/** Cuts bytes into the pieces in which a socket might bring them. */
export function* cut(bytes: Buffer, chance: Chance): Generator<Buffer> {
  const longest = chance.pick([1 << 20, 1 << 20, 4096, 100, 7]);
  for (let at = 0; at < bytes.length;) {
    const end = Math.min(bytes.length, at + chance.between(1, longest));
    yield Buffer.from(bytes.subarray(at, end));
    at = end;
  }
}
