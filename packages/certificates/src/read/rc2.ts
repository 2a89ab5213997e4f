/**
 * RC2 in CBC mode (RFC 2268), to read alone: Java 8 and OpenSSL before 3.0 hide the certificates of a PKCS#12 behind it, with a key of
 * 40 bits, and Node.js has it no more. It protects nothing; private keys are never under it in those files.
 */

/** RFC 2268 §2: PITABLE. */
const PITABLE = Buffer.from(
  'd978f9c419ddb5ed28e9fd794aa0d89dc67e37832b76538e624c6488448bfba2179a59f587b34f1361456d8d09817d32bd8f40eb86b77b0bf09521225c6b4e82' +
    '54d66593ce60b21c7356c014a78cf1dc1275ca1f3bbee4d1423dd430a33cb6266fbf0eda4669075727f21d9bbc944303f811c7f690ef3ee706c3d52fc8661ed7' +
    '08e8eade8052eef784aa72ac354d6a2a961ad2715a1549744b9fd05e0418a4ecc2e0416e0f51cbcc2491af50a1f47039997c3a8523b8b47afc02365b25559731' +
    '2d5dfa98e38a92ae05df2910676cbac9d300e6cfe19ea82c6316013f58e289a90d38341bab33ffb0bb480c5fb9b1cd2ec5f3db47e5a59c770aa62068fe7fc1ad',
  'hex',
);

const BLOCK = 8;

/** RFC 2268 §2: 64 words of 16 bits. @param bits effective length of the key */
const expand = (key: Buffer, bits: number): Uint16Array => {
  const bytes = Buffer.alloc(128);
  key.copy(bytes);
  const at = (index: number): number => PITABLE[index & 0xff] as number;
  for (let i = key.length; i < 128; i++) bytes[i] = at((bytes[i - 1] as number) + (bytes[i - key.length] as number));
  const effective = Math.ceil(bits / 8);
  bytes[128 - effective] = at((bytes[128 - effective] as number) & (0xff >> (8 * effective - bits)));
  for (let i = 127 - effective; i >= 0; i--) bytes[i] = at((bytes[i + 1] as number) ^ (bytes[i + effective] as number));
  return Uint16Array.from({ length: 64 }, (_, i) => bytes.readUInt16LE(2 * i));
};

const SHIFTS = [1, 2, 3, 5] as const;

/** RFC 2268 §4. */
const decryptBlock = (words: Uint16Array, r: Uint16Array): void => {
  const word = (index: number): number => words[index] as number;
  const reg = (index: number): number => r[index & 3] as number;
  let next = 63;
  const mix = (): void => {
    for (let i = 3; i >= 0; i--) {
      const shift = SHIFTS[i] as number;
      const value = ((reg(i) >>> shift) | (reg(i) << (16 - shift))) & 0xffff;
      r[i] = value - word(next--) - (reg(i + 3) & reg(i + 2)) - (~reg(i + 3) & reg(i + 1));
    }
  };
  const mash = (): void => {
    for (let i = 3; i >= 0; i--) r[i] = reg(i) - word(reg(i + 3) & 63);
  };
  for (const rounds of [5, 6, 5]) {
    for (let round = 0; round < rounds; round++) mix();
    if (next > 0) mash();
  }
};

/**
 * @param bits effective length of the key
 * @returns undefined when the length or the padding is wrong: another key
 */
export const decryptRc2 = (key: Buffer, bits: number, iv: Buffer, data: Buffer): Buffer | undefined => {
  if (data.length === 0 || data.length % BLOCK !== 0) return undefined;
  const words = expand(key, bits);
  const plain = Buffer.alloc(data.length);
  const r = new Uint16Array(4);
  let before = iv;
  for (let at = 0; at < data.length; at += BLOCK) {
    for (let i = 0; i < 4; i++) r[i] = data.readUInt16LE(at + 2 * i);
    decryptBlock(words, r);
    for (let i = 0; i < 4; i++) plain.writeUInt16LE((r[i] as number) ^ before.readUInt16LE(2 * i), at + 2 * i);
    before = data.subarray(at, at + BLOCK);
  }
  const padding = plain[plain.length - 1] as number;
  if (padding < 1 || padding > BLOCK) return undefined;
  const end = plain.length - padding;
  return plain.subarray(end).every((byte) => byte === padding) ? plain.subarray(0, end) : undefined;
};
