import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { diagnosticOf, EBCDIC_LINE, EBCDIC_PAGES, fpdu, hex, nameOf, summaryOf } from '@pesit-node/protocol/testing';
import type { PesitRequester } from '@pesit-node/net';
import type { CreateRequest, Parameters as Attributes } from '@pesit-node/protocol';
import { withDatabase } from '@pesit-node/service/testing';

import { ArticleList, sourceOf } from './support/articles.js';
import { refusedWith, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { ACK_IDT, CONNECT, create, CRF, DESELECT, DTF_END, ORF, transEnd, WRITE } from './support/steps.js';

type Fields = Readonly<Record<string, unknown>>;

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');
const pages = Object.entries(EBCDIC_PAGES);

/** The formats of the field by PI 31 and `text` (pesit-e.md §6), through the server app in both directions. */
withDatabase((harness) => {
  const node = useNode(harness);

  describe('a partner writes', () => {
    const write = async (
      file: Fields,
      articles: readonly Buffer[],
      announced: Partial<CreateRequest>,
    ): Promise<readonly string[]> => {
      await node().virtualFile('RECORDS', { receiveFilenamePattern: '${uuid}', ...file });
      const session = await node().connect();
      await session.sendFile({ request: node().createRequest('RECORDS', announced), source: sourceOf(articles) });
      return (await node().received('RECORDS')).map((content) => content.toString('latin1'));
    };

    test.each<[string, Fields, Partial<CreateRequest>, readonly string[], string]>([
      ['BV', {}, { recordFormat: 128 }, ['abc', 'd', ' \r\n'], 'abcd \r\n'],
      ['BF', {}, { recordFormat: 0 }, ['abcdefgh', 'ij      '], 'abcdefghij      '],
      ['BF, of a virtual file that wants it', { recordFormat: 0 }, { recordFormat: 0 }, ['abcdefgh'], 'abcdefgh'],
      [
        'TV',
        { text: true },
        { recordFormat: 128, dataCode: 0 },
        ['one', 'two ', ' ', '\f', 'a\tb'],
        'one\ntwo \n \n\f\na\tb\n',
      ],
      [
        'TF',
        { text: true },
        { recordFormat: 0, dataCode: 0 },
        ['ab      ', '        ', ' c d    ', '\f       '],
        'ab\n\n c d\n\f\n',
      ],
      ['no article: an empty file', { text: true }, { recordFormat: 128 }, [], ''],
    ])('%s', async (_, file, announced, articles, content) => {
      expect(await write(file, articles.map(latin1), { recordLength: 8, ...announced })).toEqual([content]);
      expect((await node().history())[0]).toMatchObject({
        status: 'COMPLETED',
        size: content.length,
        articles: articles.length,
        bytesTransferred: articles.join('').length,
      });
    });

    test.each(pages)('text in EBCDIC %s: variable and fixed', async (codePage, line) => {
      const file = { text: true, codePage };
      const announced = { dataCode: 1, recordLength: 12 };
      expect(await write(file, [hex(line), hex('40')], { ...announced, recordFormat: 128 })).toEqual([
        `${EBCDIC_LINE}\n \n`,
      ]);
      await node().call('delete', '/api/v1/config/files/RECORDS');
      const fixed = await write(file, [hex(`${line}4040`), hex('40'.repeat(12))], { ...announced, recordFormat: 0 });
      expect([...fixed].sort()).toEqual([`${EBCDIC_LINE}\n \n`, `${EBCDIC_LINE}\n\n`].sort());
    });

    test.each([
      ['says that it is ASCII', 0, EBCDIC_PAGES['037']],
      ['says nothing', undefined, EBCDIC_LINE],
    ])('text of a virtual file that is EBCDIC, from a partner that %s (PI 16)', async (_, dataCode, content) => {
      const announced = dataCode === undefined ? {} : { dataCode };
      const [received] = await write({ text: true, ebcdic: true }, [hex(EBCDIC_PAGES['037'])], announced);
      expect(received).toBe(`${dataCode === undefined ? content : hex(content).toString('latin1')}\n`);
    });

    /** DTFs as they are, none of which a decent partner would send. */
    const writeRaw = async (file: Fields, records: Parameters<typeof create>[0]): Promise<RawPeer> => {
      await node().virtualFile('RECORDS', { receiveFilenamePattern: '${uuid}', ...file });
      const peer = await RawPeer.open(node().port);
      for (const step of [CONNECT, create({ fileName: 'RECORDS', ...records }), ORF, WRITE]) await peer.send(step);
      return peer;
    };

    test('an empty article is an empty line', async () => {
      const peer = await writeRaw({ text: true }, { recordLength: 8 });
      const articles = hex('000161' + '0000' + '000162');
      await peer.send({ name: 'DTF', bytes: (y) => fpdu('DTF', y, 3, articles), answered: false });
      await peer.send(DTF_END);
      expect(diagnosticOf(await peer.send(transEnd(2, 3)))).toBe('0-000');
      peer.socket.destroy();
      expect((await node().received('RECORDS')).map(String)).toEqual(['a\n\nb\n']);
    });

    test.each([
      ['longer than PI 32', {}, 128, '6162636465', 'article too long: expected at most 4 bytes (PI 32), got 5'],
      [
        'longer than PI 32',
        { text: true },
        0,
        '4040404040',
        'article too long: expected at most 4 bytes (PI 32), got 5',
      ],
      ['shorter than PI 32', {}, 0, '616263', 'article 1 is 3 bytes long, a BF file with PI 32 = 4 takes exactly 4'],
    ])(
      'an article that is %s, of %j with PI 31 = %i: 2-220, never cut',
      async (_, file, recordFormat, article, words) => {
        const peer = await writeRaw(file, { recordFormat, recordLength: 4 });
        const told = await peer.send({ name: 'DTF', bytes: (y) => fpdu('DTF', y, 0, hex(article)), answered: true });
        // PI 19: cancelled by the server, for it would end in the same way again.
        expect([nameOf(told), diagnosticOf(told), told!.includes(hex('13010c'))]).toEqual(['IDT', '2-220', true]);
        await peer.send(ACK_IDT);
        for (const step of [CRF, DESELECT]) await peer.send(step);
        peer.socket.destroy();
        expect(await node().ended()).toMatchObject({
          status: 'FAILED',
          diagnostic: '2-220',
          restartable: false,
          errorMessage: expect.stringContaining(words),
        });
        expect(await node().files('RECORDS/in')).toEqual([]);
      },
    );

    test.each([
      [{ recordLength: 0 }, /the record length \(PI 32\) must not be 0/],
      [{ recordFormat: 64 }, /record format 64 does not exist: use 0 \(fixed\) or 128 \(variable\)/],
    ])('%j is refused at CREATE: 2-200', async (records, words) => {
      await node().virtualFile('RECORDS', { receiveFilenamePattern: '${uuid}' });
      const peer = await RawPeer.open(node().port);
      await peer.send(CONNECT);
      const answer = await peer.send(create({ fileName: 'RECORDS', ...records }));
      expect(summaryOf(answer)).toBe('ACK(CREATE) 2-200');
      expect(answer!.toString('latin1')).toMatch(words);
      expect(node().log.lines.findLast((line) => line.includes('2-200'))).toMatch(words);
      peer.socket.destroy();
    });
  });

  describe('a partner reads', () => {
    interface Read {
      /** Of ACK(SELECT). */
      readonly attributes: Attributes;
      readonly articles: readonly string[];
    }

    const read = async (session: PesitRequester): Promise<Read> => {
      const sink = new ArticleList();
      let attributes: Attributes = {};
      await session.receiveFile({
        request: { fileIdentifier: { fileType: 0, fileName: 'RECORDS' }, transferId: 0, maxEntitySize: 32_768 },
        open: (answer) => {
          attributes = answer;
          return Promise.resolve({ from: { number: 0, dataBytes: 0, articles: 0 }, sink });
        },
        stored: () => Promise.resolve(),
      });
      return { attributes, articles: sink.articles.map((article) => article.toString('latin1')) };
    };

    const offer = async (file: Fields, content: string): Promise<PesitRequester> => {
      await node().virtualFile('RECORDS', file);
      await writeFile(join(node().data, 'RECORDS/out/data'), latin1(content));
      return node().connect();
    };

    test.each<[string, Fields, string, readonly [dataCode: number, recordFormat: number], readonly string[]]>([
      ['BU', {}, 'abcdefghij', [2, 128], ['abcd', 'efgh', 'ij']],
      ['BV', { recordFormat: 128 }, 'abcdefghij', [2, 128], ['abcd', 'efgh', 'ij']],
      ['BF', { recordFormat: 0 }, 'abcdefgh', [2, 0], ['abcd', 'efgh']],
      ['TV', { text: true }, 'one\r\n\nto\n\fp\nlast', [0, 128], ['one', ' ', 'to', '\fp', 'last']],
      ['TF', { text: true, recordFormat: 0 }, 'ab\r\n\nlast', [0, 0], ['ab  ', '    ', 'last']],
      ['an empty one', { text: true }, '', [0, 128], []],
    ])('%s', async (_, file, content, [dataCode, recordFormat], articles) => {
      const session = await offer({ recordLength: 4, ...file }, content);
      const came = await read(session);
      expect(came.attributes).toMatchObject({ dataCode, logicalAttributes: { recordFormat, recordLength: 4 } });
      expect(came.articles).toEqual(articles);
      expect((await node().history())[0]).toMatchObject({
        status: 'COMPLETED',
        size: content.length,
        articles: articles.length,
      });
    });

    test.each(pages)('text in EBCDIC %s: variable and fixed', async (codePage, line) => {
      const file = { text: true, ebcdic: true, codePage, recordLength: 12 };
      const session = await offer(file, `${EBCDIC_LINE}\n\n`);
      const variable = await read(session);
      expect(variable.attributes.dataCode).toBe(1);
      expect(variable.articles.map((article) => latin1(article).toString('hex'))).toEqual([line, '40']);
      await node().call('put', '/api/v1/config/files/RECORDS', { recordFormat: 0 });
      await writeFile(join(node().data, 'RECORDS/out/data'), latin1(EBCDIC_LINE));
      const fixed = await read(session);
      expect(fixed.articles.map((article) => latin1(article).toString('hex'))).toEqual([`${line}4040`]);
    });

    test.each([128, 0])(
      'a line longer than the record (PI 31 = %i): 2-220 with its number, and no restart',
      async (recordFormat) => {
        const session = await offer({ text: true, recordFormat, recordLength: 4 }, 'ok\nabcde\n');
        await expect(read(session)).rejects.toEqual(refusedWith('2-220'));
        expect(session.usable).toBe(true);
        expect(await node().ended()).toMatchObject({
          status: 'FAILED',
          diagnostic: '2-220',
          restartable: false,
          errorMessage: expect.stringMatching(/line 2 of \S+ has 5 bytes or more, the record length is 4/),
        });
      },
    );

    test('an unfilled record: refused at SELECT with 2-200, before anything is sent', async () => {
      const session = await offer({ recordFormat: 0, recordLength: 4 }, 'abcde');
      await expect(read(session)).rejects.toEqual(refusedWith('2-200'));
      expect((await node().history())[0]).toMatchObject({
        diagnostic: '2-200',
        bytesTransferred: 0,
        errorMessage: expect.stringMatching(/unfilled record: 5 bytes are no multiple of the record length 4/),
      });
    });
  });
});
