import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, describe, expect, test } from '@jest/globals';
import { EBCDIC_LINE, EBCDIC_PAGES } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { GOOD } from './support/raw-server.js';
import type { Script } from './support/raw-server.js';
import { expectNoSecrets } from './support/service.js';
import { useWorld } from './support/world.js';

afterAll(expectNoSecrets);

type Fields = Readonly<Record<string, unknown>>;

const pages = Object.entries(EBCDIC_PAGES);
const toHex = (text: string): string => Buffer.from(text, 'latin1').toString('hex');

/** The formats of the field by `recordFormat` and `text` (pesit-e.md §6), through the client app in both directions. */
withDatabase((harness) => {
  const world = useWorld(harness);

  describe('sending', () => {
    const send = async (content: string, fields: Fields) => {
      const partner = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port);
      await writeFile(join(service.data, 'send/f'), content, 'latin1');
      const request = { server: 'bank', virtualFile: 'V', filename: 'f', ...fields };
      const { body } = await service.api.post('/transfers/send?wait=90', request);
      return { record: body as Fields, partner };
    };

    test.each<[string, Fields, string, readonly [dataCode: number, recordFormat: number], readonly string[]]>([
      ['BU', {}, 'abcdefghij', [2, 128], ['abcd', 'efgh', 'ij']],
      ['BV', { recordFormat: 128 }, 'abcdefghij', [2, 128], ['abcd', 'efgh', 'ij']],
      ['BF', { recordFormat: 0 }, 'abcdefgh', [2, 0], ['abcd', 'efgh']],
      ['TV', { text: true }, 'one\r\n\nto\n\fp\nlast', [0, 128], ['one', ' ', 'to', '\fp', 'last']],
      ['TF', { text: true, recordFormat: 0 }, 'ab\r\n\nlast', [0, 0], ['ab  ', '    ', 'last']],
      ['an empty one', { text: true }, '', [0, 128], []],
    ])('%s', async (_, fields, content, [dataCode, recordFormat], articles) => {
      const { record, partner } = await send(content, { recordLength: 4, ...fields });
      expect(record).toMatchObject({
        status: 'COMPLETED',
        size: content.length,
        articles: articles.length,
        bytesTransferred: articles.join('').length,
      });
      expect(partner.creates[0]).toMatchObject({ dataCode, logicalAttributes: { recordFormat, recordLength: 4 } });
      expect(partner.written[0]!.articles.map((article) => article.toString('latin1'))).toEqual(articles);
    });

    test.each(pages)('variable text in EBCDIC %s', async (codePage, line) => {
      const { partner } = await send(`${EBCDIC_LINE}\n\n`, { text: true, ebcdic: true, codePage, recordLength: 12 });
      expect(partner.creates[0]).toMatchObject({ dataCode: 1 });
      expect(partner.written[0]!.articles.map((article) => article.toString('hex'))).toEqual([line, '40']);
    });

    test.each(pages)('fixed text in EBCDIC %s', async (codePage, line) => {
      const fields = { text: true, ebcdic: true, codePage, recordLength: 12, recordFormat: 0 };
      const { partner } = await send(EBCDIC_LINE, fields);
      expect(partner.creates[0]).toMatchObject({ dataCode: 1, logicalAttributes: { recordFormat: 0 } });
      expect(partner.written[0]!.articles.map((article) => article.toString('hex'))).toEqual([`${line}4040`]);
    });

    test('an unfilled record: 2-200 in words, and the partner hears nothing of it', async () => {
      const { record, partner } = await send('abcde', { recordFormat: 0, recordLength: 4 });
      expect(record).toMatchObject({
        status: 'FAILED',
        diagnostic: '2-200',
        restartable: false,
        errorMessage: expect.stringMatching(
          /unfilled record: 5 bytes are no multiple of the record length 4, the last record has 1; set recordLength/,
        ),
      });
      expect(partner.connects).toEqual([]);
    });

    test.each([128, 0])('a line longer than the record (PI 31 = %i): 2-220 with its number', async (recordFormat) => {
      const { record, partner } = await send('ok\nabcde\n', { text: true, recordFormat, recordLength: 4 });
      expect(record).toMatchObject({
        status: 'FAILED',
        diagnostic: '2-220',
        attempts: 1,
        errorMessage: expect.stringMatching(/line 2 of \S+ has 5 bytes or more, the record length is 4/),
      });
      expect(partner.failures).toMatchObject([{ diagnostic: '2-220' }]);
      expect(partner.written).toEqual([]);
    });
  });

  describe('receiving', () => {
    interface Announced {
      readonly recordFormat?: number;
      readonly recordLength?: number;
      readonly dataCode?: number;
    }

    /** A server that announces these records and sends these articles, a DTF each. */
    const scriptOf = (articles: readonly string[], announced: Announced): Script => {
      const { recordFormat = 128, recordLength = 12, dataCode } = announced;
      const byte = (value: number): string => value.toString(16).padStart(2, '0');
      const records = `1f01${byte(recordFormat)}2002${recordLength.toString(16).padStart(4, '0')}`;
      const code = dataCode === undefined ? '' : `1001${byte(dataCode)}`;
      const select = `ACK(SELECT) 0203000000` + '09060b01000c0158' + `0d0105${code}19021000` + `1e07${records}`;
      const data = articles.map((article) => `DTF ${article}`);
      return {
        ...GOOD,
        SELECT: `${select}28062901002a0101`,
        READ: ['ACK(READ) 0203000000', ...data, 'DTF.END 0203000000'],
      };
    };

    const receive = async (articles: readonly string[], announced: Announced, fields: Fields = {}) => {
      const server = await world.rawServer(scriptOf(articles, announced));
      const service = await world.service();
      await world.remote(service, server.port);
      const record = (await world.receive(service, fields)) as Fields;
      const path = record['localPath'] as string | null;
      const content = path === null ? undefined : await readFile(path, 'latin1');
      return { record, content, server, service };
    };

    test.each<[string, Fields, Announced, readonly string[], string]>([
      ['BV', {}, { recordFormat: 128 }, ['abc', 'd', ' \r\n'], 'abcd \r\n'],
      ['BF', {}, { recordFormat: 0, recordLength: 4 }, ['abcd', 'ef  '], 'abcdef  '],
      ['TV', { text: true }, { recordFormat: 128 }, ['one', 'two ', ' ', '\f', 'a\tb'], 'one\ntwo \n \n\f\na\tb\n'],
      [
        'TF',
        { text: true },
        { recordFormat: 0, recordLength: 4 },
        ['ab  ', '    ', ' c d', '\f   '],
        'ab\n\n c d\n\f\n',
      ],
      ['no article: an empty file', { text: true }, { recordFormat: 128 }, [], ''],
    ])('%s', async (_, fields, announced, articles, content) => {
      const received = await receive(articles.map(toHex), announced, fields);
      expect(received.content).toBe(content);
      expect(received.record).toMatchObject({
        status: 'COMPLETED',
        size: content.length,
        articles: articles.length,
        bytesTransferred: articles.join('').length,
      });
    });

    test.each(pages)('variable text in EBCDIC %s', async (codePage, line) => {
      const { content } = await receive([line, '40'], { dataCode: 1 }, { text: true, codePage });
      expect(content).toBe(`${EBCDIC_LINE}\n \n`);
    });

    test.each(pages)('fixed text in EBCDIC %s', async (codePage, line) => {
      const articles = [`${line}4040`, '40'.repeat(12)];
      const { content } = await receive(articles, { dataCode: 1, recordFormat: 0 }, { text: true, codePage });
      expect(content).toBe(`${EBCDIC_LINE}\n\n`);
    });

    test('a server that says that its text is ASCII is believed, unless the request says otherwise', async () => {
      const line = EBCDIC_PAGES['037'];
      const { content, service } = await receive([line], { dataCode: 0 }, { text: true });
      expect(content).toBe(`${Buffer.from(line, 'hex').toString('latin1')}\n`);
      const record = (await world.receive(service, { text: true, ebcdic: true, localName: 'again' })) as Fields;
      expect(await readFile(record['localPath'] as string, 'latin1')).toBe(`${EBCDIC_LINE}\n`);
    });

    test.each([
      ['longer than PI 32', {}, { recordLength: 4 }, '6162636465', '2-220', /at most 4.* got 5/],
      [
        'longer than PI 32',
        { text: true },
        { recordFormat: 0, recordLength: 4 },
        '4040404040',
        '2-220',
        /at most 4.* got 5/,
      ],
      [
        'shorter than PI 32',
        {},
        { recordFormat: 0, recordLength: 4 },
        '616263',
        '2-220',
        /is 3 bytes long, .*exactly 4/,
      ],
      ['under PI 32 = 0', {}, { recordLength: 0 }, '616263', '2-200', /record length 0 cannot be used/],
      ['under PI 31 = 64', {}, { recordFormat: 64 }, '616263', '2-200', /record format 64 does not exist/],
    ])('an article %s of %j: %j', async (_, fields, announced, article, diagnostic, words) => {
      const { record, service, server } = await receive([article], announced, fields);
      expect(record).toMatchObject({
        status: 'FAILED',
        diagnostic,
        attempts: 1,
        errorMessage: expect.stringMatching(words),
      });
      expect(await world.filesIn(service, 'received')).toEqual([]);
      expect(server.names()).toContain('DESELECT');
    });
  });
});
