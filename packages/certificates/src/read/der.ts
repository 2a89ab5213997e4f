import * as asn1 from 'asn1js';

/** A DER value that is not as a structure needs it. */
export class DerError extends Error {
  override readonly name = 'DerError';
}

/** The one value that fills `bytes`. @throws {DerError} */
export const readDer = (bytes: Uint8Array): asn1.BaseBlock => {
  let offset: number;
  let result: asn1.BaseBlock;
  try {
    // A copy: the library reads the whole buffer below a view.
    ({ offset, result } = asn1.fromBER(new Uint8Array(bytes).buffer));
  } catch (cause) {
    // Values within values without end overflow the stack.
    throw new DerError('it cannot be read as DER', { cause });
  }
  if (offset === -1) throw new DerError(result.error === '' ? 'it is cut off, or no DER' : 'it is no DER, or cut off');
  return result;
};

/** The values of a SEQUENCE, a SET or a tag. @throws {DerError} */
export const itemsOf = (block: asn1.BaseBlock | undefined): readonly asn1.BaseBlock[] => {
  if (block instanceof asn1.Constructed || block instanceof asn1.Sequence || block instanceof asn1.Set) {
    return block.valueBlock.value;
  }
  throw new DerError('a list of values is missing');
};

/** The value under an explicit tag `[number]`; undefined when `block` is not that. */
export const tagged = (block: asn1.BaseBlock | undefined, number: number): asn1.BaseBlock | undefined =>
  block?.idBlock.tagClass === 3 && block.idBlock.tagNumber === number && block instanceof asn1.Constructed
    ? block.valueBlock.value[0]
    : undefined;

export const oidOf = (block: asn1.BaseBlock | undefined): string => {
  if (block instanceof asn1.ObjectIdentifier) return block.valueBlock.toString();
  throw new DerError('an object identifier is missing');
};

export const integerOf = (block: asn1.BaseBlock | undefined): number => {
  if (block instanceof asn1.Integer && block.valueBlock.valueHexView.length <= 5) return block.valueBlock.valueDec;
  throw new DerError('a number is missing, or too large');
};

/** Bytes of an OCTET STRING, also of one in pieces, as BER writes it. */
export const bytesOf = (block: asn1.BaseBlock | undefined): Buffer => {
  if (block instanceof asn1.OctetString) return Buffer.from(block.getValue());
  // [0] IMPLICIT OCTET STRING
  if (block?.idBlock.tagClass === 3) {
    if (block instanceof asn1.Primitive) return Buffer.from(block.valueBlock.valueHexView);
    if (block instanceof asn1.Constructed) return Buffer.concat(block.valueBlock.value.map(bytesOf));
  }
  throw new DerError('bytes are missing');
};

/** The bytes of a value as they stand. */
export const derOf = (block: asn1.BaseBlock | undefined): Buffer => {
  if (block === undefined) throw new DerError('a value is missing');
  return Buffer.from(block.toBER());
};

/** One value of DER where it stands: nothing is copied, and nothing within is read. */
export interface DerSlice {
  readonly tag: number;
  readonly content: Buffer;
  /** With tag and length. */
  readonly whole: Buffer;
}

const cutOff = (): DerError => new DerError('it is cut off, or no DER');

/** The place of one value: its tag, and where its content begins and ends. */
export interface DerPlace {
  readonly tag: number;
  readonly start: number;
  readonly end: number;
}

/** The value that begins at `at`; nothing is copied. @param until end of the bytes that it may take @throws {DerError} */
export const placeAt = (bytes: Buffer, at: number, until = bytes.length): DerPlace => {
  const [tag, first] = [bytes[at], bytes[at + 1]];
  if (at + 2 > until || tag === undefined || first === undefined || (tag & 0x1f) === 0x1f) throw cutOff();
  // X.690 §8.1.3: a length below 128, or the number of its bytes and these.
  const size = first < 0x80 ? 0 : first & 0x7f;
  const start = at + 2 + size;
  if (first === 0x80 || size > 4 || start > until) throw cutOff();
  const end = start + (size === 0 ? first : bytes.readUIntBE(at + 2, size));
  if (end > until) throw cutOff();
  return { tag, start, end };
};

export const sliceAt = (bytes: Buffer, at: number): DerSlice => {
  const { tag, start, end } = placeAt(bytes, at);
  return { tag, content: bytes.subarray(start, end), whole: bytes.subarray(at, end) };
};

/** Values of a structure: more come from nobody who means well. */
const MAX_VALUES = 100;

/** The values that stand one behind the other in `bytes`, few as those of a structure are. @throws {DerError} */
export const slicesIn = (bytes: Buffer): readonly DerSlice[] => {
  const slices: DerSlice[] = [];
  for (let at = 0; at < bytes.length;) {
    if (slices.length === MAX_VALUES)
      throw new DerError(`it has more than ${MAX_VALUES} values where a few are expected`);
    const slice = sliceAt(bytes, at);
    slices.push(slice);
    at += slice.whole.length;
  }
  return slices;
};
