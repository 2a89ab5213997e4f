/** Every control FPDU with every parameter that it may carry: decoded, encoded and mirrored against literal bytes. */
import { describe, expect, test } from '@jest/globals';
import { CONTENTS, FPDU_NAMES, FPDUS, decodeBody, encodeFpdu, isDataFpdu } from '../src/index.js';
import type { Parameters } from '../src/index.js';
import { CODES, MINIMAL, NAMES, fpdu, hex, pi, text } from '../src/testing/index.js';
import type { Name } from '../src/testing/index.js';

type Row = readonly [name: Name, destination: number, source: number, parameters: Parameters, body: Buffer];

const row = (name: Name, destination: number, source: number, parameters: Parameters, ...body: Buffer[]): Row => [
  name,
  destination,
  source,
  parameters,
  Buffer.concat(body),
];

const FREE: Parameters = { freeMessage: hex('cafe') };
const free = pi(99, 'cafe');
const NO: Parameters = { diagnostic: '2-226', diagnosticComplement: text('no') };
const no = hex('0203 0200e2 1d02 6e6f');
const YES: Parameters = { diagnostic: '0-000' };
const yes = hex('0203 000000');

/** PI 71 to 83, opaque: one byte each, its own code. */
const SECURITY_KEYS = {
  71: 'authenticationType',
  72: 'authenticationElements',
  73: 'sealingType',
  74: 'sealingElements',
  75: 'encryptionType',
  76: 'encryptionElements',
  77: 'signatureType',
  78: 'dataSeal',
  79: 'signature',
  80: 'accreditation',
  81: 'signatureAcknowledgement',
  82: 'secondSignature',
  83: 'secondAccreditation',
} as const;
type SecurityCode = keyof typeof SECURITY_KEYS;
const security = (...codes: SecurityCode[]): Parameters =>
  Object.fromEntries(codes.map((code) => [SECURITY_KEYS[code], Buffer.from([code])]));
const securityBytes = (...codes: SecurityCode[]): Buffer =>
  Buffer.concat(codes.map((code) => pi(code, Buffer.from([code]))));

const IDENTIFIER: Parameters = { requester: 'APP', server: 'USER', fileType: 0, fileName: 'FILE' };
const identifier = pi(9, '0303 415050', '0404 55534552', '0b01 00', '0c04 46494c45');
const LOGICAL: Parameters = {
  recordFormat: 0x80,
  recordLength: 1024,
  fileOrganisation: 2,
  sealRequired: 1,
  seal: hex('aabb'),
  fileLabel: 'label',
  keyLength: 10,
  keyOffset: 0,
};
const logical = pi(
  30,
  '1f01 80',
  '2002 0400',
  '2101 02',
  '2201 01',
  '2402 aabb',
  '2505 6c6162656c',
  '2601 0a',
  '2701 00',
);
const PHYSICAL: Parameters = { reservationUnit: 1, maxReservation: 70_000 };
const physical = pi(40, '2901 01', '2a03 011170');
const HISTORICAL: Parameters = { creationDate: '261120101112', extractionDate: '261121131415' };
const historical = pi(50, pi(51, text('261120101112')), pi(52, text('261121131415')));
const ROUTE: Parameters = { originalSender: 'FIRST', finalReceiver: 'LAST' };
const route = hex('3d05 4649525354 3e04 4c415354');
const MESSAGE: Parameters = {
  fileIdentifier: IDENTIFIER,
  transferId: 9,
  attributesWanted: 1,
  dataCode: 1,
  historicalAttributes: { creationDate: '261120101112' },
  ...ROUTE,
  message: text('Hi'),
};
const message = Buffer.concat([
  identifier,
  hex('0d01 09 0e01 01 1001 01'),
  pi(50, pi(51, text('261120101112'))),
  route,
  hex('5b02 4869'),
]);

const ROWS: readonly Row[] = [
  row(
    'CONNECT',
    0,
    98,
    {
      crc: 1,
      requester: 'ALICE',
      server: 'BOB',
      accessControl: 'secret',
      version: 2,
      syncPoints: { intervalKb: 100, window: 4 },
      accessType: 2,
      resynchronisation: 1,
      supervisionTimer: 60,
      ...FREE,
    },
    hex('0101 01 0305 414c494345 0403 424f42 0506 736563726574 0601 02 0703 006404 1601 02 1701 01 1a01 3c'),
    free,
  ),
  row(
    'ACONNECT',
    98,
    226,
    { accessControl: 'pw', version: 1, syncPoints: { intervalKb: 65535, window: 255 }, resynchronisation: 0, ...FREE },
    hex('0502 7077 0601 01 0703 ffffff 1701 00'),
    free,
  ),
  row(
    'RCONNECT',
    98,
    0,
    { diagnostic: '3-304', diagnosticComplement: text('x'), ...FREE },
    hex('0203 030130 1d01 78'),
    free,
  ),
  row('RELEASE', 226, 98, { ...NO, ...FREE }, no, free),
  row('RELCONF', 98, 226, FREE, free),
  row('ABORT', 226, 98, { diagnostic: '3-311', diagnosticComplement: text('bye') }, hex('0203 030137 1d03 627965')),
  row(
    'CREATE',
    226,
    0,
    {
      fileIdentifier: IDENTIFIER,
      transferId: 0x24c9,
      restarted: 1,
      dataCode: 2,
      priority: 1,
      maxEntitySize: 4096,
      logicalAttributes: LOGICAL,
      physicalAttributes: PHYSICAL,
      historicalAttributes: HISTORICAL,
      ...ROUTE,
      fileAccessControl: 'pw',
      ...security(71, 72, 73, 74, 75, 76, 77, 78, 79, 80),
      ...FREE,
    },
    identifier,
    hex('0d02 24c9 0f01 01 1001 02 1101 01 1902 1000'),
    logical,
    physical,
    historical,
    route,
    hex('3f02 7077'),
    securityBytes(71, 72, 73, 74, 75, 76, 77, 78, 79, 80),
    free,
  ),
  row(
    'ACK(CREATE)',
    98,
    0,
    {
      diagnostic: '0-000',
      transferId: 1,
      maxEntitySize: 65535,
      diagnosticComplement: text('x'),
      serverDate: '261120101112',
      ...security(72, 80, 83),
      ...FREE,
    },
    hex('0203 000000 0d01 01 1902 ffff 1d01 78'),
    pi(64, text('261120101112')),
    securityBytes(72, 80, 83),
    free,
  ),
  row(
    'SELECT',
    226,
    0,
    {
      fileIdentifier: IDENTIFIER,
      transferId: 0,
      attributesWanted: 0xe0,
      restarted: 0,
      priority: 2,
      maxEntitySize: 800,
      ...ROUTE,
      fileAccessControl: 'pw',
      ...security(71, 72, 73, 74, 75, 76, 77, 78, 79, 80),
      ...FREE,
    },
    identifier,
    hex('0d01 00 0e01 e0 0f01 00 1101 02 1902 0320'),
    route,
    hex('3f02 7077'),
    securityBytes(71, 72, 73, 74, 75, 76, 77, 78, 79, 80),
    free,
  ),
  row(
    'ACK(SELECT)',
    98,
    0,
    {
      diagnostic: '0-000',
      fileIdentifier: IDENTIFIER,
      transferId: 0xffffff,
      dataCode: 0,
      maxEntitySize: 4096,
      diagnosticComplement: text('x'),
      logicalAttributes: LOGICAL,
      physicalAttributes: PHYSICAL,
      historicalAttributes: HISTORICAL,
      ...ROUTE,
      serverDate: '261120101112',
      ...security(72, 80, 83),
      ...FREE,
    },
    hex('0203 000000'),
    identifier,
    hex('0d03 ffffff 1001 00 1902 1000 1d01 78'),
    logical,
    physical,
    historical,
    route,
    pi(64, text('261120101112')),
    securityBytes(72, 80, 83),
    free,
  ),
  row('DESELECT', 226, 0, { ...NO, ...FREE }, no, free),
  row('ACK(DESELECT)', 98, 0, { ...NO, ...FREE }, no, free),
  row(
    'ORF',
    226,
    0,
    { compression: { used: true, mode: 3 }, ...security(72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83) },
    hex('1502 0103'),
    securityBytes(72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83),
  ),
  row(
    'ACK(ORF)',
    98,
    0,
    {
      ...YES,
      compression: { used: false, mode: 0 },
      diagnosticComplement: text('x'),
      ...security(74, 76),
    },
    yes,
    hex('1502 0000 1d01 78'),
    securityBytes(74, 76),
  ),
  row('CRF', 226, 0, NO, no),
  row('ACK(CRF)', 98, 0, NO, no),
  row('READ', 226, 0, { restartPoint: 999_999 }, hex('1203 0f423f')),
  row('ACK(READ)', 98, 0, NO, no),
  row('WRITE', 226, 0, {}),
  row('ACK(WRITE)', 98, 0, { ...YES, restartPoint: 0, diagnosticComplement: text('x') }, yes, hex('1201 00 1d01 78')),
  row(
    'TRANS.END',
    226,
    0,
    { dataBytes: 5_000_000_000, articles: 0xffffffff, ...security(81) },
    hex('1b05 012a05f200 1c04 ffffffff'),
    securityBytes(81),
  ),
  row(
    'ACK(TRANS.END)',
    98,
    0,
    { ...YES, dataBytes: 0, articles: 0, diagnosticComplement: text('x'), ...security(81) },
    yes,
    hex('1b01 00 1c01 00 1d01 78'),
    securityBytes(81),
  ),
  row('SYN', 226, 0, { syncPoint: 256, ...security(78) }, hex('1402 0100'), securityBytes(78)),
  row('ACK(SYN)', 98, 0, { syncPoint: 1 }, hex('1401 01')),
  row(
    'RESYN',
    226,
    0,
    { diagnostic: '1-100', restartPoint: 7, diagnosticComplement: text('x') },
    hex('0203 010064 1201 07 1d01 78'),
  ),
  row('ACK(RESYN)', 98, 0, { restartPoint: 7 }, hex('1201 07')),
  row(
    'IDT',
    226,
    0,
    { diagnostic: '2-213', endCode: 4, diagnosticComplement: text('x') },
    hex('0203 0200d5 1301 04 1d01 78'),
  ),
  row('ACK(IDT)', 98, 0, {}),
  row(
    'DTF.END',
    226,
    0,
    { ...YES, diagnosticComplement: text('x'), ...security(78, 79, 82) },
    yes,
    hex('1d01 78'),
    securityBytes(78, 79, 82),
  ),
  row('MSG', 226, 0, MESSAGE, message),
  row('MSGDM', 226, 0, MESSAGE, message),
  row('MSGMM', 226, 0, { message: text('Hi') }, hex('5b02 4869')),
  row('MSGFM', 226, 0, { message: text('Hi') }, hex('5b02 4869')),
  row(
    'ACK(MSG)',
    98,
    0,
    { ...YES, transferId: 9, dataCode: 0, diagnosticComplement: text('x'), message: text('Hi') },
    yes,
    hex('0d01 09 1001 00 1d01 78 5b02 4869'),
  ),
];

test('the table has every control FPDU', () => {
  expect(ROWS.map(([name]) => name).sort()).toEqual(FPDU_NAMES.filter((name) => !isDataFpdu(name)).sort());
});

test('the codes of the FPDU table are those of the specification', () => {
  expect([...FPDU_NAMES].sort()).toEqual([...NAMES].sort());
  for (const name of FPDU_NAMES) {
    const { phase, type } = FPDUS[name];
    expect([name, Buffer.from([phase, type]).toString('hex')]).toEqual([name, CODES[name]]);
  }
});

describe.each(ROWS)('%s', (name, destination, source, parameters, body) => {
  const bytes = fpdu(name, destination, source, body);

  test('decodes', () => {
    expect(decodeBody(name, destination, source, body)).toEqual({ name, destination, source, parameters, notices: [] });
  });

  test('encodes', () => {
    expect(encodeFpdu(name, destination, source, parameters).toString('hex')).toBe(bytes.toString('hex'));
  });

  test('mirrors', () => {
    const decoded = decodeBody(name, destination, source, body).parameters;
    expect(encodeFpdu(name, destination, source, decoded).toString('hex')).toBe(bytes.toString('hex'));
  });

  test('the row names every parameter that the FPDU may carry', () => {
    expect(Object.keys(parameters).sort()).toEqual(CONTENTS[name].map((item) => item.key).sort());
  });

  test('with its mandatory parameters alone it is complete', () => {
    const least = hex(MINIMAL[name as keyof typeof MINIMAL]);
    expect(decodeBody(name, 1, 2, least).notices).toEqual([]);
  });

  test('leaves room in front for the length of an entity', () => {
    expect(encodeFpdu(name, destination, source, parameters, 2).subarray(2)).toEqual(bytes);
  });
});
