/**
 * EBCDIC code pages and ISO 8859-1, byte for byte and back without loss (PI 16, pesit-e.md §6).
 *
 * ISO 8859-1 has no euro sign: that of 1140, 1147 and 1148 is the byte 0xA4, as in ISO 8859-15. So they differ from 037, 297
 * and 500 in the meaning of one byte, not in the table. 0x15 is NEL (0x85) and 0x25 is LF (0x0A), as in the registered tables.
 */
export const CODE_PAGES = ['037', '297', '500', '1047', '1140', '1147', '1148'] as const;

/** International (037, 500, 1047), French (297), and the same with the euro sign (1140, 1147, 1148). */
export type CodePage = (typeof CODE_PAGES)[number];

export const DEFAULT_CODE_PAGE: CodePage = '037';

/** One byte an entry: what the byte at this index becomes. */
export interface CodePageTables {
  readonly toLatin1: Buffer;
  readonly fromLatin1: Buffer;
}

const CP037 =
  '000102039c09867f978d8e0b0c0d0e0f101112139d8508871819928f1c1d1e1f80818283840a171b88898a8b8c050607909116939495960498999a9b14159e1a20a0e2e4e0e1e3e5e7f1a22e3c282b7c26e9eaebe8edeeefecdf21242a293bac2d2fc2c4c0c1c3c5c7d1a62c255f3e3ff8c9cacbc8cdcecfcc603a2340273d22d8616263646566676869abbbf0fdfeb1b06a6b6c6d6e6f707172aabae6b8c6a4b57e737475767778797aa1bfd0dddeae5ea3a5b7a9a7b6bcbdbe5b5dafa8b4d77b414243444546474849adf4f6f2f3f57d4a4b4c4d4e4f505152b9fbfcf9faff5cf7535455565758595ab2d4d6d2d3d530313233343536373839b3dbdcd9da9f';
const CP297 =
  '000102039c09867f978d8e0b0c0d0e0f101112139d8508871819928f1c1d1e1f80818283840a171b88898a8b8c050607909116939495960498999a9b14159e1a20a0e2e440e1e3e55cf1b02e3c282b21267beaeb7dedeeefecdfa7242a293b5e2d2fc2c4c0c1c3c5c7d1f92c255f3e3ff8c9cacbc8cdcecfccb53aa3e0273d22d8616263646566676869abbbf0fdfeb15b6a6b6c6d6e6f707172aabae6b8c6a460a8737475767778797aa1bfd0dddeaea223a5b7a95db6bcbdbeac7caf7eb4d7e9414243444546474849adf4f6f2f3f5e84a4b4c4d4e4f505152b9fbfca6faffe7f7535455565758595ab2d4d6d2d3d530313233343536373839b3dbdcd9da9f';
const CP500 =
  '000102039c09867f978d8e0b0c0d0e0f101112139d8508871819928f1c1d1e1f80818283840a171b88898a8b8c050607909116939495960498999a9b14159e1a20a0e2e4e0e1e3e5e7f15b2e3c282b2126e9eaebe8edeeefecdf5d242a293b5e2d2fc2c4c0c1c3c5c7d1a62c255f3e3ff8c9cacbc8cdcecfcc603a2340273d22d8616263646566676869abbbf0fdfeb1b06a6b6c6d6e6f707172aabae6b8c6a4b57e737475767778797aa1bfd0dddeaea2a3a5b7a9a7b6bcbdbeac7cafa8b4d77b414243444546474849adf4f6f2f3f57d4a4b4c4d4e4f505152b9fbfcf9faff5cf7535455565758595ab2d4d6d2d3d530313233343536373839b3dbdcd9da9f';
const CP1047 =
  '000102039c09867f978d8e0b0c0d0e0f101112139d8508871819928f1c1d1e1f80818283840a171b88898a8b8c050607909116939495960498999a9b14159e1a20a0e2e4e0e1e3e5e7f1a22e3c282b7c26e9eaebe8edeeefecdf21242a293b5e2d2fc2c4c0c1c3c5c7d1a62c255f3e3ff8c9cacbc8cdcecfcc603a2340273d22d8616263646566676869abbbf0fdfeb1b06a6b6c6d6e6f707172aabae6b8c6a4b57e737475767778797aa1bfd05bdeaeaca3a5b7a9a7b6bcbdbedda8af5db4d77b414243444546474849adf4f6f2f3f57d4a4b4c4d4e4f505152b9fbfcf9faff5cf7535455565758595ab2d4d6d2d3d530313233343536373839b3dbdcd9da9f';

const tablesOf = (hex: string): CodePageTables => {
  const toLatin1 = Buffer.from(hex, 'hex');
  const fromLatin1 = Buffer.alloc(256);
  toLatin1.forEach((latin1, ebcdic) => (fromLatin1[latin1] = ebcdic));
  return { toLatin1, fromLatin1 };
};

const [international, french, belgian, openSystems] = [CP037, CP297, CP500, CP1047].map(tablesOf) as [
  CodePageTables,
  CodePageTables,
  CodePageTables,
  CodePageTables,
];

const TABLES: Readonly<Record<CodePage, CodePageTables>> = {
  '037': international,
  '297': french,
  '500': belgian,
  '1047': openSystems,
  '1140': international,
  '1147': french,
  '1148': belgian,
};

export const codePageTables = (page: CodePage): CodePageTables => TABLES[page];

/** Translates `bytes` where they are. */
export const translate = (bytes: Buffer, table: Buffer): void => {
  for (let i = 0; i < bytes.length; i++) bytes[i] = table[bytes[i] as number] as number;
};
