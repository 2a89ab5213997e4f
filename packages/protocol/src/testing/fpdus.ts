/**
 * FPDUs and entities written by hand: codes from pesit-e.md §2, lengths by arithmetic of its own.
 * It never imports the codec, so a test that compares the two compares two readings of the specification.
 */

/** Phase and type of every FPDU, as in the tables of pesit-e.md §2. */
export const CODES = {
  CONNECT: '4020',
  ACONNECT: '4021',
  RCONNECT: '4022',
  RELEASE: '4023',
  RELCONF: '4024',
  ABORT: '4025',
  CREATE: 'c011',
  SELECT: 'c012',
  DESELECT: 'c013',
  ORF: 'c014',
  CRF: 'c015',
  READ: 'c001',
  WRITE: 'c002',
  'TRANS.END': 'c008',
  SYN: 'c003',
  RESYN: 'c005',
  IDT: 'c006',
  'DTF.END': 'c004',
  MSG: 'c016',
  MSGDM: 'c017',
  MSGMM: 'c018',
  MSGFM: 'c019',
  'ACK(CREATE)': 'c030',
  'ACK(SELECT)': 'c031',
  'ACK(DESELECT)': 'c032',
  'ACK(ORF)': 'c033',
  'ACK(CRF)': 'c034',
  'ACK(READ)': 'c035',
  'ACK(WRITE)': 'c036',
  'ACK(TRANS.END)': 'c037',
  'ACK(SYN)': 'c038',
  'ACK(RESYN)': 'c039',
  'ACK(IDT)': 'c03a',
  'ACK(MSG)': 'c03b',
  DTF: '0000',
  DTFDA: '0041',
  DTFMA: '0040',
  DTFFA: '0042',
} as const;

export type Name = keyof typeof CODES;

export const NAMES = Object.keys(CODES) as readonly Name[];

type Bytes = string | Buffer;

/** Hexadecimal digits; blanks are for the reader. */
export const hex = (digits: string): Buffer => {
  const clean = digits.replace(/\s/g, '');
  if (!/^([0-9a-f]{2})*$/i.test(clean)) throw new Error(`not hexadecimal: ${digits}`);
  return Buffer.from(clean, 'hex');
};

const bytesOf = (value: Bytes): Buffer => (typeof value === 'string' ? hex(value) : value);

const be16 = (value: number): Buffer => Buffer.from([(value >> 8) & 0xff, value & 0xff]);

export const text = (value: string): Buffer => Buffer.from(value, 'latin1');

/** `value` in exactly `width` bytes. */
export const num = (value: number, width: number): Buffer => hex(value.toString(16).padStart(width * 2, '0'));

/** One parameter or group: code, LI, value. */
export const pi = (code: number, ...values: Bytes[]): Buffer => {
  const value = Buffer.concat(values.map(bytesOf));
  const li = value.length <= 254 ? Buffer.from([value.length]) : Buffer.concat([hex('ff'), be16(value.length)]);
  return Buffer.concat([Buffer.from([code]), li, value]);
};

export const fpdu = (name: Name, destination: number, source: number, ...body: Bytes[]): Buffer => {
  const content = Buffer.concat(body.map(bytesOf));
  return Buffer.concat([be16(content.length + 6), hex(CODES[name]), Buffer.from([destination, source]), content]);
};

/** An entity of the length-prefixed dialect. */
export const entity = (...fpdus: readonly Buffer[]): Buffer => {
  const content = Buffer.concat(fpdus);
  return Buffer.concat([be16(content.length), content]);
};

/** The FPDU and its CRC, byte by byte as pesit-e.md §6 says. */
export const withCrc = (bytes: Buffer): Buffer => {
  let c0 = 0;
  let c1 = 0;
  for (const byte of [...bytes, 0, 0]) {
    c0 = (c0 + byte) % 255;
    c1 = (c1 + c0) % 255;
  }
  const mod = (value: number): number => ((value % 255) + 255) % 255;
  return Buffer.concat([bytes, Buffer.from([mod(c0 - c1), mod(c1 - 2 * c0)])]);
};

/** Articles of a multi-article DTF: a two-byte length before each. */
export const prefixed = (...articles: readonly Buffer[]): Buffer =>
  Buffer.concat(articles.flatMap((article) => [be16(article.length), article]));

/** A body with the mandatory parameters alone, for every control FPDU: positive answers, 4,096-byte entities, point 1. */
export const MINIMAL: Readonly<Record<Exclude<Name, 'DTF' | 'DTFDA' | 'DTFMA' | 'DTFFA'>, string>> = {
  CONNECT: '030141 040142 060102 160102',
  ACONNECT: '060102 0703 000000',
  RCONNECT: '0203 03012d',
  RELEASE: '0203 000000',
  RELCONF: '',
  ABORT: '0203 030137',
  CREATE: '0906 0b0100 0c0146 0d0101 110100 19021000 1e07 1f0180 20020400 2803 2a0101',
  'ACK(CREATE)': '0203 000000 19021000',
  SELECT: '0906 0b0100 0c0146 0d0100 110100 19021000',
  'ACK(SELECT)': '0203 000000 0906 0b0100 0c0146 0d0101 19021000 1e07 1f0180 20020400 2803 2a0101',
  DESELECT: '0203 000000',
  'ACK(DESELECT)': '0203 000000',
  ORF: '',
  'ACK(ORF)': '0203 000000',
  CRF: '0203 000000',
  'ACK(CRF)': '0203 000000',
  READ: '120100',
  'ACK(READ)': '0203 000000',
  WRITE: '',
  'ACK(WRITE)': '0203 000000 120100',
  'TRANS.END': '',
  'ACK(TRANS.END)': '0203 000000',
  SYN: '140101',
  'ACK(SYN)': '140101',
  RESYN: '0203 010064 120100',
  'ACK(RESYN)': '120100',
  IDT: '0203 0200d5 130104',
  'ACK(IDT)': '',
  'DTF.END': '0203 000000',
  MSG: '0906 0b0100 0c0146 0d0101 5b024869',
  MSGDM: '0906 0b0100 0c0146 0d0101 5b024869',
  MSGMM: '5b024869',
  MSGFM: '5b024869',
  'ACK(MSG)': '0203 000000',
};

/** An FPDU with its mandatory parameters alone; data FPDUs carry the article `data`. */
export const minimal = (name: Name, destination: number, source: number): Buffer => {
  const body = (MINIMAL as Partial<Record<Name, string>>)[name];
  return fpdu(name, destination, source, body ?? text('data'));
};
