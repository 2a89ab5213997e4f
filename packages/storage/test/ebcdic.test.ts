import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { CodePage } from '@pesit-node/protocol';
import { FileSource, StagedFile, formatOf, receivedFormat } from '../src/index.js';
import type { RecordFormat } from '../src/index.js';
import { drain } from './support/articles.js';
import { sandbox } from './support/sandbox.js';

const TV = (codePage?: CodePage) => formatOf({ text: true, recordLength: 8, codePage });
const TF = (codePage?: CodePage) => formatOf({ text: true, recordFormat: 0, recordLength: 8, codePage });

async function sentAs(content: string, format: RecordFormat): Promise<string[]> {
  const path = join(sandbox(), 'source');
  writeFileSync(path, content, 'latin1');
  const source = await FileSource.open(path, format);
  const { articles } = await drain(source, {});
  await source.close();
  return articles.map((article) => article.toString('hex'));
}

async function receivedAs(articles: readonly string[], format: RecordFormat): Promise<string> {
  const directory = sandbox();
  const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format });
  for (const article of articles) {
    const bytes = Buffer.from(article, 'hex');
    // In two parts, as two socket reads bring it.
    const parts = [bytes.subarray(0, 1), bytes.subarray(1)];
    staged.write({ parts, ends: [2], bytes: bytes.length });
    expect(bytes.toString('hex')).toBe(article);
  }
  await staged.deliver({ path: 'out', overwrite: false });
  return readFileSync(join(directory, 'out'), 'latin1');
}

describe('text that travels as EBCDIC (PI 16, pesit-e.md §6)', () => {
  // Bytes from the character charts of the pages.
  test.each<[string, RecordFormat, string, string[]]>([
    ['TV, 037', TV('037'), 'Ab 1\n[x]\n', ['c18240f1', 'baa7bb']],
    ['TV, 1047', TV('1047'), '[x]\n', ['ada7bd']],
    ['TV, 297', TV('297'), '\u00e9t\u00e9\n', ['c0a3c0']],
    ['TF, 037', TF('037'), 'Ab\nc\n', ['c182404040404040', '8340404040404040']],
    ['TV, an empty line is one blank', TV('037'), 'a\n\nb\n', ['81', '40', '82']],
  ])('%s: sent and received', async (_, format, content, articles) => {
    expect(await sentAs(content, format)).toEqual(articles);
    const blanksStay = format.name === 'TV' ? content.replace('\n\n', '\n \n') : content;
    expect(await receivedAs(articles, format)).toBe(blanksStay);
  });

  test('TF: blanks are trimmed as EBCDIC has them, also over several parts', async () => {
    expect(await receivedAs(['c140404040404040', '4040404040404040', '40c1404040404040'], TF('500'))).toBe('A\n\n A\n');
  });

  test('the checksum is that of the file, not of what travels', async () => {
    const path = join(sandbox(), 'source');
    writeFileSync(path, 'Ab 1\n');
    const [plain, ebcdic] = await Promise.all(
      [TV(), TV('037')].map(async (format) => {
        const source = await FileSource.open(path, format);
        await drain(source, {});
        await source.close();
        return source.checksum;
      }),
    );
    expect(ebcdic).toBe(plain);
  });

  test('binary files have no code page, whatever is asked', () => {
    expect(formatOf({ codePage: '037' }).codePage).toBeUndefined();
    expect(receivedFormat({ recordLength: 80 }, { codePage: '037' }).codePage).toBeUndefined();
    expect(receivedFormat({ recordLength: 80 }, { text: true, codePage: '297' }).codePage).toBe('297');
  });

  test('a restart with another code page begins again, in words', async () => {
    const options = { receiveDirectory: sandbox(), key: 'k' };
    const staged = await StagedFile.create({ ...options, format: TV('037') });
    staged.write({ parts: [Buffer.from('c1', 'hex')], ends: [1], bytes: 1 });
    await staged.checkpoint({ number: 1, dataBytes: 1, articles: 1 });
    await staged.release();
    const same = await StagedFile.resume({ ...options, format: TV('037') });
    expect(same.point.number).toBe(1);
    await same.file.release();
    const { file, point, reason } = await StagedFile.resume({ ...options, format: TV('1047') });
    expect(point.number).toBe(0);
    expect(reason).toBe('it was received as TV of 8, EBCDIC 037, and would continue as TV of 8, EBCDIC 1047');
    await file.discard();
  });
});
