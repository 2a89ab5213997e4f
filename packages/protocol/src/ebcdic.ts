/** EBCDIC CP037 to ISO 8859-1, for pre-connections (§3.8.2) and PI 16 = EBCDIC. One byte an entry. */
const CP037_TO_LATIN1 = Buffer.from(
  '000102039c09867f978d8e0b0c0d0e0f101112139d8508871819928f1c1d1e1f80818283840a171b88898a8b8c050607909116939495960498999a9b14159e1a20a0e2e4e0e1e3e5e7f1a22e3c282b7c26e9eaebe8edeeefecdf21242a293bac2d2fc2c4c0c1c3c5c7d1a62c255f3e3ff8c9cacbc8cdcecfcc603a2340273d22d8616263646566676869abbbf0fdfeb1b06a6b6c6d6e6f707172aabae6b8c6a4b57e737475767778797aa1bfd0dddeae5ea3a5b7a9a7b6bcbdbe5b5dafa8b4d77b414243444546474849adf4f6f2f3f57d4a4b4c4d4e4f505152b9fbfcf9faff5cf7535455565758595ab2d4d6d2d3d530313233343536373839b3dbdcd9da9f',
  'hex',
);

const LATIN1_TO_CP037 = (() => {
  const table = Buffer.alloc(256);
  CP037_TO_LATIN1.forEach((latin1, ebcdic) => (table[latin1] = ebcdic));
  return table;
})();

const translate = (bytes: Uint8Array, table: Buffer): Buffer => Buffer.from(bytes.map((byte) => table[byte] as number));

export function fromEbcdic(bytes: Uint8Array): string {
  return translate(bytes, CP037_TO_LATIN1).toString('latin1');
}

/** @param text ISO 8859-1; characters outside it become SUB (0x3F). */
export function toEbcdic(text: string): Buffer {
  return translate(Buffer.from(text.replace(/[^\u0000-\u00ff]/g, '\u001a'), 'latin1'), LATIN1_TO_CP037);
}
