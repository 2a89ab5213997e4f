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
