/** Messages both ways: bytes on the wire by the independent builder, segmentation, replies, bounds. */
import { describe, expect, test } from '@jest/globals';
import { MAX_MESSAGE_LENGTH, PesitError } from '../src/index.js';
import type { MessageRequest, Parameters } from '../src/index.js';
import { Chance, fpdu, hex, num, pi, text, valueOf } from '../src/testing/index.js';
import { Pair, errorOf, refusal } from './support/pair.js';
import { connected } from './support/states.js';

const X = 5;
const Y = 9;
const REQUEST: MessageRequest = { fileIdentifier: { fileType: 0xffff, fileName: 'F' }, transferId: 7 };
const IDENTIFIER = pi(9, '0b02ffff 0c0146');
const bytes = (length: number): Buffer => new Chance(length).bytes(length);

/** The one message that the server's application was shown. */
function shown(pair: Pair): Parameters {
  const messages = pair.serverEvents.flatMap((event) =>
    event.kind === 'FPDU' && event.name.startsWith('MSG') ? [event] : [],
  );
  expect(messages.map(({ name }) => name)).toEqual(['MSG']);
  return messages[0]!.parameters;
}

/** Sends `request`, and leaves the server's answer to the test. */
function sent(request: Partial<MessageRequest>, pair = connected()): Pair {
  pair.requester.sendMessage({ ...REQUEST, ...request });
  pair.settle();
  return pair;
}

describe('on the wire', () => {
  test('all parameters, in order', () => {
    const pair = sent({
      fileIdentifier: { requester: 'APP', server: 'USER', fileType: 0, fileName: 'F' },
      replyExpected: true,
      dataCode: 0,
      creationDate: '260102030405',
      originalSender: 'A',
      finalReceiver: 'C',
      message: text('Hi'),
    });
    const body = Buffer.concat([
      pi(9, pi(3, text('APP')), pi(4, text('USER')), '0b0100 0c0146'),
      hex('0d0107 0e0101 100100'),
      pi(50, pi(51, text('260102030405'))),
      hex('3d0141 3e0143 5b024869'),
    ]);
    expect(pair.fpdus('requester').at(-1)).toEqual({ name: 'MSG', destination: Y, source: 0, body });
    expect(shown(pair)).toEqual({
      fileIdentifier: { requester: 'APP', server: 'USER', fileType: 0, fileName: 'F' },
      transferId: 7,
      attributesWanted: 1,
      dataCode: 0,
      historicalAttributes: { creationDate: '260102030405' },
      originalSender: 'A',
      finalReceiver: 'C',
      message: text('Hi'),
    });
  });

  // MSG of 4,096 bytes: 6 header, 9 PGI 9, 3 PI 13, 4 code and LI of PI 91.
  const whole = 4096 - 6 - 9 - 3 - 4;
  test.each([
    [0, ['MSG']],
    [254, ['MSG']],
    [255, ['MSG']],
    [whole, ['MSG']],
    [whole + 1, ['MSGDM', 'MSGFM']],
    [whole + 4086, ['MSGDM', 'MSGFM']],
    [whole + 4087, ['MSGDM', 'MSGMM', 'MSGFM']],
    [65_536, ['MSGDM', ...Array<string>(15).fill('MSGMM'), 'MSGFM']],
  ])('%i bytes arrive whole', (length, names) => {
    const message = bytes(length);
    const pair = sent({ message });
    const fpdus = pair.fpdus('requester').slice(1);
    expect(fpdus.map((one) => one.name)).toEqual(names);
    for (const { body } of fpdus) expect(body.length + 6).toBeLessThanOrEqual(4096);
    expect(Buffer.concat(fpdus.map(({ body }) => valueOf(body, 91) ?? hex(''))).equals(message)).toBe(true);
    const got = shown(pair);
    expect(got).toMatchObject({ fileIdentifier: { fileType: 0xffff, fileName: 'F' }, transferId: 7 });
    expect(got.message?.equals(message) ?? length === 0).toBe(true);
  });

  test.each([
    [64, false],
    [300, false],
    [65_535, false],
    [4096, true],
    [100, true],
  ])('entities of %i bytes, CRC %s', (maxEntitySize, crc) => {
    const pair = new Pair({ crc, longest: 700 });
    pair.connect();
    const message = bytes(10_000);
    sent({ message, maxEntitySize }, pair);
    for (const { body } of pair.fpdus('requester', crc).slice(1))
      expect(body.length + 6 + (crc ? 2 : 0)).toBeLessThanOrEqual(maxEntitySize);
    expect(shown(pair).message!.equals(message)).toBe(true);
  });
});

describe('the answer', () => {
  const answered = (pair: Pair): Parameters[] =>
    pair.requesterEvents.flatMap((event) =>
      event.kind === 'FPDU' && event.name === 'ACK(MSG)' ? [event.parameters] : [],
    );

  test('a reply when PI 14 asked for it', () => {
    const pair = sent({ replyExpected: true, message: bytes(9000) });
    expect(pair.server.awaits('MSG')).toBe(true);
    pair.server.acceptMessage({ reply: text('yes'), dataCode: 0 });
    pair.settle();
    const body = hex('0203000000 100100 5b03796573');
    expect(pair.fpdus('server').at(-1)).toEqual({ name: 'ACK(MSG)', destination: X, source: 0, body });
    expect(answered(pair)).toEqual([{ diagnostic: '0-000', dataCode: 0, message: text('yes') }]);
    expect([pair.requester.state, pair.server.state]).toEqual(['CN03', 'CN03']);
  });

  test('none when it did not, and the session goes on', () => {
    const pair = sent({});
    expect(() => pair.server.acceptMessage({ reply: text('yes') })).toThrow('no reply');
    pair.server.acceptMessage();
    pair.settle();
    expect(pair.fpdus('server').at(-1)!.body.toString('hex')).toBe('0203000000');
    expect(pair.server.awaits('MSG')).toBe(false);
    sent({ message: text('2') }, pair);
    pair.server.refuseMessage(refusal('2-209', 'no', 'not this one'));
    pair.settle();
    expect(answered(pair)[1]).toMatchObject({ diagnostic: '2-209', diagnosticComplement: text('not this one') });
    expect(pair.writeFile([text('article')]).articles).toBe(1);
  });

  test('a reply beyond PI 91 is an error of the program, and the message still waits', () => {
    const pair = sent({ replyExpected: true });
    expect(() => pair.server.acceptMessage({ reply: bytes(4097) })).toThrow(PesitError);
    pair.server.acceptMessage({ reply: bytes(4096) });
    pair.settle();
    expect(answered(pair)[0]!.message!.equals(bytes(4096))).toBe(true);
  });
});

test('a message that is too long is not sent', () => {
  const pair = connected();
  expect(() => pair.requester.sendMessage({ ...REQUEST, message: bytes(MAX_MESSAGE_LENGTH + 1) })).toThrow(
    'at most 65536',
  );
  expect(() =>
    pair.requester.sendMessage({ ...REQUEST, originalSender: 'x'.repeat(25), message: bytes(9000) }),
  ).toThrow(PesitError);
  expect([pair.requester.state, pair.requester.takeOutput()]).toEqual(['CN03', []]);
});

describe('what partners send', () => {
  test.each([
    ['without PI 3, PI 4 and PI 11', pi(9, '0c0146'), { fileName: 'F' }],
    ['with PI 11 of a file', pi(9, '0b0105 0c0146'), { fileType: 5, fileName: 'F' }],
    ['with PI 3 outside its group', Buffer.concat([pi(3, text('A')), IDENTIFIER]), { requester: 'A', fileName: 'F' }],
  ])('MSG %s is taken', (_, head, fileIdentifier) => {
    const pair = connected();
    pair.alone('server', fpdu('MSG', Y, 0, head, '0d0100', '5b0141'));
    expect(shown(pair)).toMatchObject({ fileIdentifier, message: text('A') });
  });

  test('one MSG whose PI 91 is longer than the specification has it', () => {
    const pair = connected();
    pair.alone('server', fpdu('MSG', Y, 0, IDENTIFIER, '0d0100', pi(91, bytes(60_000))));
    expect(shown(pair).message!.equals(bytes(60_000))).toBe(true);
  });

  test('segments without text, or with the text in the last alone', () => {
    const pair = connected();
    const fpdus = [fpdu('MSGDM', Y, 0, IDENTIFIER, '0d0100'), fpdu('MSGMM', Y, 0), fpdu('MSGFM', Y, 0, '5b0141')];
    pair.alone('server', ...fpdus);
    expect(shown(pair)).toMatchObject({ transferId: 0, message: text('A') });
  });

  const piece = pi(91, bytes(4096));
  const segments = (middles: number): Buffer[] => [
    fpdu('MSGDM', Y, 0, IDENTIFIER, '0d0100', piece),
    ...Array.from({ length: middles }, () => fpdu('MSGMM', Y, 0, piece)),
  ];

  test('64 KB and not a byte more: refused with 2-209, and the session goes on', () => {
    const whole = connected();
    whole.alone('server', ...segments(14), fpdu('MSGFM', Y, 0, piece));
    expect(shown(whole).message).toHaveLength(MAX_MESSAGE_LENGTH);
    const pair = connected();
    const answers = pair.alone('server', ...segments(15), fpdu('MSGFM', Y, 0, '5b0141'));
    expect(answers.map(({ name, body }) => [name, valueOf(body, 2)!.toString('hex')])).toEqual([
      ['ACK(MSG)', '0200d1'],
    ]);
    expect(pair.serverEvents.filter(({ kind }) => kind === 'REFUSED')).toMatchObject([
      {
        ...{ name: 'MSG', parameters: { transferId: 0, fileIdentifier: { fileName: 'F' } } },
        error: { diagnostic: '2-209', message: expect.stringContaining('longer than the 65536 bytes') },
      },
    ]);
    expect(pair.server.state).toBe('CN03');
    pair.alone('server', fpdu('MSG', Y, 0, IDENTIFIER, '0d0100'));
    expect(shown(pair).transferId).toBe(0);
  });

  test('a message that never ends is aborted with 3-318', () => {
    const pair = connected();
    const answers = pair.alone('server', ...segments(256));
    expect(answers.map(({ name, body }) => [name, valueOf(body, 2)!.toString('hex')])).toEqual([
      ['ABORT', `03${num(318, 2).toString('hex')}`],
    ]);
    expect(errorOf(pair.serverEvents, 'ENDED')!.message).toContain('no MSGFM');
  });
});
